"""Reasons to do nothing at all."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMemberService, KeepBudget, Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules import guard
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from etcd_operator.controllers.shared.decide.holds import CATCH_UP
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import (
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    desired,
    down,
    ephemeral,
    not_bootstrapped,
    persistent,
    refusing,
    without,
)

DELETING = persistent(is_deleting=True)
PAUSED = persistent(is_paused=True)
INVALID = persistent(problem="spec.replicas is missing")

HELD = [
    pytest.param(
        not_bootstrapped(DELETING), "Deleting", None, id="a deleted cluster is left to its owner references"
    ),
    pytest.param(not_bootstrapped(PAUSED), "Paused", None, id="a paused cluster is left alone"),
    pytest.param(not_bootstrapped(INVALID), "InvalidSpec", None, id="an invalid spec is not acted on"),
    pytest.param(
        not_bootstrapped(persistent(), conflict="db is taken"),
        "NameConflict",
        10.0,
        id="a taken name is left alone",
    ),
    pytest.param(
        not_bootstrapped(persistent(), unseen=Unseen(reason="ObjectUnreadable", message="a pod")),
        "ObjectUnreadable",
        10.0,
        id="what cannot be read may exist",
    ),
]


@pytest.mark.parametrize(("state", "reason", "requeue"), HELD)
def test_nothing_is_done_while_something_outside_must_change(
    state: ClusterState, reason: str, requeue: float | None
) -> None:
    made = plan(state)

    assert made.actions == ()
    assert made.stage is Stage.HELD
    assert made.reason == reason
    assert made.requeue_after == requeue


def test_an_observation_that_remains_stale_is_reported() -> None:
    behind = Unseen(reason="CacheBehind", message="of pods")
    made = plan(not_bootstrapped(persistent(), is_fresh=False, unseen=behind))

    assert (made.actions, made.stage, made.reason, made.message) == ((), Stage.HELD, "CacheBehind", "of pods")


def test_a_stale_observation_is_repeated_soon_and_is_no_problem() -> None:
    made = plan(not_bootstrapped(persistent(), is_fresh=False))

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "CatchingUp")
    assert made.requeue_after == CATCH_UP


def test_two_cluster_ids_among_the_answers_are_a_split_brain() -> None:
    foreign = answer("db-2", cluster_id="feed")
    made = guard.split(changed(bootstrapping(persistent()), "db-1", answer=answer("db-1")))
    assert made is None

    state = changed(
        changed(bootstrapping(persistent()), "db-1", answer=answer("db-1")), "db-2", answer=foreign
    )
    made = plan(state)

    assert (made.reason, made.stage, made.actions) == ("SplitBrain", Stage.HELD, ())
    assert "cdf818194e3a8c32, feed" in made.message
    assert made.requeue_after == 10.0


def test_one_answer_of_another_cluster_than_the_recorded_one_is_a_split_brain() -> None:
    state = bootstrapped(voters=1)
    foreign = answer("db-0", cluster_id="feed")

    made = plan(changed(state, "db-0", answer=foreign))

    assert (made.reason, made.stage, made.actions) == ("SplitBrain", Stage.HELD, ())


# The order of the guards: of two reasons the earlier is the one that is reported.
ORDER = ["Deleting", "Paused", "InvalidSpec", "CatchingUp", "Unseen", "NameConflict", "SplitBrain"]


def _with_every_reason_from(first: int) -> ClusterState:
    cluster = desired(is_deleting=first <= 0, is_paused=first <= 1, problem="no size" if first <= 2 else "")
    state = changed(bootstrapped(voters=1), "db-0", answer=answer("db-0", cluster_id="feed"))
    return replace(
        state,
        desired=replace(cluster, persisted=state.persisted),
        is_fresh=first > 3,
        unseen=Unseen(reason="Unseen", message="a pod") if first == 4 else None,
        conflict="taken" if first <= 5 else "",
        has_client_service=False,
    )


@pytest.mark.parametrize("first", range(7), ids=ORDER)
def test_of_several_reasons_the_first_in_order_is_reported(first: int) -> None:
    made = plan(_with_every_reason_from(first))

    assert made.reason == ORDER[first]
    assert made.actions == ()


LOCKED = [
    pytest.param(refusing(bootstrapped(persistent(size=3))), id="persistent members"),
    pytest.param(refusing(bootstrapped(ephemeral(size=3))), id="ephemeral members"),
    pytest.param(refusing(bootstrapped(persistent(size=5), voters=3)), id="too few members"),
    pytest.param(refusing(bootstrapped(persistent(size=1), voters=3)), id="too many members"),
    pytest.param(refusing(bootstrapped(persistent(version="3.7.3"))), id="another version is asked for"),
    pytest.param(
        refusing(bootstrapped(ephemeral(size=3)), "db-0001"), id="one refuses, the others lag behind"
    ),
    pytest.param(
        refusing(without(bootstrapped(ephemeral(size=3), has_quorum=False), "db-0001", "db-0002")),
        id="a survivor of ephemeral members",
    ),
    pytest.param(refusing(bootstrapping(persistent())), id="a bootstrap that is not recorded yet"),
]


@pytest.mark.parametrize("state", LOCKED)
def test_members_that_answer_only_users_are_not_changed_and_the_reason_is_reported(
    state: ClusterState,
) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "AuthEnabled")


def test_what_needs_no_user_is_made_again_where_members_answer_only_users() -> None:
    state = refusing(bootstrapped(persistent(size=3)))
    lost = changed(down(state, "db-1"), "db-1", peer=None, pod=None, refusal=None)

    assert [type(action).__name__ for action in plan(lost).actions] == ["CreateMember"]
    bare = replace(state, has_client_service=False)
    assert [type(action).__name__ for action in plan(bare).actions] == ["CreateClientService"]
    assert plan(replace(state, budget=None)).actions == (KeepBudget(min_available=2),)
    served = refusing(bootstrapped(ephemeral(size=3)))
    made = plan(changed(served, "db-0001", has_service=False))
    assert made.actions == (CreateMemberService(name="db-0001"),)


def test_a_cluster_that_no_rule_has_a_plan_for_is_settled() -> None:
    assert plan(bootstrapped()) == Plan.settled()
    assert plan(bootstrapped(ephemeral())) == Plan.settled()


def test_members_that_nobody_here_made_hold_every_membership_change() -> None:
    state = bootstrapped(persistent(size=3))
    foreign = EtcdMember(id="77", name="", peer_urls=("http://elsewhere:2380",))
    grown = replace(state, unknown_members=(foreign,), desired=replace(state.desired, size=5))
    made = plan(grown)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UnknownMember")


def test_unknown_members_are_named_with_the_ids_by_which_etcdctl_removes_them() -> None:
    unknown = EtcdMember(id="77", name="other", peer_urls=("http://elsewhere:2380",))

    assert "(other (77))" in plan(bootstrapped(unknown_members=(unknown,))).message
