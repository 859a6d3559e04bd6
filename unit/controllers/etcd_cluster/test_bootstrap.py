"""Bootstraps that go wrong: lost pods, silent initial members, stale caches; and what a bootstrap costs."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from unit.fakes.apiserver import Cut, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, run_or_die, survives
from unit.passes.expected import assert_finished

SUBSETS = [s for n in (1, 2, 3) for s in itertools.combinations(range(3), n)]


def pods_of(made: Bench, members: tuple[int, ...]) -> list[str]:
    """The pods of these members, by number."""
    pods = sorted(made.names(PODS))
    return [pods[number] for number in members]


@contextmanager
def dead_after(made: Bench, plural: str, count: int) -> Iterator[None]:
    """The operator has died right after it made the `count`-th object of a kind."""
    made.start(dies_at=count, dies_on=f"/{plural}")
    assert not run_or_die(made, made.settle)
    yield
    made.start()


@MAKERS
@pytest.mark.parametrize("lost", SUBSETS)
def test_pods_lost_before_they_ran_are_made_again(make: type, lost: tuple[int, ...]) -> None:
    with bench() as made:
        kind, body = make()
        made.create(kind, body)
        with dead_after(made, "pods" if kind is COREOS else "replicasets", 3):
            made.world.replicate()
            for pod in pods_of(made, lost):
                made.delete(PODS, pod)
        made.settle()
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("lost", SUBSETS)
def test_persistent_initial_members_whose_pods_are_lost_after_they_met_go_on_with_their_data(
    lost: tuple[int, ...],
) -> None:
    with bench() as made:
        kind, body = persistent()
        made.create(kind, body)
        with dead_after(made, "replicasets", 3):
            made.world.settle()
            made.etcd.put(b"key", b"value")
            for pod in pods_of(made, lost):
                made.delete(PODS, pod)
        made.settle()
        assert made.etcd.etcd.keys
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("lost", [s for s in SUBSETS if len(s) < 3])
def test_ephemeral_initial_members_that_have_met_are_never_bootstrapped_again(lost: tuple[int, ...]) -> None:
    with bench() as made:
        made.create(*ephemeral())
        with dead_after(made, "pods", 3):
            made.world.settle()
            etcd = made.etcd.etcd
            for pod in pods_of(made, lost):
                made.delete(PODS, pod)
            made.world.settle()
        made.wait(6.0)
        status, tokens = made.status(COREOS), [made.get(COREOS)["metadata"]["uid"]]
        if len(lost) < 2:
            assert status["clusterID"] == f"{etcd.cluster_id:x}"
        else:  # not founded again either: the one that is left is the source of what follows
            assert status["recovery"]["replaces"] == f"{etcd.cluster_id:x}"
            tokens.append(status["recovery"]["token"])
        assert [token.partition(" of ")[0] for token in made.etcds.by_token] == tokens


@pytest.mark.parametrize("loses", [False, True])
def test_a_lone_silent_initial_member_that_never_led_lets_the_bootstrap_go_on(loses: bool) -> None:
    with bench() as made:
        made.create(*ephemeral())
        with dead_after(made, "pods", 1):
            made.world.settle()
            if loses:
                made.delete(PODS, "c-0000")
                made.world.settle()
        made.settle()
        assert_finished(made, COREOS, 3)


@pytest.mark.parametrize("size", [1, 3])
def test_a_bootstrap_whose_pods_have_all_failed_begins_again_and_reports_what_may_be_lost(size: int) -> None:
    with bench() as made:
        made.create(*ephemeral(size=size))
        with dead_after(made, "pods", size):
            made.world.settle()
            made.etcd.put(b"key", b"value")
            for pod in made.names(PODS):
                made.world.fail("default", pod)
        made.settle()
        assert_finished(made, COREOS, size)
        assert list(made.etcds.by_token) == [uid := made.get(COREOS)["metadata"]["uid"], f"{uid}.1"]
        loss = made.condition(COREOS, "DataLossPossible")
        assert (loss["status"], loss["reason"]) == ("True", "BootstrapRepeated")
        assert made.event_reasons().count("PodRemoved") == size


@pytest.mark.parametrize("size", [1, 3])
def test_a_bootstrap_that_lost_all_claims_begins_again_and_reports_it(size: int) -> None:
    with bench() as made:
        made.create(*persistent(size=size))
        with dead_after(made, "replicasets", size):
            made.world.replicate()
            for claim in made.names(CLAIMS):
                made.lose_claim(claim)
        made.settle()
        assert_finished(made, IMPROBABLE, size)
        assert made.event_reasons().count("ClaimsLost") == 1


SIZE = {"storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "70Mi"}}}}}


@pytest.mark.parametrize("written", ["persistentvolumeclaims", "replicasets"])
def test_storage_may_be_corrected_until_a_claim_has_a_volume(written: str) -> None:
    with bench() as made:
        made.world.binds_claims = False
        made.create(*persistent())
        with dead_after(made, written, 3):
            made.edit(IMPROBABLE, "c", {"spec": SIZE})
        made.run_until(lambda: [size_of(made, name) for name in made.names(CLAIMS)] == ["70Mi"] * 3)
        made.world.binds_claims = True
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert [size_of(made, name) for name in made.names(CLAIMS)] == ["70Mi"] * 3
        assert "ClaimsLost" not in made.event_reasons()


def size_of(made: Bench, claim: str) -> str:
    return str(made.get(CLAIMS, claim)["spec"]["resources"]["requests"]["storage"])


@pytest.mark.parametrize("failed", [(0,), (0, 2), (0, 1, 2)])
def test_pods_that_a_node_refuses_before_anybody_served_are_made_again(failed: tuple[int, ...]) -> None:
    with bench() as made:
        made.create(*ephemeral())
        with dead_after(made, "pods", 3):
            for pod in pods_of(made, failed):
                refused = {"status": {"phase": "Failed", "reason": "OutOfcpu"}}
                made.api.objects.patch(PODS, "default", pod, refused, "merge", subresource="status")
            if len(failed) > 1:
                made.world.settle()
        made.settle()
        assert_finished(made, COREOS, 3)
        assert list(made.etcds.by_token) == [made.get(COREOS)["metadata"]["uid"]]
        assert made.condition(COREOS, "DataLossPossible") == {}


def test_a_silent_initial_member_without_proof_holds_the_bootstrap_and_reports_so() -> None:
    with bench() as made:
        made.etcds.serves_metrics = False
        made.create(*ephemeral())
        with dead_after(made, "pods", 1):
            made.world.settle()
        made.run_until(lambda: made.reason(COREOS) == "BootstrapUncertain")
        made.wait(5.0)
        assert made.objects()["pods"] == ["c-0000"]
        assert "c-0000 may already have served" in made.condition(COREOS, "Degraded")["message"]
        made.delete(PODS, "c-0000")
        made.etcds.serves_metrics = True
        made.settle()
        assert_finished(made, COREOS, 3)


def test_a_claim_lost_before_the_bootstrap_is_not_made_again_behind_a_running_replica_set() -> None:
    with bench() as made:
        made.world.binds_claims = False
        made.create(*persistent())
        made.start()
        made.run_until(lambda: len(made.names(CLAIMS)) == 3)
        made.wait(1.0)  # the initial members do not wait for their volumes longer than that
        made.lose_claim("c-1")
        made.wait(30.0)
        assert made.names(CLAIMS) == ["c-0", "c-2"]
        made.world.binds_claims = True
        made.delete(PEERS, "c-1")
        made.wait(30.0)
        assert made.condition(IMPROBABLE, "Available")["status"] == "True"


@pytest.mark.parametrize("lost", ["c-0", "c-1", "c-2"])
def test_all_peers_and_one_claim_lost_before_the_recorded_cluster_id_cost_nothing_that_was_acknowledged(
    lost: str,
) -> None:
    with bench() as made:
        made.create(*persistent())
        with dead_after(made, "replicasets", 3):
            made.world.settle()
            made.etcd.put(b"key", b"value")
            for name in made.names(PEERS):
                made.delete(PEERS, name)
            made.world.settle()
            made.lose_claim(lost)
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert made.status(IMPROBABLE)["clusterID"] == "c0de"
        assert_finished(made, IMPROBABLE, 3, (0, 1, 2))
        assert "etcd.improbable.io/initial-members" not in made.get(CLAIMS, lost)["metadata"]["annotations"]


def test_a_initial_member_that_lost_all_it_had_after_the_others_met_gets_no_empty_claim() -> None:
    with bench() as made:
        made.create(*persistent())
        with dead_after(made, "replicasets", 3):
            made.world.settle()
            made.etcd.put(b"key", b"value")
            for name in ("c-0", "c-2"):
                made.etcd.etcd.freeze(name)
            made.delete(REPLICA_SETS, "c-1")
            made.lose_claim("c-1")
            made.world.settle()
        made.wait(6.0)
        assert made.names(CLAIMS) == ["c-0", "c-2"]
        for name in ("c-0", "c-2"):
            made.etcd.etcd.thaw(name)
        made.run_until(lambda: made.condition(IMPROBABLE, "Available")["status"] == "True")
        made.wait(6.0)
        assert made.etcd.etcd.keys


def test_an_operator_that_dies_at_every_second_write_gets_there_in_the_end() -> None:
    with bench() as made:
        made.create(*persistent())
        for _ in range(60):
            made.start(dies_at=2)
            if run_or_die(made, made.settle):
                break
        assert_finished(made, IMPROBABLE, 3)


@pytest.mark.exhaustive
@MAKERS
def test_an_operator_that_starts_on_an_older_view_makes_nothing_twice(make: type) -> None:
    with bench() as first:
        kind, body = make(size=1)
        begin = first.api.objects.store.revision
        first.create(kind, body)
        first.start()
        first.settle()
        revisions = first.api.objects.store.revision - begin
    for behind in range(1, revisions, 3):
        with bootstrapped(*make(size=1)) as made:
            made.kill()
            made.api.freeze_views(made.api.objects.store.revision - behind)
            made.start()
            before = made.status(kind)
            drive(made)
            assert made.status(kind) == before
            made.api.thaw_views()
            made.settle()
            assert_finished(made, kind, 1)


@MAKERS
def test_an_operator_does_not_act_again_before_it_has_seen_its_own_writes(make: type) -> None:
    with bench() as made:
        kind, body = make()
        made.create(kind, body)
        made.api.freeze_views()
        made.start()
        drive(made)
        paths = [(w.request.method, w.request.path, str(w.request.body)) for w in made.writes()]
        assert paths
        assert len(set(paths)) == len(paths)
        made.api.thaw_views()
        made.settle()
        assert_finished(made, kind, 3)


def drive(made: Bench) -> None:
    """Some turns, with time between them."""
    for _ in range(25):
        if not made.turn():
            assert made.operator is not None
            made.operator.schedule.advance(0.5)


@MAKERS
def test_a_cluster_deleted_and_made_again_behind_one_event_is_a_new_one(make: type) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        old = made.get(kind)["metadata"]["uid"]
        for stream in made.api.watches:
            stream.stall()
        made.delete(kind, "c")
        made.clock.advance(60.0)
        made.create(kind, body)
        for stream in made.api.watches:
            stream.resume(coalesce=True)
        made.settle()
        assert_finished(made, kind, 3)
        assert made.get(kind)["metadata"]["uid"] != old
        assert bool(made.etcd.etcd.keys) is (kind is IMPROBABLE)


def test_an_edit_that_is_hidden_behind_a_later_one_does_no_harm() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        for stream in made.api.watches:
            stream.stall()
        made.edit(COREOS, "c", {"spec": {"size": 0}})
        made.edit(COREOS, "c", {"spec": {"size": 1}})
        for stream in made.api.watches:
            stream.resume(coalesce=True)
        made.settle()
        assert_finished(made, COREOS, 1)


@pytest.mark.parametrize(
    ("make", "size", "most"),
    [(ephemeral, 3, 15), (ephemeral, 1, 9), (persistent, 3, 34), (persistent, 1, 16)],
)
def test_a_bootstrap_costs_few_writes(make: type, size: int, most: int) -> None:
    """Of objects, the NetworkPolicy included, of etcd and of the status."""
    with bootstrapped(*make(size=size)) as made:
        assert len(made.writes()) <= most


Make = Callable[..., tuple[Kind, dict[str, object]]]


WORST = {"it dies after the reply", "the reply is lost and it dies"}
BY_SIZE = [
    pytest.param(
        size,
        disturbance,
        id=f"{size}: {name}",
        marks=[pytest.mark.long] if size == 3 and name not in WORST else [],
    )
    for name, disturbance in DISTURBANCES.items()
    for size in (
        (3,) if disturbance.kills else (1, 3) if disturbance.after == Cut() or "409" in name else (1,)
    )
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "disturbance"), BY_SIZE)
@pytest.mark.parametrize("make", [ephemeral, persistent])
def test_a_cluster_is_created_once_whatever_happens_at_any_write(
    make: Make, size: int, disturbance: Disturbance
) -> None:
    kind, body = make(size=size)
    if kind is COREOS and disturbance.world_goes_on:
        disturbance = replace(disturbance, world_goes_on=False)  # see the test after this one
    writes = EachWrite()
    for write in writes:
        with bench(only=(kind.group,)) as made:
            writes.goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert_finished(made, kind, size)
    assert writes.runs >= 2 * size


def test_initial_members_that_meet_while_the_operator_is_dead_get_a_third_for_the_one_never_made() -> None:
    with bench() as made:
        kind, body = ephemeral(size=3)
        assert survives(made, DISTURBANCES["it dies after the reply"], 3, partial(made.create, kind, body))
        assert len(made.etcd.running) == 3
        made.rest()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "disturbance"), BY_SIZE)
def test_a_persistent_cluster_resumes_on_its_claims_whatever_happens_at_any_write(
    size: int, disturbance: Disturbance
) -> None:
    kind, body = persistent(size=size)
    writes = EachWrite()
    for write in writes:
        with bench(only=(kind.group,)) as made:
            claims = deleted_with_data(made, size)
            writes.goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert {c["metadata"]["uid"] for c in made.api.objects.select(CLAIMS)} == claims
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, kind, size)
    assert writes.runs >= 2 * size


def deleted_with_data(made: Bench, size: int) -> set[str]:
    """A persistent cluster that was created, written to and deleted; the uids of its claims, which stay."""
    kind, body = persistent(size=size)
    made.start()
    made.create(kind, body)
    made.settle()
    made.etcd.put(b"key", b"value")
    made.delete(kind, "c")
    made.drain()
    made.kill()
    assert made.objects() == {
        "services": [], "pods": [], "peers": [], "sets": [], "claims": [f"c-{n}" for n in range(size)]
    }  # fmt: skip
    return {str(claim["metadata"]["uid"]) for claim in made.api.objects.select(CLAIMS)}
