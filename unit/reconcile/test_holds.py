"""What holds a cluster: a condition reports it, foreign objects are not touched, and it goes on later."""

from collections.abc import Callable
from typing import Any

import pytest

from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, EVENTS, PODS, REPLICA_SETS, SERVICES
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.reconcile.bench import COREOS, IMPROBABLE, PEERS, bench, bootstrapped, ephemeral, persistent
from unit.reconcile.expected import assert_finished, member_names

MAKERS = pytest.mark.parametrize("make", [ephemeral, persistent])
CONTAINERS = {"containers": [{"name": "x", "image": "x:1"}]}
LABELS = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
FOREIGN: dict[str, tuple[Callable[..., tuple[Kind, Json]], Kind, str, Json]] = {
    "the client service": (ephemeral, SERVICES, "c", {"ports": [{"port": 1}]}),
    "a member's service": (ephemeral, SERVICES, "c-0001", {"ports": [{"port": 1}]}),
    "a pod": (ephemeral, PODS, "c-0001", CONTAINERS),
    "the headless service": (persistent, SERVICES, "c", {"ports": [{"port": 1}]}),
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


@MAKERS
def test_a_full_store_is_reported_and_keeps_no_member_from_being_replaced(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, last = made.etcd.etcd, member_names(kind, 3)[-1]
        numbers = (0, 1, 3) if kind is COREOS else (0, 1, 2)
        alarm = (etcd.members[0].id, "NOSPACE")
        etcd.alarms.add(alarm)
        made.run_until(lambda: made.reason(kind) == "OutOfSpace")
        assert "alarm disarm" in made.condition(kind, "Degraded")["message"]
        assert made.status(kind)["conditions"][0]["status"] == "True"
        made.delete(PODS if kind is COREOS else CLAIMS, last)
        if kind is IMPROBABLE:
            made.delete(PEERS, last)
        removed = next(member.id for member in etcd.members if member.name == last)
        made.run_until(lambda: removed not in {member.id for member in etcd.members})
        made.run_until(lambda: [m.is_learner for m in etcd.members] == [False] * 3)
        assert made.reason(kind) == "OutOfSpace"
        etcd.alarms.discard(alarm)
        made.settle()
        assert_finished(made, kind, 3, numbers)


@MAKERS
def test_a_member_with_corrupt_data_is_replaced_and_writes_are_taken_again(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, last = made.etcd.etcd, member_names(kind, 3)[-1]
        before = {member.id for member in etcd.members}
        named = etcd.member(last).id
        etcd.member(last).hash = 77
        etcd.alarms.add((named, "CORRUPT"))
        made.run_until(lambda: made.reason(kind) == "DataCorrupt")
        assert last in made.condition(kind, "Degraded")["message"]
        made.settle()
        assert not etcd.alarms
        assert {member.id for member in etcd.members} > before - {named}
        assert named not in {member.id for member in etcd.members}
        assert {"MemberRemoved", "AlarmDisarmed"} <= set(made.event_reasons())
        assert_finished(made, kind, 3, (0, 1, 3) if kind is COREOS else (0, 1, 2))


@MAKERS
def test_nobody_is_removed_for_corrupt_data_while_the_others_differ_too(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, names = made.etcd.etcd, member_names(kind, 3)
        before = {member.id for member in etcd.members}
        etcd.member(names[0]).hash = 77
        etcd.alarms.add((etcd.member(names[2]).id, "CORRUPT"))
        made.run_until(lambda: "differs, too" in made.condition(kind, "Degraded").get("message", ""))
        made.wait(60.0)
        assert (made.reason(kind), made.condition(kind, "Available")["status"]) == ("DataCorrupt", "True")
        assert {member.id for member in etcd.members} == before
        etcd.member(names[0]).hash = None
        made.settle()
        assert not etcd.alarms


def routed(made: Any) -> set[str]:
    """The members that the Service for clients selects."""
    selector = made.get(SERVICES, "c")["spec"]["selector"].items()
    pods = [pod["metadata"] for pod in made.api.objects.select(PODS)]
    return {
        pod["labels"].get("etcd.improbable.io/peer-name", pod["name"])
        for pod in pods
        if selector <= pod["labels"].items()
    }


@MAKERS
def test_clients_reach_only_members_of_the_cluster_on_record(make: Callable[..., Any]) -> None:
    kind, body = make()
    other = FakeEtcdCluster(cluster_id=0xFEED)
    with bootstrapped(kind, body) as made:
        names, etcd = member_names(kind, 3), made.etcd.etcd
        member, pods = etcd.member(names[2]), made.objects()["pods"]
        address, peer_url = member.endpoint, member.peer_urls[0]
        assert routed(made) == set(names)
        etcd.stop(names[2])
        other.bootstrap({names[2]: peer_url})
        other.start(names[2], peer_url=peer_url, address=address)
        try:
            made.run_until(lambda: made.reason(kind) == "SplitBrain")
            made.run_until(lambda: routed(made) == set(names[:2]))
            assert names[2] in made.condition(kind, "Degraded")["message"]
            made.wait(60.0)
            assert made.objects()["pods"] == pods
            made.rest()
        finally:
            other.close()
        etcd.start(names[2], peer_url=peer_url, address=address)
        made.settle()
        assert routed(made) == set(names)
        assert_finished(made, kind, 3)


def is_ready(made: Any) -> bool:
    """Whether three pods have what their readiness gates ask for."""
    pods = made.api.objects.select(PODS)
    found = [c for pod in pods for c in pod["status"].get("conditions", ())]
    gates = [c["status"] for c in found if c["type"].endswith("/member-serves")]
    return gates == ["True"] * 3 and len(pods) == 3


@MAKERS
def test_members_that_answer_only_users_are_kept_ready_and_only_what_needs_no_user_is_done(
    make: Callable[..., Any],
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        assert is_ready(made)
        etcd = made.etcd.etcd
        members = {member.id for member in etcd.members}
        etcd.users["root"] = "secret"
        made.run_until(lambda: made.reason(kind) == "AuthEnabled")
        assert "etcdctl auth disable" in made.condition(kind, "Degraded")["message"]
        assert made.condition(kind, "Available")["status"] == "True"
        made.wait(60.0)
        assert is_ready(made)

        made.delete(BUDGETS, "c")
        made.delete(SERVICES, "c")
        if kind is IMPROBABLE:
            made.delete(PEERS, "c-1")
            made.delete(PODS, next(name for name in made.names(PODS) if name.startswith("c-2")))
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 5}})
        made.wait(60.0)
        made.run_until(lambda: is_ready(made))
        assert (made.names(BUDGETS), made.reason(kind)) == (["c"], "AuthEnabled")
        assert "c" in made.names(SERVICES)
        assert {member.id for member in etcd.members} == members
        made.rest()

        etcd.users.clear()
        made.settle()
        assert_finished(made, kind, 5, (0, 1, 2, 3, 4))


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
    with bootstrapped(*made_by[older](size=1)) as made:
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
