"""Somebody removes all members of ours from etcd, with etcdctl, in the middle of an adoption."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unit.controllers.etcd_cluster.test_adopt import Make, adopt
from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import MAKERS, PEERS
from unit.passes.externals import Externals, externals, is_external


@contextmanager
def removed(
    make: Make, count: int, ours: int, *, learner: bool = False
) -> Iterator[tuple[Bench, Externals, Kind, list[int]]]:
    """After that many members of ours have joined, of whom the last one may still learn; and their IDs."""
    with bench() as made:
        theirs = externals(made, count)
        kind, body = make(adopt=adopt(theirs, "Join"), version="3.6.16")
        made.start()
        made.create(kind, body)
        made.run_until(lambda: len(ids_of_ours(theirs)) == ours and has_run(theirs, learner=learner))
        former = ids_of_ours(theirs)
        made.clock.advance(10.0)
        for member_id in former:
            with theirs.etcd.changed:
                theirs.etcd.remove(theirs.etcd.member("old-0"), member_id)
        made.run_until(lambda: "kubectl delete" in made.condition(kind, "Degraded").get("message", ""))
        yield made, theirs, kind, former


def ids_of_ours(theirs: Externals) -> list[int]:
    """In the order in which they joined."""
    return [member.id for member in theirs.etcd.members if not is_external(member)]


def has_run(theirs: Externals, *, learner: bool) -> bool:
    """Whether all of ours run, and the last one learns or not."""
    last = theirs.etcd.members[-1]
    return bool(last.name) and last.is_learner is learner


def obey(made: Bench, kind: Kind, *, drains: bool) -> None:
    """Do what the message says, as kubectl does it. drains: the operator acts before each deletion."""
    command = made.condition(kind, "Degraded")["message"].partition("kubectl delete ")[2].partition(";")[0]
    what, *names = command.split(" ")
    kinds = {"pod": PODS, "service": SERVICES, "pvc": CLAIMS, "etcdpeer": PEERS}
    for each in what.split(","):
        for name in names:
            if drains:
                made.drain()
            if name in made.names(kinds[each]):
                made.delete(kinds[each], name)


CASES = pytest.mark.parametrize(
    ("count", "ours", "learner"),
    [(1, 1, False), (1, 1, True), (3, 1, False), (3, 2, False), (3, 3, False)],
    ids=["one of two", "a learner", "one of four", "two of five", "three of six"],
)


@pytest.mark.parametrize("drains", [True, False])
@CASES
@MAKERS
def test_others_join_when_a_person_has_deleted_what_the_message_names(
    make: Make, count: int, ours: int, learner: bool, drains: bool
) -> None:
    with removed(make, count, ours, learner=learner) as (made, theirs, kind, former):
        assert made.reason(kind) == "QuorumLost"
        obey(made, kind, drains=drains)
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "Joined", turns=2000)
        assert len(ids_of_ours(theirs)) == 3
        assert set(ids_of_ours(theirs)).isdisjoint(former)
        made.edit(kind, "c", {"spec": {"adopt": {"mode": "Complete"}}})
        made.settle()
        assert theirs.left == []
        assert made.status(kind)["adoption"]["finished"] is True
        assert theirs.etcd.keys[b"key"][0] == b"value"


@MAKERS
def test_until_then_nothing_is_changed(make: Make) -> None:
    """The external member may have lost its data: then ours have the last copies."""
    with removed(make, 1, 1) as (made, theirs, _kind, _):
        before = made.objects()
        made.wait(120.0)
        assert made.objects() == before
        assert theirs.left == ["old-0"]
        made.rest()


@MAKERS
def test_such_an_adoption_can_be_turned_back(make: Make) -> None:
    with removed(make, 3, 2) as (made, theirs, kind, _):
        made.edit(kind, "c", {"spec": {"adopt": {"mode": "Leave"}}})
        obey(made, kind, drains=True)
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "TurnedBack")
        made.wait(30.0)
        assert (made.objects()["pods"], made.objects()["claims"]) == ([], [])
        assert theirs.left == ["old-0", "old-1", "old-2"]
        made.rest()
