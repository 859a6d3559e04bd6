"""A member that runs and stays silent gets an entry in etcd's log, without which it may wait for ever."""

from dataclasses import replace

import pytest

from etcd_operator.core.actions import PadLog, Stage
from etcd_operator.core.plan import plan
from etcd_operator.core.rules.publishing import GIVEN_UP_AFTER, LOST_AFTER, PAUSE
from etcd_operator.core.state import ClusterState
from unit.core.builders import bootstrapped, changed, down, ephemeral, persistent, pod
from unit.core.sizes import sized, with_learner
from unit.core.upgrade_states import NEW, OLD, to_upgrade

ENTRY = (PadLog(entries=1),)


def joining(seconds: float, *, is_running: bool = True) -> ClusterState:
    """A learner that has been silent for so long."""
    started = pod("db-3", is_running=is_running)
    return with_learner(sized(persistent(), 5), "db-3", answer=None, silent_for=seconds, pod=started)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(joining(LOST_AFTER), "ScalingUp", id="a learner"),
        pytest.param(joining(GIVEN_UP_AFTER - 1.0), "LearnerSilent", id="a learner that is reported"),
        pytest.param(
            down(bootstrapped(persistent()), "db-1", silent_for=LOST_AFTER), "MemberUnhealthy", id="a voter"
        ),
        pytest.param(
            changed(
                to_upgrade(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2"),
                "db-2",
                answer=None,
                silent_for=LOST_AFTER,
            ),
            "Upgrading",
            id="the upgrading member",
        ),
    ],
)
def test_a_member_gets_an_entry_once_its_request_to_publish_must_have_been_lost(
    state: ClusterState, reason: str
) -> None:
    made = plan(state)

    assert (made.actions, made.reason) == (ENTRY, reason)
    assert made.requeue_after is not None
    assert made.requeue_after >= PAUSE


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(joining(LOST_AFTER - 1.0), id="it may still publish"),
        pytest.param(joining(LOST_AFTER, is_running=False), id="it has not started"),
        pytest.param(
            down(bootstrapped(persistent()), "db-1", silent_for=GIVEN_UP_AFTER), id="something else it is"
        ),
        pytest.param(
            replace(
                down(bootstrapped(persistent()), "db-1", "db-2", silent_for=LOST_AFTER), has_quorum=False
            ),
            id="no quorum answers",
        ),
        pytest.param(
            changed(down(bootstrapped(ephemeral()), "db-0001", silent_for=LOST_AFTER), "db-0001", entry=None),
            id="it is no member",
        ),
    ],
)
def test_nothing_is_appended_where_that_helps_nobody(state: ClusterState) -> None:
    assert not any(isinstance(action, PadLog) for action in plan(state).actions)


def test_a_paused_cluster_gets_no_entry() -> None:
    state = joining(LOST_AFTER)
    paused = plan(replace(state, desired=replace(state.desired, is_paused=True)))

    assert (paused.actions, paused.stage) == ((), Stage.HELD)
