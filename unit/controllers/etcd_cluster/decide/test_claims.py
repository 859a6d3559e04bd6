"""What is written on the claims of members that answer: who they are, and who votes."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import AnnotateVoters, SetExistingOnly, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules.claims import set_existing_only
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    VERSION,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    claim,
    entry,
    ephemeral,
    old_claim,
    peer,
    persistent,
    voting,
    with_record,
)


def _without_existing_only(*names: str) -> ClusterState:
    state = bootstrapped()
    for name in names:
        state = changed(state, name, peer=peer(name), claim=claim(name))
    return state


def test_members_that_answer_are_set_existing_only_after_the_recorded_cluster_id() -> None:
    made = plan(_without_existing_only("db-0", "db-2"))

    assert made.actions == tuple(
        SetExistingOnly(
            name=name, cluster_id=CLUSTER_ID, member_id=f"id-{name}", voters=voting(0, 1, 2), revision=1
        )
        for name in ("db-0", "db-2")
    )
    assert (made.reason, made.stage) == ("SettingExistingOnly", Stage.WORKING)


def test_a_member_that_never_answered_is_not_set_existing_only() -> None:
    made = set_existing_only(changed(_without_existing_only("db-0", "db-1"), "db-0", answer=None))

    assert made is not None
    assert [action.name for action in made.actions if isinstance(action, SetExistingOnly)] == ["db-1"]


def test_a_peer_that_was_made_again_before_its_claim_was_annotated_has_it_annotated() -> None:
    made = set_existing_only(changed(bootstrapped(), "db-1", claim=claim("db-1")))

    assert made is not None
    assert [action.name for action in made.actions if isinstance(action, SetExistingOnly)] == ["db-1"]


def test_a_change_of_voters_is_written_on_the_claims_of_all_of_them() -> None:
    state = changed(bootstrapped(voters=4), "db-3", claim=None)
    for name in NAMES:
        state = changed(state, name, claim=old_claim(name))

    made = plan(state)
    assert made.actions == tuple(AnnotateVoters(name=n, voters=voting(0, 1, 2, 3), revision=2) for n in NAMES)
    assert (made.stage, made.is_quiet) == (Stage.WORKING, True)


def test_the_rest_of_a_change_that_was_cut_off_is_written_under_the_same_revision() -> None:
    four: dict[str, Any] = {"voters": voting(0, 1, 2, 3), "voters_revision": 5}
    state = bootstrapped(voters=4)
    for name in ("db-0", "db-2", "db-3"):
        state = changed(state, name, claim=old_claim(name, **four))
    state = changed(state, "db-1", claim=old_claim("db-1"))

    assert plan(state).actions == (AnnotateVoters(name="db-1", voters=voting(0, 1, 2, 3), revision=5),)


def test_what_is_known_again_is_newer_than_all_that_was_written_between() -> None:
    state = changed(bootstrapped(), "db-0", claim=old_claim("db-0", voters=voting(0, 1), voters_revision=5))

    assert plan(state).actions == (AnnotateVoters(name="db-0", voters=voting(0, 1, 2), revision=6),)


NO_NOTE = [
    pytest.param({"has_quorum": False}, id="no quorum confirms it"),
    pytest.param({"unknown_members": (entry("other"),)}, id="etcd lists a member that nobody here made"),
]


@pytest.mark.parametrize("changes", NO_NOTE)
def test_who_votes_is_not_written_without_a_quorum_that_reports_all(changes: dict[str, object]) -> None:
    state = changed(bootstrapped(), "db-0", claim=old_claim("db-0", size=1))

    assert set_existing_only(state) is not None
    assert set_existing_only(replace(state, **changes)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"is_terminating": True}, id="that is being deleted"),
        pytest.param({"member_id": ""}, id="that is not annotated yet"),
    ],
)
def test_nothing_is_written_on_a_claim(changes: dict[str, Any]) -> None:
    found = old_claim("db-0", size=1, **changes)
    assert set_existing_only(changed(bootstrapped(), "db-0", claim=found, answer=None)) is None


NEVER_SET = [
    pytest.param(changed(bootstrapped(), "db-0", claim=None), id="there is no claim"),
    pytest.param(bootstrapped(), id="all are existing-only"),
    pytest.param(changed(bootstrapped(), "db-0", peer=None), id="there is no peer"),
    pytest.param(changed(_without_existing_only("db-0"), "db-0", answer=None), id="the other one is silent"),
    pytest.param(bootstrapped(ephemeral()), id="ephemeral members have no peer to change"),
    pytest.param(
        changed(bootstrapping(persistent()), "db-0", answer=answer("db-0")),
        id="no cluster ID on record",
    ),
]


@pytest.mark.parametrize("state", NEVER_SET)
def test_nothing_is_set_existing_only(state: ClusterState) -> None:
    assert set_existing_only(state) is None


def _left_over(**changes: Any) -> ClusterState:
    """A claim names a version that its member does not run."""
    return changed(bootstrapped(**changes), "db-1", claim=old_claim("db-1", version="3.6.99"))


def test_a_version_that_an_upgrade_left_on_a_claim_is_put_right() -> None:
    """It was interrupted before it deleted the EtcdPeer, and taken back."""
    made = plan(_left_over())

    (action,) = made.actions
    assert isinstance(action, SetExistingOnly)
    assert action.name == "db-1"


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(
            with_record(_left_over(), upgrade=Upgrade(origin=VERSION, target="3.6.99", member="db-1")),
            id="it is the version to start next",
        ),
        pytest.param(
            changed(_left_over(), "db-1", answer=answer("db-1", version="3.6.99")), id="its member runs it"
        ),
        pytest.param(changed(_left_over(), "db-1", answer=None), id="its member does not answer"),
        pytest.param(
            changed(bootstrapped(), "db-1", claim=old_claim("db-1", version=VERSION)), id="it is right"
        ),
    ],
)
def test_a_version_on_a_claim_that_may_be_meant_is_left_alone(state: ClusterState) -> None:
    assert set_existing_only(state) is None
