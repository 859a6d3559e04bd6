"""What holds a cluster: a condition reports it, foreign objects are not touched, and it goes on later."""

from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, EVENTS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, ephemeral, persistent
from unit.passes.expected import assert_finished

CONTAINERS = {"containers": [{"name": "x", "image": "x:1"}]}
LABELS = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
FOREIGN: dict[str, tuple[Callable[..., tuple[Kind, Json]], Kind, str, Json]] = {
    "the client service": (ephemeral, SERVICES, "c", {"ports": [{"port": 1}]}),
    "a member's service": (ephemeral, SERVICES, "c-0001", {"ports": [{"port": 1}]}),
    "a pod": (ephemeral, PODS, "c-0001", CONTAINERS),
    "the client service of persistent members": (persistent, SERVICES, "c", {"ports": [{"port": 1}]}),
    "the headless service": (persistent, SERVICES, "c-peer", {"ports": [{"port": 1}]}),
    "the budget of ephemeral members": (ephemeral, BUDGETS, "c", {"minAvailable": 1, "selector": LABELS}),
    "the budget of persistent members": (persistent, BUDGETS, "c", {"minAvailable": 1, "selector": LABELS}),
    "a claim": (persistent, CLAIMS, "c-1", {"accessModes": ["ReadWriteOnce"]}),
    "a ReplicaSet": (
        persistent,
        REPLICA_SETS,
        "c-1",
        {"replicas": 0, "selector": LABELS, "template": TEMPLATE},
    ),
}


def forbidding(plural: str, code: int = 403, reason: str = "Forbidden") -> Callable[[Request], Fault | None]:
    """Refuse writes of a kind in the namespace `default`; `status` is that of clusters."""

    def hook(request: Request) -> Fault | None:
        what = "status" if request.subresource and request.plural == "etcdclusters" else request.plural
        is_meant = request.is_write and what == plural and "/namespaces/default/" in request.path
        return Answer(code=code, reason=reason, message="not for you") if is_meant else None

    return hook


@pytest.mark.parametrize("case", FOREIGN)
def test_a_name_that_somebody_else_has_is_left_alone_until_it_is_free(case: str) -> None:
    make, kind, name, spec = FOREIGN[case]
    with bench() as made:
        foreign = made.create(kind, {"metadata": {"name": name}, "spec": spec})
        made.world.settle()
        before = made.get(kind, name)
        cluster, body = make()
        made.create(cluster, body)
        made.start()
        made.run_until(lambda: made.reason(cluster) == "NameConflict")
        assert name in made.condition(cluster, "Degraded")["message"]
        made.wait(60.0)
        assert made.get(kind, name) == before
        assert before["metadata"]["uid"] == foreign["metadata"]["uid"]
        made.delete(kind, name)
        made.settle()
        assert_finished(made, cluster, 3)
        reported = [reason for reason in made.event_reasons() if "NameConflict" in reason]
        assert reported in (["NameConflict"], ["NameConflict x2"])  # when it began, and after the bootstrap


def test_a_replica_set_that_the_cache_shows_is_not_asked_for_again_and_again() -> None:
    """A former one with the labels of a member stays for as long as a person waits."""
    labels = {"etcd.improbable.io/cluster-name": "c"}
    with bootstrapped(*persistent()) as made:
        made.kill()
        made.delete(REPLICA_SETS, "c-1")
        made.world.settle()
        spec = FOREIGN["a ReplicaSet"][3]
        made.create(REPLICA_SETS, {"metadata": {"name": "c-1", "labels": labels}, "spec": spec})
        made.start()
        made.run_until(lambda: "NameConflict" in str(made.status(IMPROBABLE)))
        made.wait(30.0)
        asked = len(made.api.log)
        made.wait(60.0)
        requests = [exchange.request for exchange in made.api.log[asked:]]
        assert not [each.method for each in requests if each.plural == "replicasets"]
        made.delete(REPLICA_SETS, "c-1")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_a_cluster_waits_for_the_pods_of_its_predecessor_to_end() -> None:
    kind, body = ephemeral()
    with bootstrapped(kind, body) as made:
        made.world.up.clear()
        made.delete(kind, "c")
        made.clock.advance(10.0)
        made.create(kind, body)
        made.run_until(lambda: made.condition(kind, "Progressing").get("reason") == "PredecessorTerminating")
        made.wait(30.0)
        assert made.reason(kind) == ""
        made.world.up.update({"node-1", "node-2", "node-3"})
        made.settle()
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("older", [COREOS, IMPROBABLE])
def test_of_two_groups_with_one_name_the_younger_waits_until_the_older_is_deleted(older: Kind) -> None:
    made_by = {COREOS: ephemeral, IMPROBABLE: persistent}
    younger = IMPROBABLE if older is COREOS else COREOS
    with bootstrapped(*made_by[older](size=1), alone=False) as made:
        made.clock.advance(5.0)
        objects = made.objects()
        made.create(*made_by[younger](size=1))
        made.run_until(lambda: made.reason(younger) == "NameConflict")
        made.wait(30.0)
        assert made.objects() == objects
        assert made.is_settled(older, "c")
        made.delete(older, "c")
        made.settle((younger, "c"))
        found = {word: names for word, names in made.objects().items() if word != "claims"}
        assert found["pods"] == ["c-0" if younger is IMPROBABLE else "c-0000"]


