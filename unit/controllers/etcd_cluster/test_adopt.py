"""Adoptions of running clusters, from the resource to the last member that is removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives, survives_lag
from unit.passes.expected import assert_finished
from unit.passes.externals import Externals, externals, is_external

Make = Callable[..., tuple[Kind, Json]]


def adopt(theirs: Externals, mode: str = "Complete") -> Json:
    """The part of a spec that names them."""
    return {"endpoints": list(theirs.endpoints), "mode": mode}


@contextmanager
def joined(make: Make) -> Iterator[tuple[Bench, Externals, Kind]]:
    """A resource whose members have all joined; the external ones are kept."""
    with bench() as made:
        theirs = externals(made)
        kind, body = make(adopt=adopt(theirs, "Join"), version="3.6.16")
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "Joined")
        yield made, theirs, kind


def assert_adopted(made: Bench, kind: Kind, theirs: Externals, size: int = 3) -> None:
    """Only our members are left, of the same cluster, with its data."""
    assert theirs.left == []
    assert made.status(kind)["clusterID"] == "ada"
    assert made.status(kind)["adoption"]["finished"] is True
    assert theirs.etcd.keys[b"key"][0] == b"value"
    assert_finished(made, kind, size)


@pytest.mark.parametrize("count", [1, 3])
@MAKERS
def test_our_members_take_the_place_of_the_external_ones(make: Make, count: int) -> None:
    with bench() as made:
        theirs = externals(made, count)
        kind, body = make(adopt=adopt(theirs), version="3.6.16")
        made.start()
        made.create(kind, body)
        made.settle()
        assert_adopted(made, kind, theirs)
        assert "AdoptionStarted" in made.event_reasons()
        assert "Adopted" in made.event_reasons()


def test_the_documents_boot_member_is_replaced() -> None:
    with bench() as made:
        theirs = externals(made, 1)
        made.start()
        kind, body = ephemeral(selfHosted={"bootMemberClientEndpoint": theirs.endpoints[0]})
        made.create(kind, body)
        made.settle()
        assert_adopted(made, kind, theirs)


@pytest.mark.exhaustive
@MAKERS
def test_no_external_member_is_asked_to_remove_another(make: Make) -> None:
    """It may accept what ours refuse: it may run with other flags."""
    with joined(make) as (made, theirs, kind):
        ours = [member for member in theirs.etcd.members if not is_external(member)]
        for member in ours:
            member.is_misled = True
        made.edit(kind, "c", {"spec": {"adopt": {"mode": "Complete"}}})
        made.wait(20.0)
        assert len(theirs.left) == 3
        for member in ours:
            member.is_misled = False
        made.settle()
        assert_adopted(made, kind, theirs)


@MAKERS
def test_the_leadership_moves_to_a_member_of_ours_before_any_external_one_is_removed(make: Make) -> None:
    with joined(make) as (made, theirs, kind):
        assert theirs.etcd.leader is not None
        assert theirs.etcd.leader.name == "old-0"
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.run_until(lambda: len(theirs.left) < 3)
        assert theirs.etcd.leader.name.startswith("c-")
        made.settle()
        assert_adopted(made, kind, theirs)


@pytest.mark.exhaustive
@MAKERS
def test_before_the_first_removal_an_adoption_can_be_turned_back_and_begun_again(make: Make) -> None:
    with joined(make) as (made, theirs, kind):
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs, "Leave")}})
        made.run_until(lambda: [m.name for m in theirs.etcd.members] == ["old-0", "old-1", "old-2"])
        made.wait(30.0)
        assert made.objects()["pods"] == []
        assert made.objects()["claims"] == []
        assert made.condition(kind, "Progressing")["reason"] == "TurnedBack"
        made.rest()

        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.settle()
        assert theirs.left == []
        if kind is not COREOS:
            assert_adopted(made, kind, theirs)


def pause(made: Bench, kind: Kind, value: str) -> None:
    """As both groups have it."""
    if kind is COREOS:
        made.edit(kind, "c", {"spec": {"paused": value == "true"}})
    else:
        made.edit(kind, "c", {"metadata": {"annotations": {"etcd.improbable.io/paused": value}}})


@MAKERS
def test_without_a_quorum_of_the_external_members_nothing_is_made(make: Make) -> None:
    with bench() as made:
        theirs = externals(made)
        theirs.etcd.stop("old-1")
        theirs.etcd.stop("old-2")
        kind, body = make(adopt=adopt(theirs), version="3.6.16")
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "AdoptionRefused")
        made.wait(60.0)
        assert made.objects() == {word: [] for word in made.objects()}
        assert "bootstrap" not in made.status(kind)


@MAKERS
def test_a_member_of_ours_that_is_lost_before_the_first_removal_is_replaced(make: Make) -> None:
    with joined(make) as (made, theirs, kind):
        if kind is COREOS:
            made.delete(made_pods(), "c-0001")
        else:
            made.lose_claim("c-1")
        made.run_until(lambda: len(theirs.etcd.members) == 5)
        made.run_until(lambda: len(theirs.etcd.voters) == 6)
        made.edit(kind, "c", {"spec": {"adopt": adopt(theirs)}})
        made.settle()
        assert theirs.left == []
        assert len(theirs.etcd.voters) == 3
        assert theirs.etcd.keys[b"key"][0] == b"value"


@MAKERS
def test_a_member_that_takes_the_place_of_an_external_one_is_left_alone_whatever_its_name_is(
    make: Make,
) -> None:
    """Its manager adds it under a name that a member of ours could have, as in another namespace."""
    with joined(make) as (made, theirs, kind):
        pause(made, kind, "true")
        etcd, former = theirs.etcd, theirs.etcd.member("old-1")
        at = former.endpoint
        etcd.stop("old-1")
        etcd.members.remove(former)
        name, url = ("c-0007" if kind is COREOS else "c-7"), "http://old-9.elsewhere:2380"
        etcd.bootstrap({name: url})
        etcd.start(name, peer_url=url, address=at)
        made.clock.advance(10.0)
        pause(made, kind, "false")
        made.run_until(lambda: made.reason(kind) == "UnknownMember")
        made.wait(60.0)
        assert name in [member.name for member in etcd.members]
        assert len(etcd.members) == 6


def test_the_endpoints_in_the_status_are_those_of_our_members_also_while_nobody_answers() -> None:
    with joined(persistent) as (made, theirs, kind):
        before = made.status(kind)["endpoints"]
        for member in list(theirs.etcd.members):
            theirs.etcd.freeze(member.name)
        made.run_until(lambda: made.reason(kind) == "QuorumLost")
        assert [url.partition(".")[0] for url in before] == ["http://c-0", "http://c-1", "http://c-2"]
        assert made.status(kind)["endpoints"] == before


def test_a_peer_url_that_is_changed_during_an_adoption_is_followed() -> None:
    """With `etcdctl member update`, to one that pods reach."""
    with bench() as made:
        theirs = externals(made, 1)
        kind, body = persistent(version="3.6.16", adopt=adopt(theirs))
        made.start()
        made.create(kind, body)
        made.run_until(lambda: bool(made.status(kind).get("adoption")))
        theirs.etcd.members[0].peer_urls = ("http://old-0.reachable:2380",)
        made.settle()
        assert_adopted(made, kind, theirs)


def made_pods() -> Kind:
    """Of members."""
    from unit.fakes.apiserver.kinds import PODS

    return PODS


@MAKERS
def test_an_adopted_cluster_is_resized_and_upgraded_like_any_other(make: Make) -> None:
    with bench() as made:
        theirs = externals(made, 1, version="3.6.11")
        kind, body = make(size=1, adopt=adopt(theirs), version="3.6.16")
        made.start()
        made.create(kind, body)
        made.settle()
        assert_adopted(made, kind, theirs, 1)
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        assert_finished(made, kind, 3)


def test_a_persistent_cluster_that_was_adopted_resumes_on_its_claims() -> None:
    with bench() as made:
        theirs = externals(made)
        kind, body = persistent(adopt=adopt(theirs))
        made.start()
        made.create(kind, body)
        made.settle()
        made.delete(kind, "c")
        made.run_until(lambda: not made.etcd_runs())
        made.create(kind, body)
        made.settle()
        assert made.status(kind)["clusterID"] == "ada"
        assert theirs.etcd.keys[b"key"][0] == b"value"


WORST = "the reply is lost and it dies"
CASES = [
    pytest.param(
        make,
        disturbance,
        id=f"{make.__name__}-{name}",
        marks=[pytest.mark.long] if make is persistent and name != WORST else [],
    )
    for make in (ephemeral, persistent)
    for name, disturbance in DISTURBANCES.items()
    if disturbance.kills or "409" in name
]


def watch(etcd: FakeEtcdCluster) -> list[str]:
    """Notes each external member that is removed while ours are no healthy quorum of the rest."""
    early: list[str] = []
    seen = {member.id for member in etcd.members if is_external(member)}

    def check(_method: str, applied: bool) -> None:
        left = {member.id for member in etcd.members if is_external(member)}
        if applied and len(left) < len(seen):
            ours = [m for m in etcd.voters if not is_external(m) and m.is_alive]
            if len(ours) <= len(etcd.voters) // 2:
                early.append(f"{len(ours)} of ours among {len(etcd.voters)}")
            seen.intersection_update(left)

    etcd.on_write = check
    return early


@pytest.mark.exhaustive
@pytest.mark.parametrize(("make", "disturbance"), CASES)
def test_an_adoption_ends_the_same_whatever_happens_at_any_write(
    make: Make, disturbance: Disturbance
) -> None:
    writes = EachWrite()
    for write in writes:
        with bench() as made:
            theirs = externals(made, 1)
            early = watch(theirs.etcd) if disturbance.kills and disturbance.after is None else []
            kind, body = make(size=1, adopt=adopt(theirs), version="3.6.16")
            writes.goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert not early
            assert_adopted(made, kind, theirs, 1)
    assert writes.runs >= 8


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "skips", [False, pytest.param(True, marks=pytest.mark.long)], ids=["late", "listed anew"]
)
@MAKERS
def test_an_adoption_on_views_that_lag_ends_the_same(make: Make, skips: bool) -> None:
    writes = EachWrite()
    for write in writes:
        with bench() as made:
            theirs = externals(made, 1)
            kind, body = make(size=1, adopt=adopt(theirs), version="3.6.16")
            made.create(kind, body)
            done = partial(made.is_settled, kind, "c")
            writes.goes_on = survives_lag(made, write, done, skips=skips)
            assert_adopted(made, kind, theirs, 1)
    assert writes.runs >= 8


@pytest.mark.parametrize("write", [1, 4, 9])
@MAKERS
def test_an_operator_that_dies_during_an_adoption_continues_it(make: Make, write: int) -> None:
    with bench() as made:
        theirs = externals(made)
        early = watch(theirs.etcd)
        kind, body = make(adopt=adopt(theirs), version="3.6.16")
        disturbance = DISTURBANCES["it dies after the reply"]
        assert survives(made, disturbance, write, partial(made.create, kind, body))
        assert not early
        assert_finished(made, kind, 3)
