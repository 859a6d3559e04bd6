"""Upgrades in which something else goes wrong. Each row was found by a random run of the model."""

from dataclasses import replace

import pytest

from etcd_operator.core.actions import ReplaceMember
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Trouble
from etcd_operator.core.plan import plan
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade import PATIENCE
from unit.core.builders import changed, down, pod
from unit.core.test_upgrade import BOTH, NEW, OLD, asked, at, names

CRASH = Trouble(reason="CrashLoopBackOff", message="it ends at once")


def _without_quorum(cluster: DesiredCluster, *, hand: str | None, wanted: str = NEW) -> ClusterState:
    """Two of three members are gone for good, the third one's process ends and ends."""
    state = asked(cluster, hand=hand, wanted=wanted)
    first, *others = names(state)
    for name in others:
        state = changed(state, name, answer=None, entry=None, pod=None, peer=None, claim=None)
    crashing = pod(first, is_running=False, has_restarted=True, restarts=9, version=OLD)
    state = changed(state, first, answer=None, entry=None, pod=crashing, trouble=CRASH)
    return replace(state, has_quorum=False)


@pytest.mark.parametrize("said", ["has_no_data", "can_never_join"])
@BOTH
def test_a_member_whose_data_is_of_no_use_is_not_tried_at_another_version(
    cluster: DesiredCluster, said: str
) -> None:
    """Otherwise the lost quorum would be told as an upgrade that another version could help."""
    first = names(asked(cluster))[0]
    for hand in (None, first):
        state = _without_quorum(cluster, hand=hand)
        assert plan(state).actions[-1:] == (ReplaceMember(name=first, version=NEW),)

        refusing = pod(first, is_running=False, has_restarted=True, restarts=9, version=OLD, **{said: True})
        made = plan(changed(state, first, pod=refusing))
        assert (made.actions, made.reason) == ((), "QuorumLost")


@BOTH
def test_a_member_in_hand_that_lacks_only_the_others_is_not_waited_for_for_ever(
    cluster: DesiredCluster,
) -> None:
    """It runs at its version; what is missing is a quorum, and that is what has to be told."""
    first = names(asked(cluster))[0]
    state = at(_without_quorum(cluster, hand=first), first, OLD, asked=NEW)
    state = changed(state, first, pod=pod(first, version=NEW), trouble=None)

    assert plan(replace(state, unavailable_for=PATIENCE)).reason == "Upgrading"
    made = plan(replace(state, unavailable_for=PATIENCE + 1))
    assert (made.actions, made.reason) == ((), "QuorumLost")


@BOTH
def test_a_member_in_hand_that_may_serve_unheard_is_not_stopped_where_it_is_needed(
    cluster: DesiredCluster,
) -> None:
    """A quorum answers, though too few of those that are heard: one of the silent is part of it."""
    _, middle, highest = names(asked(cluster))
    state = at(asked(cluster, hand=highest, wanted="3.5.36"), highest, OLD, asked=NEW)
    state = down(state, middle, highest)

    assert plan(state).actions == ()
    assert ReplaceMember(name=highest, version="3.5.36") in plan(replace(state, has_quorum=False)).actions
    ended = pod(highest, is_running=False, version=NEW)
    assert ReplaceMember(name=highest, version="3.5.36") in plan(changed(state, highest, pod=ended)).actions
