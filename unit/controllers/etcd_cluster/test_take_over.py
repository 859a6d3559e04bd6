"""Clusters of the earlier operators: nothing begins beside them, and those handed over go on as ours."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, IMPROBABLE, PEERS, ephemeral, persistent
from unit.passes.disturbance import run_or_die
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import ask, is_reason, lose
from unit.passes.predecessors import annotate, hand_over, of_improbable, orphan, pod_of_coreos


def test_a_cluster_that_was_not_handed_over_is_left_as_it_is() -> None:
    with of_improbable() as made:
        before = [made.get(kind, name) for kind in (PODS, CLAIMS, REPLICA_SETS) for name in made.names(kind)]
        made.start()
        made.run_until(lambda: made.reason(IMPROBABLE) == "OtherOperator")
        made.wait(30.0)
        after = [made.get(kind, name) for kind in (PODS, CLAIMS, REPLICA_SETS) for name in made.names(kind)]
        assert after == before
        made.rest()


def restart_members(made: Bench, *names: str) -> None:
    """As the guide does: the former ReplicaSets go one at a time, each with its pod. names: default: all."""
    for name in names or ("c-0", "c-1", "c-2"):
        former = made.get(REPLICA_SETS, name)["metadata"]["uid"]
        made.delete(REPLICA_SETS, name, propagation="Foreground")
        made.run_until(lambda: is_replaced(made, name, former))  # noqa: B023
        assert made.etcd.etcd.has_quorum


def is_replaced(made: Bench, name: str, former: str) -> bool:
    """Whether our ReplicaSet has a pod that is a healthy voter."""
    if name not in made.names(REPLICA_SETS) or made.get(REPLICA_SETS, name)["metadata"]["uid"] == former:
        return False
    pods = made.api.objects.select(PODS, labels=f"etcd.improbable.io/peer-name={name}")
    conditions = [each for pod in pods for each in pod.get("status", {}).get("conditions", ())]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_members_that_are_handed_over_become_ours_while_they_run() -> None:
    with of_improbable() as made:
        made.start()
        made.run_until(lambda: made.reason(IMPROBABLE) == "OtherOperator")
        pods = made.names(PODS)
        hand_over(made)
        made.run_until(lambda: made.names(PEERS) == ["c-0", "c-1", "c-2"])
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 1}})
        made.wait(30.0)
        assert made.names(PODS) == pods
        assert "ReplicaSets c-0, c-1, c-2" in made.condition(IMPROBABLE, "Degraded")["message"]
        assert len(made.etcd.etcd.members) == 3
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 3}})
        restart_members(made)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert not set(made.names(PODS)) & set(pods)
        assert_finished(made, IMPROBABLE, 3, former=True)


def test_members_that_are_handed_over_by_another_token_are_left_alone() -> None:
    """Peers would look for them under other names than etcd has on record."""
    with of_improbable() as made:
        made.start()
        orphan(made)
        annotate(made, made.get(IMPROBABLE)["metadata"]["uid"])
        made.wait(30.0)
        assert made.names(PEERS) == []
        assert made.reason(IMPROBABLE) == "OtherOperator"
        assert "etcd.improbable.io/cluster-token=c" in made.condition(IMPROBABLE, "Degraded")["message"]


def test_a_cluster_that_was_taken_over_resumes_and_shrinks_as_any_other() -> None:
    with of_improbable() as made:
        made.start()
        hand_over(made)
        made.run_until(lambda: len(made.names(PEERS)) == 3)
        restart_members(made)
        made.settle()
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.create(*persistent())
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 1}})
        made.settle()
        assert made.names(CLAIMS) == ["c-0"]
        assert made.etcd.etcd.keys[b"key"][0] == b"value"


@pytest.mark.exhaustive
@pytest.mark.parametrize("dies_at", range(1, 12))
def test_an_operator_that_dies_during_a_take_over_continues_it(dies_at: int) -> None:
    with of_improbable() as made:
        hand_over(made)
        made.start(dies_at=dies_at)
        if not run_or_die(made, lambda: made.run_until(lambda: len(made.names(PEERS)) == 3)):
            made.start()
        made.run_until(lambda: len(made.names(PEERS)) == 3)
        if not run_or_die(made, lambda: made.wait(20.0)):
            made.start()
        restart_members(made)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert_finished(made, IMPROBABLE, 3, former=True)


@pytest.mark.parametrize("spec", [{}, {"version": None}])
def test_nothing_is_taken_over_while_its_etcdpeers_are_there(spec: dict[str, None]) -> None:
    """Those of an early version of the earlier operator do not name a version of etcd."""
    with of_improbable() as made:
        for name in made.names(PEERS):
            made.edit(PEERS, name, {"spec": spec})
        annotate(made)
        made.start()
        made.run_until(lambda: made.reason(IMPROBABLE) == "OtherOperator")
        before = [made.get(PEERS, name) for name in made.names(PEERS)]
        assert "EtcdPeer c-0, EtcdPeer c-1" in made.condition(IMPROBABLE, "Degraded")["message"]
        made.wait(30.0)
        assert [made.get(PEERS, name) for name in made.names(PEERS)] == before
        assert "clusterID" not in made.status(IMPROBABLE)


def test_an_etcdpeer_of_another_operator_that_is_deleted_keeps_its_claim() -> None:
    """Also with the finalizer by which both operators have a claim deleted."""
    with of_improbable() as made:
        finalizers = {"metadata": {"finalizers": ["etcdpeer.etcd.improbable.io/pvc-cleanup"]}}
        made.edit(PEERS, "c-2", finalizers)
        made.delete(PEERS, "c-2")
        made.start()
        made.wait(30.0)
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        assert made.reason(IMPROBABLE) == "OtherOperator"


@pytest.mark.parametrize("spec", [{}, {"adopt": {"endpoints": ["http://c-7fpbkgxwc2:2379"]}}])
def test_no_ephemeral_cluster_begins_beside_pods_of_the_same_name(spec: dict[str, Any]) -> None:
    """The Services of CoreOS' operator select by labels that our pods have, too."""
    with bench() as made:
        made.create(PODS, pod_of_coreos())
        made.start()
        made.create(*ephemeral(**spec))
        made.run_until(lambda: made.reason(COREOS) == "OtherOperator")
        assert "c-7fpbkgxwc2" in made.condition(COREOS, "Degraded")["message"]
        made.wait(30.0)
        assert made.objects()["services"] == []
        made.delete(PODS, "c-7fpbkgxwc2")
        if not spec:
            made.settle()
            assert_finished(made, COREOS, 3)


