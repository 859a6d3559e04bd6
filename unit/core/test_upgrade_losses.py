"""Upgrades in which something else goes wrong. Each row was found by a random run of the model."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.core.actions import CreateMember, ReplaceMember
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import PodProblem
from etcd_operator.core.names import member_name
from etcd_operator.core.plan import plan
from etcd_operator.core.starts import Joining, Resuming
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.blocked import PATIENCE, is_blocked
from unit.core.builders import (
    IMAGE_PROBLEM,
    TOKEN,
    changed,
    claim,
    down,
    entry,
    peer,
    persistent,
    pod,
    silent,
)
from unit.core.test_upgrade import BOTH, NEW, OLD, asked, at, names, remembered, under_way

CRASH = PodProblem(reason="CrashLoopBackOff", message="it ends at once")


def _without_quorum(cluster: DesiredCluster, *, upgrading: str | None, wanted: str = NEW) -> ClusterState:
    """Two of three members are gone for good, the third one's process ends and ends."""
    state = asked(cluster, upgrading=upgrading, wanted=wanted)
    first, *others = names(state)
    for name in others:
        state = changed(state, name, answer=None, entry=None, pod=None, peer=None, claim=None)
    crashing = pod(first, is_running=False, has_restarted=True, restarts=9, version=OLD)
    state = changed(state, first, answer=None, entry=None, pod=crashing, problem=CRASH)
    return replace(state, has_quorum=False)


@pytest.mark.parametrize("said", ["has_no_data", "can_never_join"])
@BOTH
def test_a_member_whose_data_is_of_no_use_is_not_tried_at_another_version(
    cluster: DesiredCluster, said: str
) -> None:
    """Otherwise the lost quorum would be told as an upgrade that another version could help."""
    first = names(asked(cluster))[0]
    for upgrading in (None, first):
        state = _without_quorum(cluster, upgrading=upgrading)
        assert plan(state).actions[-1:] == (ReplaceMember(name=first, version=NEW),)

        refusing = pod(first, is_running=False, has_restarted=True, restarts=9, version=OLD, **{said: True})
        claim = state.by_name[first].claim
        remade = replace(claim, missing_in="the pod before") if claim is not None else None
        made = plan(changed(state, first, pod=refusing, claim=remade))
        assert (made.actions, made.reason) == ((), "QuorumLost")


def test_a_member_whose_claim_is_gone_is_not_waited_for_though_its_pod_is_there() -> None:
    """The pod waits for its volume, without a word."""
    state = _without_quorum(persistent(), upgrading="db-0")
    waiting = pod("db-0", is_running=False, has_run=False)
    state = changed(at(state, "db-0", OLD, asked=NEW), "db-0", pod=waiting, problem=None)
    assert plan(state).reason == "Upgrading"

    made = plan(changed(state, "db-0", claim=None))
    assert (made.actions, made.reason) == ((), "QuorumLost")


@BOTH
def test_a_member_in_hand_that_lacks_only_the_others_is_not_waited_for_for_ever(
    cluster: DesiredCluster,
) -> None:
    """It runs at its version; what is missing is a quorum, and that is what has to be told."""
    first = names(asked(cluster))[0]
    state = at(_without_quorum(cluster, upgrading=first), first, OLD, asked=NEW)
    state = changed(state, first, pod=pod(first, version=NEW), problem=None)

    assert plan(replace(state, unavailable_for=PATIENCE)).reason == "Upgrading"
    made = plan(replace(state, unavailable_for=PATIENCE + 1))
    assert (made.actions, made.reason) == ((), "QuorumLost")


@BOTH
def test_a_member_in_hand_that_may_serve_unheard_is_not_stopped_where_it_is_needed(
    cluster: DesiredCluster,
) -> None:
    """A quorum answers, though too few of those that are heard: one of the silent is part of it."""
    _, middle, highest = names(asked(cluster))
    state = at(asked(cluster, upgrading=highest, wanted="3.5.36"), highest, OLD, asked=NEW)
    state = down(state, middle, highest)

    assert plan(state).actions == ()
    state = replace(state, has_quorum=False)
    assert ReplaceMember(name=highest, version="3.5.36") in plan(state).actions
    state = down(state, *names(state))
    assert plan(state).actions == ()
    ended = pod(highest, is_running=False, version=NEW)
    assert ReplaceMember(name=highest, version="3.5.36") in plan(changed(state, highest, pod=ended)).actions


