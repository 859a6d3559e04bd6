"""A persistent resource that is deleted and created again in the middle of an adoption goes on with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from etcd_operator.api.shared_keys import INITIAL_MEMBERS_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.first_start import LONG_BOOTSTRAP
from unit.controllers.etcd_cluster.test_adopt import Make, adopt, assert_adopted
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import MAKERS, PEERS, persistent
from unit.passes.externals import Externals, externals, is_external

Until = Callable[[Bench, Externals], bool]


@contextmanager
def made_again(until: Until, mode: str, **changes: Any) -> Iterator[tuple[Bench, Externals, Kind]]:
    """A resource that is created again, once `until` holds, with `changes` of its spec."""
    with bench() as made:
        theirs = externals(made)
        asked: Json = {"adopt": adopt(theirs, mode), "version": "3.6.16"}
        kind, body = persistent(**asked)
        made.start()
        made.create(kind, body)
        made.run_until(lambda: until(made, theirs))
        made.delete(kind, "c")
        made.run_until(lambda: not made.objects()["pods"])
        _, again = persistent(**{name: value for name, value in (asked | changes).items() if value})
        made.create(kind, again)
        yield made, theirs, kind


def ours(theirs: Externals) -> int:
    """How many of our members vote."""
    return len(theirs.etcd.voters) - len(theirs.left)


INTERRUPTED = [
    pytest.param(lambda made, theirs: not made.objects()["claims"], id="nothing was made"),
    pytest.param(lambda made, theirs: ours(theirs) == 1, id="one of ours has joined"),
    pytest.param(lambda made, theirs: ours(theirs) == 2, id="two have"),
    pytest.param(lambda made, theirs: ours(theirs) == 3, id="all have"),
    pytest.param(lambda made, theirs: len(theirs.left) == 2, id="one external member was removed"),
    pytest.param(lambda made, theirs: len(theirs.left) == 1, id="two were"),
    pytest.param(lambda made, theirs: not theirs.left, id="all were"),
]


@pytest.mark.parametrize("until", INTERRUPTED)
def test_an_adoption_goes_on_where_it_was(until: Until) -> None:
    with made_again(until, "Complete") as (made, theirs, kind):
        made.settle()
        assert_adopted(made, kind, theirs)


def test_ours_are_kept_beside_the_external_members_until_a_person_completes_the_adoption() -> None:
    with made_again(lambda made, theirs: ours(theirs) == 3, "Join") as (made, theirs, kind):
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "Joined")
        assert (len(theirs.left), ours(theirs)) == (3, 3)
        made.edit(kind, "c", {"spec": {"adopt": {"mode": "Leave"}}})
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "TurnedBack")
        assert [m.name for m in theirs.etcd.members] == ["old-0", "old-1", "old-2"]


def test_without_spec_adopt_a_person_is_asked_to_put_it_back_and_it_goes_on() -> None:
    with made_again(lambda made, theirs: ours(theirs) == 2, "Complete", adopt=None) as (made, theirs, kind):
        made.run_until(lambda: made.reason(kind) == "UnknownMember")
        assert "set spec.adopt again" in made.condition(kind, "Degraded")["message"]
        assert len(theirs.left) == 3
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.settle()
        assert_adopted(made, kind, theirs)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [2, 3], ids=["ours are fewer", "ours are half"])
def test_without_spec_adopt_external_members_are_not_given_up_without_a_person(number: int) -> None:
    """Nobody answers: ours have started again without a quorum, so their data is read."""
    changes = {"adopt": None, "recovery": "Automatic", "recoveryAfterSeconds": 120}
    with made_again(lambda made, theirs: ours(theirs) == number, "Join", **changes) as (made, theirs, kind):
        for name in theirs.left:
            theirs.etcd.stop(name)
        made.wait(LONG_BOOTSTRAP)
        made.run_until(lambda: made.reason(kind) == "QuorumLost")
        made.wait(300.0)
        assert "recovery" not in made.status(kind)
        message = made.condition(kind, "Degraded")["message"]
        assert message.startswith("old-0 (not a member of this resource), old-1 (not a member")
        assert message.endswith("set spec.adopt again instead")
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs, "Complete")}})
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        for old in [member for member in theirs.etcd.members if is_external(member)]:
            theirs.etcd.start(old.name, peer_url=old.peer_urls[0], address=old.endpoint)
        made.settle()
        assert_adopted(made, kind, theirs)


WRONG = {"endpoints": [f"http://old-{number}.elsewhere.svc:2379" for number in range(3)]}


def test_endpoints_that_lead_nowhere_are_corrected_and_it_goes_on() -> None:
    with made_again(lambda made, theirs: ours(theirs) == 2, "Complete", adopt=WRONG) as (made, theirs, kind):
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        made.run_until(lambda: "or correct the endpoints" in made.condition(kind, "Degraded")["message"])
        assert len(theirs.left) == 3
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.settle()
        assert_adopted(made, kind, theirs)


def test_an_adoption_that_is_withdrawn_although_it_has_not_ended_is_put_back() -> None:
    with made_again(lambda made, theirs: ours(theirs) == 2, "Complete", adopt=WRONG) as (made, theirs, kind):
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        made.edit(kind, "c", {"spec": {"adopt": None}})
        made.run_until(lambda: made.reason(kind) == "UnknownMember")
        made.wait(30.0)
        assert "adoption" not in made.status(kind)
        assert (len(theirs.left), ours(theirs)) == (3, 2)
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.settle()
        assert_adopted(made, kind, theirs)


def test_an_adoption_that_had_ended_is_withdrawn_where_that_is_not_known() -> None:
    """Another cluster answers at the endpoints."""
    with made_again(lambda made, theirs: not theirs.left, "Complete", adopt=None) as (made, theirs, kind):
        made.settle()
        other = externals(made, cluster_id=0xB0B)
        made.edit(kind, "c", {"spec": {"adopt": adopt(other)}})
        made.run_until(lambda: made.reason(kind) == "AdoptionRefused")
        assert "so spec.adopt has no effect" in made.condition(kind, "Degraded")["message"]
        made.wait(30.0)
        assert "adoption" not in made.status(kind)
        made.delete(kind, "c")
        made.run_until(lambda: not made.objects()["pods"])
        made.create(kind, persistent(version="3.6.16", adopt=adopt(other))[1])
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        made.edit(kind, "c", {"spec": {"adopt": None}})
        made.settle()
        assert made.status(kind)["clusterID"] == "ada"
        assert (len(other.left), ours(theirs)) == (3, 3)


def test_an_external_member_that_is_silent_is_not_forgotten() -> None:
    with made_again(lambda made, theirs: ours(theirs) == 3, "Complete") as (made, theirs, kind):
        old = theirs.etcd.member("old-1")
        peer_url, address = old.peer_urls[0], old.endpoint
        theirs.etcd.stop("old-1")
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        made.run_until(lambda: "old-1" in made.condition(kind, "Degraded")["message"])
        assert len(theirs.left) == 3
        theirs.etcd.start("old-1", peer_url=peer_url, address=address)
        made.settle()
        assert_adopted(made, kind, theirs)


@pytest.mark.parametrize("silent", [(), ("old-0", "old-1", "old-2")], ids=["they answer", "they are silent"])
def test_claims_of_a_cluster_that_was_bootstrapped_here_do_not_end_an_adoption(
    silent: tuple[str, ...],
) -> None:
    """A first try without spec.adopt, which was deleted: its claims are left."""
    with bench() as made:
        kind, first = persistent(version="3.6.16")
        made.start()
        made.create(kind, first)
        made.settle()
        first_id = made.status(kind)["clusterID"]
        made.delete(kind, "c")
        made.run_until(lambda: not made.etcd_runs())
        theirs = externals(made)
        for name in silent:
            theirs.etcd.stop(name)
        _, again = persistent(version="3.6.16", adopt=adopt(theirs))
        made.create(kind, again)
        made.wait(60.0)
        assert made.reason(kind) == "AdoptionRefused"
        assert "adoption" not in made.status(kind)
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        made.rest()
        made.edit(kind, "c", {"spec": {"adopt": None}})
        made.settle()
        assert made.status(kind)["clusterID"] == first_id


def test_claims_that_do_not_record_a_bootstrap_are_not_taken_for_an_adoption_of_another_cluster() -> None:
    """All initial members of the first try were replaced, or another operator had bootstrapped it."""
    with bench() as made:
        kind, first = persistent(version="3.6.16")
        made.start()
        made.create(kind, first)
        made.settle()
        made.delete(kind, "c")
        made.run_until(lambda: not made.etcd_runs())
        for name in made.names(CLAIMS):
            made.edit(CLAIMS, name, {"metadata": {"annotations": {INITIAL_MEMBERS_ANNOTATION: None}}})
        theirs = externals(made)
        _, again = persistent(version="3.6.16", adopt=adopt(theirs))
        made.create(kind, again)
        made.run_until(lambda: made.reason(kind) == "AdoptionUnclear")
        made.wait(60.0)
        assert "finished" not in made.status(kind)["adoption"]
        assert "members of another cluster answer" in made.condition(kind, "Degraded")["message"]


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


@pytest.mark.exhaustive
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
