"""Members, numbers and quorum arithmetic; names; the state's own questions."""

import pytest

from etcd_operator.controllers.etcd_cluster.decide.members import Health, Member, quorum
from etcd_operator.controllers.shared.decide.clusters import cluster_of_member, is_member_name, ordinal_of
from etcd_operator.etcd.values import Refused
from unit.controllers.etcd_cluster.decide.builders import (
    AN_ERROR,
    FULL_STORE,
    answer,
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    persistent,
    pod,
)

BAD = ("memberID:7 alarm:CORRUPT ",)


@pytest.mark.parametrize(
    ("voters", "needed"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)]
)
def test_a_quorum_is_more_than_half(voters: int, needed: int) -> None:
    assert quorum(voters) == needed


def test_members_are_ordered_by_number_and_ten_comes_after_nine() -> None:
    names = ["my-db-10", "my-db-9", "my-db-0", "my-db-0011"]
    assert sorted(names, key=ordinal_of) == ["my-db-0", "my-db-9", "my-db-10", "my-db-0011"]
    assert Member(name="my-db-10").ordinal > Member(name="my-db-9").ordinal


def test_a_member_is_named_after_its_cluster() -> None:
    names = ("db-0", "db-10", "db", "db-", "db-x", "db-²", "db-٣", "other-0", "db-1-0", "")
    assert [name for name in names if is_member_name(name, "db")] == ["db-0", "db-10"]
    assert cluster_of_member("db-1-0") == "db-1"


@pytest.mark.parametrize(
    ("ordinal", "durable", "bare"),
    [(0, "db-0", "db-0000"), (10, "db-10", "db-0010"), (12345, "db-12345", "db-12345")],
)
def test_members_are_named_after_their_cluster_and_number(ordinal: int, durable: str, bare: str) -> None:
    assert persistent().member_name(ordinal) == durable
    assert ephemeral().member_name(ordinal) == bare


@pytest.mark.parametrize(
    ("member", "health"),
    [
        (Member(name="db-0"), Health.NO_ANSWER),
        (Member(name="db-0", answer=answer("db-0")), Health.HEALTHY),
        (Member(name="db-0", answer=answer("db-0", leader="")), Health.UNHEALTHY),
        (Member(name="db-0", answer=answer("db-0", **AN_ERROR)), Health.UNHEALTHY),
        (Member(name="db-0", answer=answer("db-0", errors=BAD, corrupt=frozenset({"7"}))), Health.HEALTHY),
        (
            Member(name="db-0", answer=answer("db-0", errors=BAD, corrupt=frozenset({"id-db-0"}))),
            Health.UNHEALTHY,
        ),
        (Member(name="db-0", refusal=Refused()), Health.REFUSED),
        (Member(name="db-0", answer=answer("db-0", **FULL_STORE)), Health.HEALTHY),
        (Member(name="db-0", answer=answer("db-0", leader="", **FULL_STORE)), Health.UNHEALTHY),
        (Member(name="db-0", answer=answer("db-0", **FULL_STORE | AN_ERROR)), Health.UNHEALTHY),
    ],
    ids=[
        "silent",
        "follows a leader",
        "without a leader",
        "with an error",
        "beside a member with corrupt data",
        "with corrupt data",
        "requires authentication",
        "with a full store",
        "with a full store and without a leader",
        "with a full store and an error",
    ],
)
def test_the_health_of_a_member(member: Member, health: Health) -> None:
    assert member.health is health
    assert member.is_healthy is (health is Health.HEALTHY)


@pytest.mark.parametrize(
    ("member", "may"),
    [
        (Member(name="db-0"), False),
        (Member(name="db-0", pod=pod("db-0", has_run=False)), False),
        (Member(name="db-0", pod=pod("db-0")), True),
        (Member(name="db-0", pod=pod("db-0"), never_led=True), False),
        (Member(name="db-0", has_replica_set=True), True),
        (Member(name="db-0", has_replica_set=True, pod=pod("db-0"), never_led=True), True),
    ],
    ids=[
        "no pod",
        "never started",
        "started",
        "proven",
        "started before",
        "not its first pod",
    ],
)
def test_a_member_that_ran_may_have_served_unless_proven_otherwise(member: Member, may: bool) -> None:
    assert member.may_have_served is may


# The state's own questions


def test_only_answering_voters_are_healthy_voters() -> None:
    state = changed(down(bootstrapped(), "db-1"), "db-2", entry=entry("db-2", is_learner=True))

    assert [member.name for member in state.healthy_voters] == ["db-0"]


def test_the_leader_is_the_one_that_most_healthy_voters_follow() -> None:
    state = changed(bootstrapped(), "db-2", answer=answer("db-2", leader="id-db-2"))

    assert state.leader is not None
    assert state.leader.name == "db-0"


def test_there_is_no_leader_without_healthy_voters_or_outside_the_list() -> None:
    assert down(bootstrapped(), "db-0", "db-1", "db-2").leader is None
    state = bootstrapped(voters=1)
    assert changed(state, "db-0", answer=answer("db-0", leader="id-db-9")).leader is None
