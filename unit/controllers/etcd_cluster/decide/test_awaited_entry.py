"""A member that may wait for an entry in etcd's log gets one, unless something forbids every act."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import AppendEntry, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules.awaited_entry import (
    LOST_AFTER,
    MOST_UNAPPLIED,
    PAUSE,
    RARE,
    RARELY_AFTER,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting
from unit.controllers.etcd_cluster.decide.builders import (
    answering,
    bootstrapped,
    changed,
    down,
    ephemeral,
    persistent,
    pod,
)
from unit.controllers.etcd_cluster.decide.sizes import kinds, sized, with_learner
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import NEW, OLD, to_upgrade

SETTLED = bootstrapped(persistent())
FAR = MOST_UNAPPLIED + 1


def silent(state: ClusterState, name: str, seconds: float = LOST_AFTER) -> ClusterState:
    """A member runs, and has not answered for so long."""
    return changed(state, name, answer=None, silent_for=seconds, pod=pod(name))


def joining(seconds: float, *, is_running: bool = True) -> ClusterState:
    """A learner that has been silent for so long."""
    started = pod("db-3", is_running=is_running)
    return with_learner(sized(persistent(), 5), "db-3", answer=None, silent_for=seconds, pod=started)


def behind(state: ClusterState, name: str, entries: int) -> ClusterState:
    """All have the same log, and one has not applied its last entries."""
    every = [member.name for member in state.members]
    at = MOST_UNAPPLIED + 100
    state = answering(state, *every, committed=at, applied=at)
    return answering(state, name, applied=at - entries)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(joining(LOST_AFTER), "ScalingUp", id="a learner"),
        pytest.param(joining(RARELY_AFTER - 1.0), "LearnerSilent", id="a learner that is reported"),
        pytest.param(silent(SETTLED, "db-1"), "MemberUnhealthy", id="a voter"),
        pytest.param(
            silent(SETTLED, "db-1", 100 * RARELY_AFTER), "MemberUnhealthy", id="a voter, after long, rarely"
        ),
        pytest.param(
            silent(to_upgrade(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2"), "db-2"),
            "Upgrading",
            id="the upgrading member",
        ),
        pytest.param(
            silent(adopting(ours=3, mode="Join"), "db-2"), "Joined", id="one of ours that have all joined"
        ),
        pytest.param(
            silent(adopting(ours=2, mode="Join"), "db-1"), "MemberUnhealthy", id="one of ours that join"
        ),
        pytest.param(behind(SETTLED, "db-1", FAR), "Settled", id="one that serves"),
        pytest.param(behind(bootstrapped(ephemeral()), "db-0001", FAR), "Settled", id="an ephemeral one"),
    ],
)
def test_a_member_gets_an_entry_beside_what_is_waited_for(state: ClusterState, reason: str) -> None:
    made = plan(state)

    assert (kinds(made), made.reason) == (["AppendEntry"], reason)
    assert made.requeue_after is not None
    assert made.requeue_after >= PAUSE


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(joining(LOST_AFTER - 1.0), id="it may still publish"),
        pytest.param(joining(LOST_AFTER, is_running=False), id="it has not started"),
        pytest.param(silent(SETTLED, "db-1", RARELY_AFTER + RARE / 2), id="something else is likely"),
        pytest.param(behind(SETTLED, "db-1", MOST_UNAPPLIED), id="few enough are left"),
        pytest.param(
            replace(down(SETTLED, "db-1", "db-2", silent_for=LOST_AFTER, pod=pod("db-1")), has_quorum=False),
            id="no quorum answers",
        ),
        pytest.param(changed(silent(SETTLED, "db-1"), "db-1", entry=None), id="it is no member"),
    ],
)
def test_nothing_is_appended_where_that_helps_nobody(state: ClusterState) -> None:
    assert not any(isinstance(action, AppendEntry) for action in plan(state).actions)


def test_an_act_comes_first() -> None:
    made = plan(behind(with_learner(sized(persistent(), 5), "db-3"), "db-1", FAR))

    assert kinds(made) == ["Promote"]


@pytest.mark.parametrize("state", [joining(LOST_AFTER), behind(SETTLED, "db-1", FAR)])
def test_a_paused_cluster_gets_no_entry(state: ClusterState) -> None:
    paused = plan(replace(state, desired=replace(state.desired, is_paused=True)))

    assert (paused.actions, paused.stage) == ((), Stage.HELD)