def test_a_former_pod_of_a_member_that_was_removed_is_named_without_asking_etcd_for_ever() -> None:
    with of_improbable() as made:
        made.start()
        hand_over(made)
        made.run_until(lambda: len(made.names(PEERS)) == 3)
        restart_members(made, "c-0", "c-1")
        made.etcd.etcd.freeze("c-2")
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 2}})
        made.run_until(lambda: len(made.etcd.etcd.members) == 2)
        made.wait(60.0)
        assert made.reason(IMPROBABLE) == "OtherOperator"
        assert "ReplicaSets c-2" in made.condition(IMPROBABLE, "Degraded")["message"]
        made.rest()
        made.delete(REPLICA_SETS, "c-2", propagation="Foreground")
        made.settle()
        assert_finished(made, IMPROBABLE, 2, former=True)


def test_the_service_of_another_operator_leads_no_client_to_a_seed() -> None:
    """It selects by the name of the cluster only, which the seed of a recovery has, too."""
    with of_improbable() as made:
        made.start()
        hand_over(made)
        made.run_until(lambda: len(made.names(PEERS)) == 3)
        restart_members(made)
        made.settle()
        lose(made, 0, 1)
        made.run_until(is_reason(made, "QuorumLost"))
        made.clock.advance(SILENCE + 1.0)
        made.etcds.holds_seeds = "save"
        ask(made)
        made.run_until(lambda: "c-3" in made.objects()["pods"])
        selector = made.get(SERVICES)["spec"]["selector"].items()
        (seed,) = made.api.objects.select(PODS, labels="etcd.improbable.io/peer-name=c-3")
        (survivor,) = made.api.objects.select(PODS, labels="etcd.improbable.io/peer-name=c-2")
        assert not selector <= seed["metadata"]["labels"].items()
        assert selector <= survivor["metadata"]["labels"].items()


def test_a_claim_that_is_left_over_is_neither_used_nor_deleted_while_the_members_are_silent() -> None:
    """The guide annotations all claims of the cluster's name, also those that no member has any more."""
    with of_improbable() as made:
        found = made.get(CLAIMS, "c-2")
        labels = {name: value.replace("c-2", "c-3") for name, value in found["metadata"]["labels"].items()}
        spec = {name: value for name, value in found["spec"].items() if name != "volumeName"}
        made.create(CLAIMS, {"metadata": {"name": "c-3", "labels": labels}, "spec": spec})
        hand_over(made)
        made.start()
        made.run_until(lambda: len(made.names(PEERS)) == 3)
        etcd = made.etcd.etcd
        names = [member.name for member in etcd.members]
        for name in names:
            etcd.freeze(name)
        made.wait(20.0)
        assert made.names(PEERS) == ["c-0", "c-1", "c-2"]
        for name in names:
            etcd.thaw(name)
        made.wait(60.0)
        assert "c-3" in made.names(CLAIMS)