@pytest.mark.parametrize(
    ("make", "plural"),
    [
        (ephemeral, "pods"),
        (ephemeral, "services"),
        (persistent, "etcdpeers"),
        (persistent, "services"),
        (persistent, "persistentvolumeclaims"),
        (persistent, "replicasets"),
    ],
)
@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (422, "Invalid")])
def test_a_refused_write_is_reported_harms_no_other_cluster_and_is_tried_again(
    make: Callable[..., tuple[Kind, Json]], plural: str, code: int, reason: str
) -> None:
    with bench() as made:
        made.api.add_namespace("other")
        made.api.before = forbidding(plural, code, reason)
        kind, body = make()
        made.create(kind, body)
        made.api.objects.create(kind, "other", make(name="d", size=1)[1])
        made.start()
        made.run_until(lambda: made.reason(kind) in {reason, "Refused"})
        assert "not for you" in made.condition(kind, "Degraded")["message"]
        made.run_until(lambda: "d-0" in str(made.names(PODS)))
        made.wait(60.0)
        other = made.api.objects.get(kind, "other", "d")["status"]
        assert [c["status"] for c in other["conditions"]] == ["True", "False", "False"]
        made.api.before = lambda _: None
        made.run_until(lambda: made.is_settled(kind, "c"))
        (event,) = (e for e in made.events() if e["type"] == "Warning")
        assert event["count"] <= 2, "once when it began, and once more when the bootstrap was over"


@MAKERS
def test_a_namespace_that_is_being_deleted_is_no_fault(make: Callable[..., tuple[Kind, Json]]) -> None:
    """The server reports it with a cause; its message may be any."""
    going = Answer(code=403, reason="Forbidden", message="no new content", cause="NamespaceTerminating")
    kind, body = make()
    with bootstrapped(kind, body) as made:
        made.api.before = lambda request: going if request.method == "POST" else None
        made.delete(SERVICES, "c")
        made.run_until(lambda: made.condition(kind, "Progressing")["reason"] == "Deleting")
        assert made.condition(kind, "Degraded")["status"] == "False"
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("plural", ["persistentvolumeclaims", "replicasets"])
def test_what_a_peer_cannot_make_in_a_namespace_that_is_being_deleted_is_reported(plural: str) -> None:
    going = Answer(code=403, reason="Forbidden", message="no new content", cause="NamespaceTerminating")
    with bootstrapped(*persistent()) as made:
        made.api.before = lambda request: (
            going if (request.method, request.plural) == ("POST", plural) else None
        )
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 4}})
        made.run_until(lambda: made.reason(IMPROBABLE) == "Forbidden")


@MAKERS
def test_a_status_that_may_not_be_written_is_written_once_it_may(
    make: Callable[..., tuple[Kind, Json]],
) -> None:
    with bench() as made:
        made.api.before = forbidding("status")
        kind, body = make(size=1)
        made.create(kind, body)
        made.start()
        made.wait(30.0)
        assert made.objects()["pods"] == []
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, kind, 1)


