"""The manifests give the operator what it asks of the API server, and nothing else.

That nothing is missing is seen by every test on a bench; that nothing is unused, here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.controllers.shared.install import Installer
from etcd_operator.controllers.shared.storage_class import StorageClass
from etcd_operator.kube import resources
from etcd_operator.kube.holder_pod import HolderPods
from etcd_operator.kube.own_pod import OwnPod
from unit.controllers.backup_tool.test_backup_tool import BACKUP, backed_up
from unit.fakes.apiserver import ApiServer, Kind
from unit.fakes.apiserver.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    NODES,
    PODS,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
)
from unit.fakes.clock import FakeClock
from unit.operators import running, until
from unit.passes import manual_recoveries, quorum_losses
from unit.passes.bench import PEER_LABEL, Bench, bench
from unit.passes.bodies import BACKUPS, COREOS, PEERS, RESTORES, SCHEDULES, USERS, ephemeral, persistent
from unit.passes.cert_managers import CertManager
from unit.passes.harness import OWN_NAMESPACE, objects_of
from unit.passes.jobs import Jobs, backup, schedule
from unit.passes.restoring import Restoring, restore
from unit.passes.tls_sources import add_source, secrets, tls_source
from unit.passes.users import role, user
from unit.rights import DEFINITIONS, UNASKED, Right, all_taken, granted

MADE = {
    resources.JOBS: JOBS,
    resources.BACKUPS: BACKUPS,
    resources.SECRETS: SECRETS,
    resources.SERVICES: SERVICES,
    resources.BUDGETS: BUDGETS,
    resources.NETWORK_POLICIES: NETWORK_POLICIES,
    resources.PODS: PODS,
    resources.PEERS: PEERS,
    resources.CLAIMS: CLAIMS,
    resources.REPLICA_SETS: REPLICA_SETS,
}
"""What the operator creates, and finds out whose it is when the name is taken: a reply may have been lost."""


def make_again(made: Bench, *left_out: Kind) -> None:
    """Create one object of each kind once more, as after a reply that was lost."""
    for resource, kind in MADE.items():
        if kind in left_out:
            continue
        for name in made.names(kind)[:1]:
            stored = made.get(kind, name)
            metadata = {k: v for k, v in stored["metadata"].items() if k != "resourceVersion"}
            assert not objects_of(made.api).create(resource, {**stored, "metadata": metadata})


@contextmanager
def lived(kind: Kind, body: dict[str, Any]) -> Iterator[Bench]:
    """A cluster that was upgraded, made smaller and larger again."""
    with bench() as made:
        made.start()
        made.create(kind, body)
        made.settle()
        made.etcd.put(b"key", b"value")
        for spec in (
            {"version": "3.6.17"},
            {"size" if kind is COREOS else "replicas": 1},
            {"size" if kind is COREOS else "replicas": 3},
        ):
            made.edit(kind, "c", {"spec": spec})
            made.settle()
        make_again(made)
        made.edit(kind, "c", {"spec": {"networkPolicy": {"metrics": [{"podSelector": {}}]}}})
        made.settle()
        made.edit(kind, "c", {"spec": {"networkPolicy": {"enabled": False}}})
        made.settle()
        yield made


def a_life_of_an_ephemeral_cluster() -> frozenset[Right]:
    with lived(*ephemeral(version="3.6.16")) as made:
        quorum_losses.lose(made, *(int(name[-4:]) for name in made.objects()["pods"][:2]))
        made.settle()
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_persistent_cluster() -> frozenset[Right]:
    with lived(*persistent()) as made:
        manual_recoveries.lost_for_long(made)
        manual_recoveries.ask(made)
        made.settle()
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_with_tls() -> frozenset[Right]:
    """Names are added, somebody changes what clients trust, and it is deleted while no operator runs."""
    with bench(FakeClock(datetime.now(UTC))) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        kind, body = ephemeral(size=2, tls={side: {"auto": {}} for side in ("peer", "client")})
        made.start()
        made.create(kind, body)
        made.settle()
        made.edit(CONFIG_MAPS, "c-ca", {"data": {"ca.crt": "another"}})
        made.edit(
            kind, "c", {"spec": {"size": 1, "tls": {"client": {"extraDNSNames": ["etcd.example.com"]}}}}
        )
        made.wait(310.0)
        made.kill()
        made.delete(kind, "c")
        made.start()
        made.create(*ephemeral("d", size=1))
        made.settle()
        made.delete(kind, "d")
        made.run_until(lambda: not made.api.objects.select(SECRETS, OWN_NAMESPACE))
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_with_cert_manager() -> frozenset[Right]:
    with bench(FakeClock(datetime.now(UTC)), only=(COREOS.group,)) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        CertManager(made)
        kind, body = ephemeral(size=1, tls={"client": {"certManager": {"issuerRef": {"name": "ours"}}}})
        made.start()
        made.create(kind, body)
        made.settle()
        made.edit(kind, "c", {"spec": {"tls": {"client": {"extraDNSNames": ["etcd.example.com"]}}}})
        made.wait(310.0)
        return all_taken(exchange.request for exchange in made.api.log)


def a_survivor_that_restarted() -> frozenset[Right]:
    """Its data is read by a container in its pod."""
    with lived(*persistent()) as made:
        manual_recoveries.lose(made, 0, 1)
        (pod,) = (
            p for p in made.api.objects.select(PODS) if p["metadata"]["labels"].get(PEER_LABEL) == "c-2"
        )
        made.world.restart("default", pod["metadata"]["name"])
        made.run_until(lambda: "ReaderAdded" in made.event_reasons())
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_backup() -> frozenset[Right]:
    """Its pod never starts, so its Job is deleted."""
    with bench() as made:
        made.start()
        made.create(*backup())
        made.run_until(lambda: bool(made.names(JOBS)))
        made.run_until(lambda: made.status(BACKUPS, "one")["phase"] == "Failed")
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_backup_with_tls() -> frozenset[Right]:
    with tls_source() as made:
        add_source(made)
        made.start()
        made.create(*backup(source={"clusterName": "c"}))
        made.run_until(lambda: bool(secrets(made)))
        Jobs(made).until(lambda: made.status(BACKUPS, "one").get("phase") == "Completed")
        return all_taken(exchange.request for exchange in made.api.log)


def a_backup_of_nothing() -> frozenset[Right]:
    with bench() as made:
        made.start()
        made.create(*backup(source={"clusterName": "missing"}))
        made.run_until(lambda: made.status(BACKUPS, "one").get("phase") == "Failed")
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_schedule() -> frozenset[Right]:
    """It keeps no EtcdBackup that has ended, and removes old backups."""
    with bench() as made:
        made.start()
        made.create(*schedule(successfulBackupsHistoryLimit=0, retention={"maxCount": 1}))
        made.run_until(lambda: bool(made.names(JOBS)))
        make_again(made)
        Jobs(made).until(lambda: not made.names(BACKUPS) and "lastPrune" in made.status(SCHEDULES, "s"))
        assert made.status(SCHEDULES, "s")["lastBackup"]["phase"] == "Completed"
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_restore() -> frozenset[Right]:
    """One that is completed, and one that is not: what it made is removed."""
    with bench() as made:
        made.start()
        restoring = Restoring(made)
        made.create(*backup())
        Jobs(made).until(lambda: made.status(BACKUPS, "one").get("phase") == "Completed")
        made.create(*restore(source={"backupName": "one"}))
        restoring.until_ended()
        restoring.answers["s-0-"] = {"error": "it is damaged", "reason": "Damaged"}, 3
        kind, body = restore("s")
        body["spec"]["clusterTemplate"]["clusterName"] = "d"
        made.create(kind, body)
        restoring.until(lambda: made.status(RESTORES, "s").get("phase") == "Failed")
        make_again(made, *set(MADE.values()) - {JOBS, CLAIMS})
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_user() -> frozenset[Right]:
    """The password is replaced, and the user deleted."""
    with bench() as made:
        made.start()
        made.create(*persistent(size=1))
        made.create(*role())
        made.create(*user(rotateAfter="1h"))
        made.settle()
        made.run_until(lambda: bool(made.names(SECRETS)))
        make_again(made, *set(MADE.values()) - {SECRETS})
        made.clock.advance(3600.0)
        made.wait(31.0)
        made.delete(USERS, "app")
        made.drain()
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def a_life_of_a_backup_tool() -> frozenset[Right]:
    """Its claim grows, and is deleted with its cluster."""
    with bench() as made:
        backed_up(made, {**BACKUP, "cleanupBackupsOnClusterDelete": True})
        make_again(made, CLAIMS)
        made.edit(COREOS, "c", {"spec": {"backup": {"volumeSizeInMB": 2048, "maxBackups": 5}}})
        made.settle()
        made.delete(COREOS, "c")
        made.run_until(lambda: made.names(COREOS) == [])
        made.events()
        return all_taken(exchange.request for exchange in made.api.log)


def the_storage_class() -> frozenset[Right]:
    with ApiServer() as api:
        client = objects_of(api).client
        StorageClass(client, "kubernetes.io/gce-pd", wait=lambda _: True).create()
        return all_taken(exchange.request for exchange in api.log)


def a_leader(home: Path) -> frozenset[Right]:
    with bench() as made, running(made, home, leader_elect=True):
        until(made, lambda: any(write.request.method == "PUT" for write in made.api.writes))
        return all_taken(exchange.request for exchange in made.api.log)


def a_successor() -> frozenset[Right]:
    """Who checks whether a silent leader has ended: its pod, its node, and what its kubelet renews."""
    with ApiServer() as api:
        client = objects_of(api).client
        holder_pods = HolderPods(client, FakeClock())
        pod = OwnPod(uid="uid", namespace="default", name="etcd-operator-x", node="node-1")
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        api.objects.create(NODES, "", {"metadata": {"name": "node-1"}})
        api.objects.patch(NODES, "", "node-1", {"status": ready}, "merge", subresource="status")
        assert holder_pods.missing_since(pod) is not None
        assert not holder_pods.is_node_alive("node-1")  # nothing renews its Lease
        return all_taken(exchange.request for exchange in api.log)


def the_definitions() -> frozenset[Right]:
    with ApiServer() as api:
        client = objects_of(api).client
        assert Installer(client, wait=lambda _: True).try_all()
        applied = all_taken(exchange.request for exchange in api.log)
    # A real API server asks for this right, too, when an apply makes the object.
    return applied | {(group, resource, "create") for group, resource, _ in applied}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, frozenset[Right]]:
    """What the operator asks of the API server, by occasion."""
    return {
        "ephemeral": a_life_of_an_ephemeral_cluster(),
        "persistent": a_life_of_a_persistent_cluster(),
        "survivor": a_survivor_that_restarted(),
        "tls": a_life_with_tls(),
        "cert-manager": a_life_with_cert_manager(),
        "backup": a_life_of_a_backup(),
        "backup with TLS": a_backup_with_tls(),
        "backup of nothing": a_backup_of_nothing(),
        "schedule": a_life_of_a_schedule(),
        "restore": a_life_of_a_restore(),
        "user": a_life_of_a_user(),
        "backup tool": a_life_of_a_backup_tool(),
        "storage class": the_storage_class(),
        "leader": a_leader(tmp_path_factory.mktemp("home")),
        "successor": a_successor(),
        "definitions": the_definitions(),
    }


def test_the_operator_asks_for_everything_that_it_may(asked: dict[str, frozenset[Right]]) -> None:
    assert granted("examples/deployment-aws.yaml") == frozenset(UNASKED).union(*asked.values())


def test_only_who_has_a_storage_class_made_gives_the_right_to_make_one(
    asked: dict[str, frozenset[Right]],
) -> None:
    assert granted() == granted("examples/deployment-aws.yaml") - asked["storage class"]
    assert granted("examples/deployment.yaml") == granted()


def test_who_does_not_install_definitions_needs_no_right_to_them(asked: dict[str, frozenset[Right]]) -> None:
    assert granted("deployment-no-install.yaml") == granted() - asked["definitions"]
    assert {group for group, _, _ in asked["definitions"]} == set(DEFINITIONS)


def test_an_operator_of_one_namespace_lacks_only_what_is_outside_of_it(
    asked: dict[str, frozenset[Right]],
) -> None:
    """Nodes: it waits for the Lease of a dead leader to expire."""
    outside = {("", "nodes", "get")}
    assert granted("namespaced/deployment.yaml") == granted() - asked["definitions"] - outside
