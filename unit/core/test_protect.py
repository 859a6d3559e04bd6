"""How many members an eviction must leave, and when that changes."""

from dataclasses import replace

import pytest

from etcd_operator.core.actions import KeepBudget
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.membership_actions import AddLearner, RemoveMember
from etcd_operator.core.plan import plan
from etcd_operator.core.rules.protect import budget, min_available
from etcd_operator.core.state import ClusterState
from unit.core.adoptions import adopting, silent_external
from unit.core.builders import (
    annotated,
    bootstrapped,
    bootstrapping,
    down,
    entry,
    ephemeral,
    not_bootstrapped,
    persistent,
    serving,
)

BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])


def _asked(state: ClusterState, size: int) -> ClusterState:
    return replace(state, desired=replace(state.desired, size=size))


@pytest.mark.parametrize(
    ("voters", "size", "least"),
    [
        (1, 1, 1),
        (2, 2, 2),
        (3, 3, 2),
        (4, 4, 3),
        (5, 5, 3),
        (3, 5, 3),
        (1, 3, 2),
        (5, 3, 3),
        (4, 3, 3),
        (7, 1, 4),
    ],
)
def test_a_quorum_of_the_larger_of_voters_and_members_asked_for_is_kept(
    voters: int, size: int, least: int
) -> None:
    assert min_available(_asked(bootstrapped(voters=voters), size)) == least


def test_a_learner_is_no_voter() -> None:
    state = _asked(bootstrapped(voters=3), 3)
    learner = serving(state.desired, "db-3", (), entry=entry("db-3", is_learner=True))

    assert min_available(replace(state, members=(*state.members, learner))) == 2


@BOTH
def test_a_settled_cluster_leaves_its_budget_alone(cluster: DesiredCluster) -> None:
    assert budget(bootstrapped(cluster)) is None


@BOTH
@pytest.mark.parametrize("found", [None, 1, 3])
def test_a_budget_that_is_missing_or_edited_is_put_right(cluster: DesiredCluster, found: int | None) -> None:
    made = plan(bootstrapped(cluster, budget=found))

    assert made.actions == (KeepBudget(min_available=2),)
    assert made.requeue_after is not None


@BOTH
def test_it_is_raised_before_the_first_learner_joins(cluster: DesiredCluster) -> None:
    state = _asked(bootstrapped(cluster), 5)

    first = plan(state)
    then = plan(replace(state, budget=3))

    assert first.actions == (KeepBudget(min_available=3),)
    assert isinstance(then.actions[0], AddLearner)


@BOTH
def test_it_is_lowered_only_when_the_voters_are_fewer(cluster: DesiredCluster) -> None:
    state = _asked(bootstrapped(cluster, voters=3), 1)

    first = plan(state)
    then = plan(annotated(replace(state, members=state.members[:1])))

    assert any(isinstance(action, RemoveMember) for action in first.actions)
    assert not any(isinstance(action, KeepBudget) for action in first.actions)
    assert then.actions == (KeepBudget(min_available=1),)


def test_a_lost_member_is_removed_whatever_the_budget_is() -> None:
    state = down(bootstrapped(ephemeral(), budget=None), "db-0001", pod=None)

    assert plan(state).actions == (RemoveMember(name="db-0001", member_id="id-db-0001"),)


def test_while_nobody_reports_who_votes_it_is_not_lowered() -> None:
    silent = down(
        bootstrapped(persistent(size=5), has_quorum=False), *(f"db-{n}" for n in range(5)), entry=None
    )

    assert budget(_asked(silent, 1)) is None
    assert budget(_asked(replace(silent, budget=None), 1)) is not None


@BOTH
def test_a_bootstrap_makes_it_with_the_services_for_the_initial_members_it_began_with(
    cluster: DesiredCluster,
) -> None:
    made = plan(_asked(bootstrapping(cluster, has_client_service=False, budget=None), 1))

    assert made.actions[-1] == KeepBudget(min_available=2)
    assert made.reason == "Creating"


def test_an_not_bootstrapped_cluster_has_no_budget_of_its_own_rule() -> None:
    assert budget(not_bootstrapped(persistent())) is None
    assert budget(bootstrapping(persistent(), budget=None)) is None


@pytest.mark.parametrize(
    ("ours", "count", "silent", "least"),
    [
        (3, 1, 0, 2),
        (3, 1, 1, 3),
        (3, 3, 0, 2),
        (3, 3, 1, 2),
        (3, 3, 2, 3),
        (3, 3, 3, 3),
        (1, 3, 3, 2),
    ],
)
def test_in_an_adoption_ours_replace_the_votes_of_external_members_that_are_down(
    ours: int, count: int, silent: int, least: int
) -> None:
    state = adopting(ours=ours, count=count)
    for number in range(silent):
        state = silent_external(state, number)

    assert min_available(state) == least
