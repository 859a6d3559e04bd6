"""Facts: found once for each state."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import bootstrapped

asked: list[ClusterState] = []


@fact
def _voters(state: ClusterState) -> int:
    """How many there are."""
    asked.append(state)
    return len(state.voters)


@fact
def _nothing(state: ClusterState) -> None:
    asked.append(state)


def test_a_fact_is_found_once_for_each_state() -> None:
    asked.clear()
    state = bootstrapped(voters=3)
    assert (_voters(state), _voters(state), _voters.__doc__) == (3, 3, "How many there are.")
    other = replace(state, members=state.members[1:])
    assert (_voters(other), _voters(state)) == (2, 3)
    assert asked == [state, other]


def test_a_fact_that_is_none_is_found_once_too() -> None:
    asked.clear()
    state = bootstrapped(voters=3)
    assert (_nothing(state), _nothing(state)) == (None, None)
    assert asked == [state]


def test_a_fact_does_not_tell_equal_states_apart() -> None:
    state = bootstrapped(voters=3)
    _voters(state)
    assert state == bootstrapped(voters=3)
