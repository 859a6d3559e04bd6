"""Resources that are created again beside their members, or restored by a tool without their status."""

from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import BUDGETS, NETWORK_POLICIES, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.disturbance import run_or_die
from unit.passes.expected import assert_finished
from unit.passes.predecessors import pod_of_coreos, strip

Make = Callable[..., tuple[Kind, Json]]


def orphan(made: Bench, kind: Kind) -> None:
    """As `kubectl delete --cascade=orphan`."""
    made.delete(kind, "c", propagation="Orphan")
    made.run_until(lambda: not made.names(kind))


def uids(made: Bench, kind: Kind) -> list[str]:
    return sorted(each["metadata"]["uid"] for each in made.api.objects.select(kind))


@MAKERS
def test_a_resource_that_is_created_again_takes_over_its_members_as_they_run(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before = [uids(made, each) for each in (PODS, SERVICES, BUDGETS, NETWORK_POLICIES)]
        orphan(made, kind)
        made.create(kind, body)
        made.settle()
        assert made.get(NETWORK_POLICIES)["metadata"]["ownerReferences"] != []
        assert [uids(made, each) for each in (PODS, SERVICES, BUDGETS, NETWORK_POLICIES)] == before
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert made.event_reasons().count("ClusterCreated") == 1
        assert_finished(made, kind, 3)
        made.delete(PODS, made.names(PODS)[0])
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"


@pytest.mark.exhaustive
@MAKERS
@pytest.mark.parametrize("dies_at", range(1, 12))
def test_an_operator_that_dies_while_it_takes_members_over_continues(make: Make, dies_at: int) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before = uids(made, PODS)
        orphan(made, kind)
        made.kill()
        made.start(dies_at=dies_at)
        made.create(kind, body)
        if not run_or_die(made, made.settle):
            made.start()
        made.settle()
        assert uids(made, PODS) == before
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, kind, 3)


@MAKERS
def test_without_a_quorum_nothing_begins_beside_members(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        orphan(made, kind)
        names = sorted(made.etcd.running)
        for name in names[:2]:
            made.etcd.etcd.freeze(name)
        objects = made.objects()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "StatusMissing")
        made.wait(60.0)
        assert made.objects() == objects
        assert "clusterID" not in made.status(kind)
        for name in names[:2]:
            made.etcd.etcd.thaw(name)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, kind, 3)


@MAKERS
def test_nothing_is_recorded_while_a_cache_shows_the_former_owner_of_members(make: Make) -> None:
    """An empty cluster would begin beside members that have other numbers."""
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before = uids(made, PODS)
        orphan(made, kind)
        uid = made.get(SERVICES)["metadata"]["uid"]  # of anything that exists: the fake collects at once
        former = {"apiVersion": kind.api_version, "kind": "EtcdCluster", "name": "c", "uid": uid}
        parts = PEERS if kind is IMPROBABLE else PODS
        strip(made, parts, {"ownerReferences": [{**former, "controller": True}]})
        made.create(kind, body)
        made.run_until(lambda: bool(made.status(kind)))
        assert made.condition(kind, "Progressing")["reason"] == "PredecessorTerminating"
        assert "bootstrap" not in made.status(kind)
        strip(made, parts, {"ownerReferences": None})
        made.settle()
        assert uids(made, PODS) == before
        assert_finished(made, kind, 3)


def test_a_pod_that_another_operator_left_is_none_of_ours_whatever_its_name_is() -> None:
    with bench() as made:
        pod = pod_of_coreos()
        pod["metadata"]["name"] = "c-0000"
        made.create(PODS, pod)
        made.start()
        made.create(*ephemeral())
        made.run_until(lambda: made.reason(COREOS) == "OtherOperator")


def stored(made: Bench, *kinds: Kind) -> list[tuple[Kind, Json]]:
    """As a backup tool stores them: without owners, UIDs and statuses."""
    found = []
    for kind in kinds:
        for each in made.api.objects.select(kind):
            metadata = {key: each["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
            found.append((kind, {"metadata": metadata, "spec": each["spec"]}))
    return found


def delete_all(made: Bench, *kinds: Kind) -> None:
    for kind in kinds:
        for name in made.names(kind):
            made.delete(kind, name)


def restored(made: Bench, kind: Kind, body: Json, *parts: Kind) -> None:
    """Delete what is not on claims, and create it again as a backup tool does."""
    kept = stored(made, *parts)
    made.delete(kind, "c")
    made.run_until(
        lambda: not made.etcd_runs() and not any(made.names(each) for each in (kind, *parts, PODS))
    )
    made.kill()
    for part, each in kept:
        made.create(part, each)
    made.create(kind, body)
    made.start()


def test_a_persistent_cluster_that_a_tool_restored_is_taken_over() -> None:
    kind, body = persistent()
    with bootstrapped(kind, body) as made:
        restored(made, kind, body, PEERS, REPLICA_SETS, SERVICES, BUDGETS, NETWORK_POLICIES)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, IMPROBABLE, 3)
        owners = [
            o["uid"] for s in made.api.objects.select(REPLICA_SETS) for o in s["metadata"]["ownerReferences"]
        ]
        assert sorted(owners) == uids(made, PEERS)


def test_ephemeral_members_that_a_tool_restored_without_data_wait_for_a_person() -> None:
    kind, body = ephemeral()
    with bootstrapped(kind, body) as made:
        restored(made, kind, body, PODS, SERVICES, BUDGETS, NETWORK_POLICIES)
        made.run_until(lambda: made.reason(kind) == "StatusMissing")
        made.wait(60.0)
        message = made.condition(kind, "Degraded")["message"]
        selector = "--namespace default --selector etcd_cluster=c"
        assert f"kubectl delete pod,service,poddisruptionbudget,networkpolicy {selector}" in message
        delete_all(made, PODS, SERVICES, BUDGETS, NETWORK_POLICIES)
        made.settle()
        assert_finished(made, COREOS, 3)


def test_members_that_were_taken_over_get_the_new_template_one_at_a_time() -> None:
    """As the guide changes immutable fields without an interruption."""
    kind, body = persistent()
    with bootstrapped(kind, body) as made:
        orphan(made, kind)
        limits = {"limits": {"memory": "1Gi"}}
        made.create(*persistent(podTemplate={"resources": limits}))
        made.settle()
        for name in made.names(PEERS):
            made.delete(PEERS, name)
            made.run_until(lambda: not made.is_settled(kind, "c"))
            made.settle()
            assert made.etcd.etcd.has_quorum
        pods = made.api.objects.select(PODS)
        assert [pod["spec"]["containers"][0]["resources"] for pod in pods] == [limits] * 3
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, kind, 3)


def test_persistent_members_that_are_deleted_as_the_message_says_resume_on_their_claims() -> None:
    kind, body = persistent()
    with bootstrapped(kind, body) as made:
        orphan(made, kind)
        for name in sorted(made.etcd.running):
            made.etcd.etcd.freeze(name)
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "StatusMissing")
        message = made.condition(kind, "Degraded")["message"]
        assert "kubectl delete etcdpeer,replicaset,pod,service,poddisruptionbudget,networkpolicy" in message
        assert message.endswith("--selector etcd.improbable.io/cluster-name=c`")
        delete_all(made, PEERS, REPLICA_SETS, PODS, SERVICES, BUDGETS, NETWORK_POLICIES)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, kind, 3)
