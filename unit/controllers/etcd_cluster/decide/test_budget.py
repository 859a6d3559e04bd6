"""How many members an eviction must leave, and when that changes."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    KeepBudget,
    RemoveMember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.budget import min_available
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules.budget import budget
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, silent_external
from unit.controllers.etcd_cluster.decide.builders import (
    FULL_STORE,
    IMAGE_PROBLEM,
    annotated,
    answering,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    entry,
    ephemeral,
    not_bootstrapped,
    persistent,
    pod,
    serving,
)
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    NEW,
    OLD,
    at,
    away,
    led_by,
    names,
    on_record,
    to_upgrade,
    under_way,
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
    state = _asked(bootstrapped(cluster, voters=3, budget=3), 1)

    first = plan(state)
    then = plan(annotated(replace(state, members=state.members[:1])))

    assert any(isinstance(action, RemoveMember) for action in first.actions)
    assert not any(isinstance(action, KeepBudget) for action in first.actions)
    assert then.actions == (KeepBudget(min_available=1),)


def _removed(state: ClusterState, name: str, **changes: Any) -> ClusterState:
    """`state` after etcd has removed a member whose pod is still there."""
    listed = tuple(entry(member.name) for member in state.members if member.name != name)
    for member in state.members:
        if member.answer is not None:
            state = changed(state, member.name, answer=replace(member.answer, members=listed))
    member = state.by_name[name]
    gone = replace(member, entry=None, answer=None, pod=replace(member.pod or pod(name), **changes))
    return annotated(changed(state, name, entry=None, answer=None, pod=gone.pod))


@BOTH
@pytest.mark.parametrize(("voters", "size", "asked"), [(3, 2, 3), (3, 1, 3), (5, 4, 4), (7, 3, 5)])
def test_it_asks_for_one_more_before_a_voter_that_counts_is_removed(
    cluster: DesiredCluster, voters: int, size: int, asked: int
) -> None:
    """Kubernetes does not know of the removal for a moment: two of three voters would have to go on alone."""
    state = _asked(bootstrapped(cluster, voters=voters), size)

    first = plan(state)
    then = plan(replace(state, budget=asked))

    assert first.actions == (KeepBudget(min_available=asked),)
    assert any(isinstance(action, RemoveMember) for action in then.actions)


@pytest.mark.parametrize("voters", [2, 4, 6])
def test_an_even_number_of_voters_needs_no_more(voters: int) -> None:
    state = _asked(bootstrapped(ephemeral(), voters=voters), voters - 1)

    assert any(isinstance(action, RemoveMember) for action in plan(state).actions)


def test_a_voter_that_does_not_serve_does_not_count_and_is_removed_at_once() -> None:
    state = down(_asked(bootstrapped(ephemeral(), voters=3), 2), "db-0001")
    hidden = replace(state.by_name["db-0001"].pod or pod("db-0001"), serves=False)

    assert any(
        isinstance(action, RemoveMember) for action in plan(changed(state, "db-0001", pod=hidden)).actions
    )


@BOTH
@pytest.mark.parametrize(
    ("changes", "asked"), [({}, 3), ({"serves": False}, 2), ({"is_terminating": True}, 2)]
)
def test_it_is_not_lowered_while_the_pod_of_a_removed_member_counts(
    cluster: DesiredCluster, changes: dict[str, bool], asked: int
) -> None:
    state = _asked(bootstrapped(cluster, voters=3, budget=3), 2)
    name = state.members[-1].name
    made = budget(_removed(state, name, **changes))

    assert (made.actions if made is not None else ()) == (
        () if asked == 3 else (KeepBudget(min_available=asked),)
    )


@BOTH
@pytest.mark.parametrize(("voters", "asked"), [(3, 3), (4, 4), (5, 4), (7, 5)])
def test_it_asks_for_one_more_before_an_upgrade_stops_a_member(
    cluster: DesiredCluster, voters: int, asked: int
) -> None:
    """A kubelet reports a second or two later that the container has ended."""
    state = to_upgrade(replace(cluster, size=voters), runs=(OLD,) * voters)
    highest = names(state)[-1]

    assert plan(state).actions == (KeepBudget(min_available=asked),)
    raised = replace(state, budget=asked)
    assert plan(raised).actions[1:] == (ReplaceMember(name=highest, version=NEW),)
    led = led_by(state, highest)
    assert plan(led).actions == (KeepBudget(min_available=asked),)


@pytest.mark.parametrize("voters", [1, 2])
def test_where_each_member_counts_an_upgrade_needs_no_more(voters: int) -> None:
    state = to_upgrade(ephemeral(size=voters), runs=(OLD,) * voters)

    assert any(isinstance(action, ReplaceMember) for action in plan(state).actions)


def test_it_asks_for_one_more_until_the_upgrade_has_ended_or_is_blocked() -> None:
    """In between it would be two more writes for each member. A blocked upgrade may last for days."""
    raised = replace(away(), budget=3)
    assert budget(raised) is None
    assert budget(replace(to_upgrade(runs=(NEW, NEW, NEW), upgrading="db-0000"), budget=3)) is None

    hidden = replace(raised.by_name["db-0002"].pod or pod("db-0002"), serves=False)
    blocked = changed(raised, "db-0002", pod=hidden, problem=IMAGE_PROBLEM)
    ended = replace(to_upgrade(runs=(NEW, NEW, NEW)), budget=3)
    for state in (blocked, ended):
        made = budget(state)
        assert made is not None
        assert made.actions == (KeepBudget(min_available=2),)


@BOTH
@pytest.mark.parametrize("size", [3, 5])
def test_it_is_lowered_while_an_upgrade_waits_for_a_member_that_it_has_not_stopped(
    cluster: DesiredCluster, size: int
) -> None:
    """That may last for days, and the node of that member may have to be drained to repair it."""
    state = to_upgrade(replace(cluster, size=size), runs=(OLD,) * (size - 1) + (NEW,))
    *_, other, last = names(state)
    state = replace(on_record(state, under_way(last)), budget=state.quorum + 1)
    hidden = replace(state.by_name[other].pod or pod(other), serves=False)

    assert budget(changed(state, other, answer=None)) is None, "its pod counts"
    assert plan(changed(state, other, answer=None, pod=hidden)).actions == (
        KeepBudget(min_available=state.quorum),
    )
    stopped = changed(changed(state, last, answer=None), other, answer=None, pod=hidden)
    assert budget(stopped) is None, "the pod of the one that it has stopped counts"
    ending = at(changed(state, other, answer=None, pod=hidden), last, OLD, requested=NEW)
    assert budget(ending) is None, "the one that it is stopping still answers"


def test_it_is_lowered_while_an_upgrade_waits_for_space() -> None:
    state = replace(to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"), budget=3)
    full = answering(state, *names(state), **FULL_STORE)

    assert budget(state) is None
    assert plan(full).actions == (KeepBudget(min_available=2),)


def _in_former_pod(state: ClusterState) -> ClusterState:
    """The first member still runs in a pod of the operator from which it was taken over."""
    for member in state.members:
        state = changed(state, member.name, has_replica_set=True)
    first = state.members[0]
    former = replace(first.pod or pod(first.name), is_gated=False, serves=None)
    return changed(state, first.name, pod=former, has_replica_set=False)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(to_upgrade(persistent()), id="an upgrade"),
        pytest.param(_asked(bootstrapped(), 1), id="a removal"),
    ],
)
def test_nothing_more_is_asked_for_while_a_planned_change_waits_for_a_person(state: ClusterState) -> None:
    """It may wait for days."""
    waiting = _in_former_pod(state)

    assert (plan(waiting).reason, plan(waiting).actions) == ("OtherOperator", ())
    assert plan(state).actions == (KeepBudget(min_available=3),)


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