def _joining(cluster: DesiredCluster, wanted: str) -> tuple[ClusterState, str]:
    """Three members run OLD, a fourth cannot get it any more; `wanted` is asked for."""
    state = asked(replace(cluster, size=4), wanted=wanted)
    name = member_name(cluster, 3)
    learner = replace(entry(name, is_learner=True), name="")
    new = silent(state.desired, name, entry=learner, problem=IMAGE_PROBLEM)
    new = replace(new, pod=pod(name, is_running=False, has_run=False, version=OLD))
    if cluster.kind is PERSISTENT:
        new = replace(
            new, peer=peer(name, is_existing_only=True, version=OLD), claim=claim(name, cluster_id="x")
        )
    return replace(state, members=(*state.members, new)), name


@pytest.mark.parametrize("wanted", [NEW, "3.6.16"])
@BOTH
def test_a_learner_whose_version_cannot_be_had_is_tried_at_the_one_asked_for(
    cluster: DesiredCluster, wanted: str
) -> None:
    """It stands before the upgrade, which would take the others there: otherwise nothing went on for ever."""
    state, name = _joining(cluster, wanted)

    begun = Upgrade(origin=OLD, target=wanted, member=name)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=name, version=wanted))


@pytest.mark.parametrize("wanted", [OLD, "3.5.33", "3.7.3"], ids=["the same", "going back", "too far"])
@BOTH
def test_a_learner_is_tried_at_nothing_else(cluster: DesiredCluster, wanted: str) -> None:
    state, name = _joining(cluster, wanted)

    made = plan(state)
    assert (made.actions, made.reason) == ((), "ErrImagePull")
    assert name in made.message


def test_without_a_quorum_no_version_helps_a_learner() -> None:
    state, name = _joining(persistent(), NEW)

    assert is_blocked(state, state.by_name[name])
    assert not is_blocked(replace(state, has_quorum=False), state.by_name[name])


def test_the_peer_of_a_learner_that_has_not_started_comes_back_with_flags_to_join() -> None:
    state, name = _joining(persistent(), NEW)
    state = changed(state, name, peer=None, pod=None, claim=claim(name, version=NEW))

    joining = Joining(members=("db-0", "db-1", "db-2", name), token=TOKEN)
    assert plan(state).actions == (CreateMember(name=name, start=joining, version=NEW),)
    started = changed(state, name, entry=entry(name, is_learner=True))
    assert plan(started).actions == (CreateMember(name=name, start=Resuming(token=TOKEN), version=NEW),)


@BOTH
def test_what_an_upgrade_began_from_is_what_runs_when_the_next_one_is_asked_for(
    cluster: DesiredCluster,
) -> None:
    """All run 3.6, which nobody has noted yet: one that then fails at 3.7 is not to be told to go to 3.6."""
    runs = ("3.6.16", "3.6.16", "3.6.16")
    state = asked(cluster, runs=runs, wanted="3.7.3", founded="3.6.16")
    first, _, highest = names(state)
    state = _noted(state, Upgrade(origin=OLD, target="3.6.16", member=first))

    begun = Upgrade(origin="3.6.16", target="3.7.3", member=highest)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=highest, version="3.7.3"))

    away = changed(at(_noted(state, begun), highest, "3.6.16", asked="3.7.3"), highest, answer=None)
    made = plan(changed(away, highest, problem=CRASH))
    assert made.reason == "UpgradeBlocked"


def test_what_an_upgrade_began_from_stays_while_nobody_knows_what_all_run() -> None:
    state = asked(runs=(OLD, NEW, NEW), wanted="3.5.36")
    state = _noted(changed(down(state, "db-0000"), "db-0000", problem=CRASH), under_way("db-0000"))

    begun = under_way("db-0000", wanted="3.5.36")
    assert plan(state).actions[0] == remembered(state, begun)


def _noted(state: ClusterState, upgrade: Upgrade) -> ClusterState:
    persisted = replace(state.persisted, upgrade=upgrade)
    return replace(state, desired=replace(state.desired, persisted=persisted))
