"""What the two kinds of member decide differently, one question after the other."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind, Numbers
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodProblem
from unit.controllers.etcd_cluster.decide.builders import ephemeral, persistent, pod, silent

KINDS = pytest.mark.parametrize("kind", [PERSISTENT, EPHEMERAL], ids=["persistent", "ephemeral"])


def _of(kind: Kind, **changes: Any) -> Member:
    cluster: DesiredCluster = persistent() if kind is PERSISTENT else ephemeral()
    return silent(cluster, f"db-{1:0{kind.digits}d}", **changes)


def _numbers(**changes: Any) -> Numbers:
    """Three members with the numbers 0 to 2; 4 is the first that was never used."""
    three = frozenset({0, 1, 2})
    numbers = Numbers(size=3, taken=three, leaving=frozenset(), known=three, unused=4)
    return replace(numbers, **changes)


@pytest.mark.parametrize(
    ("kind", "numbers", "following"),
    [
        pytest.param(PERSISTENT, _numbers(), 3, id="persistent: the next one"),
        pytest.param(PERSISTENT, _numbers(taken=frozenset({0, 2})), 1, id="persistent: a gap is filled"),
        pytest.param(
            PERSISTENT,
            _numbers(taken=frozenset({0}), leaving=frozenset({1})),
            2,
            id="persistent: one that is still being deleted comes last",
        ),
        pytest.param(EPHEMERAL, _numbers(), 4, id="ephemeral: one that was never used"),
        pytest.param(EPHEMERAL, _numbers(known=frozenset({7})), 8, id="ephemeral: nor that of a member"),
    ],
)
def test_the_number_of_a_new_member(kind: Kind, numbers: Numbers, following: int) -> None:
    assert kind.next_ordinal(numbers) == following


def test_the_highest_number_of_persistent_members_leaves_first_and_the_oldest_ephemeral_one() -> None:
    members = [Member(name=name) for name in ("db-9", "db-10", "db-2")]
    assert [m.ordinal for m in sorted(members, key=PERSISTENT.departure)] == [10, 9, 2]
    assert [m.ordinal for m in sorted(members, key=EPHEMERAL.departure)] == [2, 9, 10]


@KINDS
def test_the_storage_of_a_member_is_its_claim_or_its_pod(kind: Kind) -> None:
    member = _of(kind)
    assert kind.storage_of(member) is (member.claim if kind is PERSISTENT else member.pod)


@pytest.mark.parametrize(
    ("facts", "is_lost"),
    [
        ({}, False),
        ({"has_lost_claim": True}, True),
        ({"problem": PodProblem(reason="ClaimLost", message="words")}, False),
        ({"has_replica_set": True}, True),
        ({"peer": None}, True),
    ],
    ids=["only just made", "found", "only words", "after its ReplicaSet", "after its EtcdPeer"],
)
def test_a_claim_that_is_missing_is_lost_by_facts(facts: dict[str, Any], is_lost: bool) -> None:
    assert PERSISTENT.is_storage_lost(_of(PERSISTENT, claim=None, **facts)) is is_lost
    assert not PERSISTENT.is_storage_lost(_of(PERSISTENT, **facts)), "there is a claim"


@KINDS
def test_a_pod_that_failed_ends_only_a_member_that_has_no_replica_set(kind: Kind) -> None:
    failed = _of(kind, pod=pod("db-1", is_finished=True))
    assert (kind.has_ended(failed), kind.may_keep_data(failed)) == (
        (False, True) if kind is PERSISTENT else (True, False)
    )


@KINDS
def test_only_data_in_a_pod_is_lost_with_its_node(kind: Kind) -> None:
    member = _of(kind, pod=pod("db-1", node="n1"))
    assert kind.node_to_check(member) == ("" if kind is PERSISTENT else "n1")


def test_no_node_is_checked_without_a_pod_or_where_the_pod_shows_the_loss() -> None:
    assert EPHEMERAL.node_to_check(_of(EPHEMERAL, pod=None)) == ""
    known = _of(EPHEMERAL, pod=pod("db-1", node="n1", is_on_lost_node=True))
    assert EPHEMERAL.node_to_check(known) == ""
