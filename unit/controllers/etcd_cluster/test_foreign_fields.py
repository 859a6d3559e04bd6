"""What others add to our objects is theirs: it is not compared, not written over, and wakes nothing."""

from collections.abc import Callable
from typing import Any

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, persistent
from unit.passes.expected import assert_finished

OURS = (PODS, SERVICES, BUDGETS, CLAIMS, REPLICA_SETS, COREOS, IMPROBABLE, PEERS)
SCANNED = {
    "type": "example.com/Scanned",
    "status": "True",
    "reason": "Scanned",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}


def adding(kind: Kind, obj: Json) -> None:
    """A policy that adds something to each kind of object, wherever something can be added."""
    if kind not in OURS:
        return
    meta, spec = obj["metadata"], obj["spec"]
    meta.setdefault("labels", {})["team"] = "storage"
    meta["annotations"] = {**(meta.get("annotations") or {}), "example.com/seen": "yes"}
    if kind == BUDGETS:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    if kind == SERVICES:
        spec["sessionAffinity"] = "ClientIP"
    if kind == REPLICA_SETS:
        spec["minReadySeconds"] = 1
        spec["template"]["metadata"]["annotations"]["example.com/seen"] = "yes"
    if kind in (COREOS, IMPROBABLE, PEERS) and obj.get("status", {}).get("conditions"):
        others = [c for c in obj["status"]["conditions"] if c["type"] != SCANNED["type"]]
        obj["status"]["conditions"] = [*others, SCANNED]


def resize(made: Bench, kind: Kind, size: int) -> None:
    """As `kubectl scale`."""
    made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": size}})


@MAKERS
def test_under_a_policy_that_adds_a_field_to_each_object_everything_works_and_nothing_is_written_at_rest(
    make: Callable[..., tuple[Kind, Json]],
) -> None:
    with bench() as made:
        made.api.objects.mutate = adding
        kind, body = make()
        made.create(kind, body)
        made.start()
        made.settle()
        assert_finished(made, kind, 3)
        resize(made, kind, 4)
        made.settle()
        assert_finished(made, kind, 4, (0, 1, 2, 3))
        resize(made, kind, 3)
        made.settle()
        assert_finished(made, kind, 3, (0, 1, 2) if kind is IMPROBABLE else (1, 2, 3))
        assert made.get(BUDGETS)["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        assert [c["type"] for c in made.status(kind)["conditions"]].count(SCANNED["type"]) == 1


def test_what_others_wrote_on_a_replica_set_and_a_peer_outlives_our_own_changes() -> None:
    with bootstrapped(*persistent(size=1)) as made:
        note = {"metadata": {"annotations": {"example.com/backup": "nightly"}}}
        made.edit(REPLICA_SETS, "c-0", note)
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 2}})
        made.settle()
        made.edit(REPLICA_SETS, "c-1", note)
        made.edit(PEERS, "c-1", {"metadata": {"finalizers": ["example.com/waits"]}})
        made.edit(PEERS, "c-1", {"spec": {"bootstrap": {"initialClusterState": "New"}}})
        made.settle()
        assert made.get(REPLICA_SETS, "c-1")["metadata"]["annotations"]["example.com/backup"] == "nightly"
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 1}})
        made.run_until(lambda: "deletionTimestamp" in made.get(PEERS, "c-1")["metadata"])
        made.drain()
        assert made.get(PEERS, "c-1")["metadata"]["finalizers"] == ["example.com/waits"]


@MAKERS
def test_a_policy_that_changes_a_field_of_ours_back_is_named_and_not_fought(make: Callable[..., Any]) -> None:
    def insisting(kind: Kind, obj: Json) -> None:
        if kind == BUDGETS:
            obj["spec"]["minAvailable"] = 1

    kind, body = make()
    with bootstrapped(kind, body) as made:
        made.api.objects.mutate = insisting
        resize(made, kind, 5)
        made.run_until(lambda: made.reason(kind) == "Overridden")
        assert "PodDisruptionBudget c" in made.condition(kind, "Degraded")["message"]
        before = len([w for w in made.writes() if w.request.plural == "poddisruptionbudgets"])
        made.wait(60.0)
        tries = len([w for w in made.writes() if w.request.plural == "poddisruptionbudgets"]) - before
        assert tries <= 8
        made.api.objects.mutate = lambda _kind, _obj: None
        made.settle()
        assert_finished(made, kind, 5, (0, 1, 2, 3, 4))


def test_a_policy_that_takes_our_marks_off_claims_is_named() -> None:
    def stripping(kind: Kind, obj: Json) -> None:
        if kind == CLAIMS:
            (obj["metadata"].get("annotations") or {}).pop("etcd.improbable.io/member-id", None)

    with bench() as made:
        made.api.objects.mutate = stripping
        made.create(*persistent(size=1))
        made.start()
        made.run_until(lambda: made.reason(IMPROBABLE) == "Overridden")
        assert "member-id" in made.condition(IMPROBABLE, "Degraded")["message"]
        made.api.objects.mutate = lambda _kind, _obj: None
        made.settle()
        assert_finished(made, IMPROBABLE, 1)


def test_a_policy_that_narrows_the_service_for_peers_is_named() -> None:
    def narrowing(kind: Kind, obj: Json) -> None:
        if kind == SERVICES and obj["metadata"]["name"] == "c-peer":
            obj["spec"]["selector"]["example.com/zone"] = "a"

    with bootstrapped(*persistent(size=1)) as made:
        made.api.objects.mutate = narrowing
        made.edit(SERVICES, "c-peer", {"spec": {"selector": {"example.com/owner": "us"}}})
        made.run_until(lambda: made.reason(IMPROBABLE) == "Overridden")
        assert "Service c-peer" in made.condition(IMPROBABLE, "Degraded")["message"]
        made.api.objects.mutate = lambda _kind, _obj: None
        made.settle()
        assert_finished(made, IMPROBABLE, 1)
