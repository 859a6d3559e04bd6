"""Clusters of other operators: nothing begins beside them, and members that were handed over become ours."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, DeleteMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt, DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    answer,
    answering,
    bootstrapped,
    bootstrapping,
    changed,
    claim,
    entry,
    ephemeral,
    not_bootstrapped,
    old_claim,
    peer,
    persistent,
    pod,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH


def handed_over(token: str = "db") -> ClusterState:
    """Three members that run, on claims that carry nothing but a token."""
    listed = tuple(entry(name) for name in NAMES)
    members = tuple(
        Member(
            name=name,
            pod=pod(name),
            claim=claim(name, token=token, initial_members=()),
            entry=entry(name),
            answer=answer(name, listed),
        )
        for name in NAMES
    )
    return not_bootstrapped(persistent(), members=members, has_quorum=True)


def test_not_all_of_hundreds_of_pods_are_named() -> None:
    """A Deployment of a user may have such labels; a message has 32,768 characters at most."""
    pods = tuple(f"web-{number:03d}" for number in range(300))
    message = plan(not_bootstrapped(ephemeral(), objects_of_others=pods)).message
    assert message.startswith("web-000, web-001, ")
    assert "web-008, web-009 and others were not created by this operator" in message
    ten = plan(not_bootstrapped(ephemeral(), objects_of_others=pods[:10])).message
    assert "web-009 were not" in ten


@BOTH
def test_nothing_begins_beside_the_pods_of_another_operator(cluster: DesiredCluster) -> None:
    made = plan(not_bootstrapped(cluster, objects_of_others=("db-abc", "db-def")))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("OtherOperator", Stage.HELD, 10.0)


@pytest.mark.parametrize("state", [bootstrapped(), bootstrapping(ephemeral())])
def test_a_cluster_that_has_begun_goes_on_beside_pods_that_come_later(state: ClusterState) -> None:
    assert plan(replace(state, objects_of_others=("db-abc",))) == plan(state)


def test_members_that_were_handed_over_are_taken_over_as_they_run() -> None:
    made = plan(handed_over())

    persisted = PersistedState(bootstrap=Bootstrap(members=(), token="db"), cluster_id=CLUSTER_ID)
    assert made.actions == (Remember(persisted=persisted),)
    assert (made.reason, made.stage) == ("TakingOver", Stage.WORKING)


def test_no_member_that_was_handed_over_is_made_ours_while_nobody_reports_the_list_and_the_version() -> None:
    """At the desired version 3.7 would start on the data of 3.5."""
    (remember,) = plan(answering(handed_over(), *NAMES, version="3.5.21")).actions
    assert isinstance(remember, Remember)
    desired = replace(handed_over().desired, version="3.7.3", persisted=remember.persisted)
    answered = replace(answering(handed_over(), *NAMES, version="3.5.21"), desired=desired)
    members = tuple(replace(member, answer=None, entry=None) for member in answered.members)
    silent = replace(answered, members=members, has_quorum=False)

    assert [a for a in plan(silent).actions if isinstance(a, CreateMember)] == []
    made = [a for a in plan(answered).actions if isinstance(a, CreateMember)]
    assert [(a.name, a.version) for a in made] == [(name, "3.5.21") for name in NAMES]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(handed_over(""), id="none is annotated"),
        pytest.param(
            changed(handed_over(), "db-1", claim=claim("db-1", token="", initial_members=())),
            id="all but one",
        ),
        pytest.param(
            changed(handed_over(), "db-1", claim=claim("db-1", token="other", initial_members=())),
            id="with two tokens",
        ),
        pytest.param(handed_over("uid-1"), id="with another token than that of the earlier operator"),
    ],
)
def test_members_whose_claims_are_not_all_annotated_alike_are_left_alone(state: ClusterState) -> None:
    made = plan(state)

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("OtherOperator", Stage.HELD, 10.0)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(replace(handed_over(), has_quorum=False), id="no quorum"),
        pytest.param(
            replace(handed_over(), members=tuple(replace(m, answer=None) for m in handed_over().members)),
            id="nobody answers under a peer URL of ours",
        ),
    ],
)
def test_only_members_with_a_quorum_are_taken_over(state: ClusterState) -> None:
    made = plan(state)

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("QuorumLost", Stage.HELD, 1.0)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(changed(handed_over(), "db-0", peer=peer("db-0")), id="a peer of ours"),
        pytest.param(changed(handed_over(), "db-0", claim=old_claim("db-0")), id="a claim that served us"),
        pytest.param(
            changed(handed_over(), "db-0", claim=claim("db-0", cluster_uid="uid")),
            id="a claim of our bootstrap",
        ),
        pytest.param(
            changed(handed_over(), "db-0", claim=claim("db-0"), pod=pod("db-0", is_gated=True)),
            id="a claim of our bootstrap, of an earlier version",
        ),
        pytest.param(changed(handed_over(), "db-0", claim=None), id="a pod without a claim"),
    ],
)
def test_what_this_operator_created_is_never_taken_over(state: ClusterState) -> None:
    made = plan(state)

    assert made.actions == ()
    assert (made.reason, made.stage) == ("StatusMissing", Stage.HELD)


def test_running_members_whose_claims_are_annotated_as_if_they_were_gone() -> None:
    """To delete the resource and create it again would change nothing: their pods do not belong to it."""
    made = plan(changed(handed_over(), "db-0", claim=claim("db-0")))
    assert (made.reason, made.stage, made.actions) == ("OtherOperator", Stage.HELD, ())


def test_members_that_run_are_not_advised_to_be_deleted_for_an_adoption() -> None:
    state = handed_over()
    adopting = replace(state, desired=replace(state.desired, adopt=Adopt(endpoints=("http://e:2379",))))
    assert plan(adopting).reason == "AdoptionRefused"
    assert "members run under this name (db-0, db-1, db-2)" in plan(adopting).message


def in_former_pods(*names: str, **changes: Any) -> ClusterState:
    """A settled cluster, some of whose members run in the pods of another operator."""
    state = bootstrapped()
    for name in names:
        state = changed(state, name, has_replica_set=False, pod=pod(name, **changes))
    return state


def test_no_planned_change_is_made_while_members_run_in_former_pods() -> None:
    state = in_former_pods("db-0", "db-2")
    made = plan(replace(state, desired=replace(state.desired, size=1)))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("OtherOperator", Stage.HELD, 10.0)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(in_former_pods("db-0", is_gated=True, serves=True), id="a pod of ours"),
        pytest.param(changed(in_former_pods("db-0"), "db-0", has_replica_set=True), id="in our ReplicaSet"),
        pytest.param(in_former_pods("db-0", is_terminating=True), id="one that is being deleted"),
    ],
)
def test_other_members_are_no_reason_to_wait_for_a_person(state: ClusterState) -> None:
    assert plan(state).reason != "OtherOperator"


def test_a_removed_member_in_a_former_pod_waits_for_a_person() -> None:
    state = bootstrapped()
    left = Member(name="db-3", pod=pod("db-3"), claim=old_claim("db-3", is_terminating=True))
    made = plan(replace(state, members=(*state.members, left)))

    assert (made.actions, made.reason, made.stage) == ((), "OtherOperator", Stage.HELD)


def test_an_ephemeral_member_that_was_removed_is_ours_to_delete_whatever_its_pod_lacks() -> None:
    state = bootstrapped(ephemeral())
    left = Member(name="db-0003", pod=pod("db-0003", is_gated=False))
    made = plan(replace(state, members=(*state.members, left)))

    assert made.actions == (DeleteMember(name="db-0003"),)