@MAKERS
@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                             "message": "0/3 nodes are available"}]},
            "Unschedulable",
        ),
        (
            {"containerStatuses": [{"name": "etcd", "restartCount": 0, "state": {"waiting": {
                "reason": "ImagePullBackOff", "message": "0/3 nodes are available"}}}]},
            "ImagePullBackOff",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_start_is_named_with_its_reason_until_it_does(
    make: Callable[..., tuple[Kind, Json]], patch: Json, reason: str
) -> None:
    with bench() as made:
        made.world.up.clear()
        kind, body = make()
        made.create(kind, body)
        made.start()
        made.run_until(lambda: len(made.names(PODS)) == 3)
        made.edit(PODS, sorted(made.names(PODS))[1], {"status": patch}, subresource="status")
        made.wait(20.0)
        assert made.reason(kind) == reason
        message = made.condition(kind, "Degraded")["message"]
        assert "0/3 nodes" in message
        assert made.objects()["pods"][1] in message
        made.world.up.add("node-1")
        made.settle()
        assert_finished(made, kind, 3)


@pytest.mark.parametrize("spec", [{"size": 0}, {"version": "banana"}, {"no such field": 1}])
def test_a_spec_that_cannot_be_acted_on_touches_nothing_until_it_is_corrected(spec: Json) -> None:
    with bootstrapped(*ephemeral()) as made:
        objects = made.objects()
        old = made.get(COREOS)["spec"]
        made.edit(COREOS, "c", {"spec": spec})
        made.run_until(lambda: made.reason(COREOS) == "InvalidSpec")
        made.wait(60.0)
        assert made.objects() == objects
        assert made.condition(COREOS, "Available")["status"] == "True"
        made.edit(COREOS, "c", {"spec": {name: old.get(name) for name in spec}})
        made.settle()
        assert_finished(made, COREOS, 3)


def test_a_new_cluster_with_a_bad_spec_has_failed_and_makes_nothing() -> None:
    with bench() as made:
        made.create(*persistent(version="2.0.0"))
        made.create(*ephemeral("d", version="2.0.0"))
        made.start()
        made.wait(60.0)
        assert (made.reason(IMPROBABLE), made.reason(COREOS, "d")) == ("InvalidSpec", "InvalidSpec")
        assert made.status(COREOS, "d")["phase"] == "Failed"
        assert not any(made.objects().values())
        assert made.event_reasons() == ["InvalidSpec", "InvalidSpec"]


@MAKERS
def test_an_edit_by_a_user_between_probe_and_status_is_kept(make: Callable[..., tuple[Kind, Json]]) -> None:
    edits: list[int] = []
    with bench() as made:

        def edit(request: Request) -> None:
            if request.plural == "etcdclusters" and request.subresource and request.write % 2:
                edits.append(request.write)
                made.edit(kind, "c", {"metadata": {"annotations": {f"edit-{request.write}": "mine"}}})

        kind, body = make(size=1)
        made.create(kind, body)
        made.api.before = edit
        made.start()
        made.settle()
        assert len(edits) >= 2
        assert set(made.get(kind)["metadata"]["annotations"]) == {f"edit-{number}" for number in edits}
        made.api.before = lambda _: None
        assert_finished(made, kind, 1)


def test_a_paused_cluster_is_watched_and_not_acted_on() -> None:
    with bench() as made:
        made.create(*ephemeral(paused=True))
        made.start()
        made.wait(30.0)
        assert not any(made.objects().values())
        assert made.condition(COREOS, "Progressing")["reason"] == "Paused"
        made.edit(COREOS, "c", {"spec": {"paused": False}})
        made.settle()
        made.edit(COREOS, "c", {"spec": {"paused": True}})
        made.drain()
        made.delete(SERVICES, "c")
        made.etcd.etcd.freeze("c-0001")
        made.wait(30.0)
        assert made.names(SERVICES) == ["c-0000", "c-0001", "c-0002"]
        assert made.status(COREOS)["members"] == {"ready": ["c-0000", "c-0002"], "unready": ["c-0001"]}
        made.etcd.etcd.thaw("c-0001")
        made.edit(COREOS, "c", {"spec": {"paused": False}})
        made.settle()
        assert_finished(made, COREOS, 3)
        assert not [e for e in made.api.objects.select(EVENTS) if e["type"] == "Warning"]
