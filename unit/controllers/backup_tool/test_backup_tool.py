"""`spec.backup` of a cluster from its first object to its last."""

from collections.abc import Iterator
from typing import Any

import pytest

from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SECRETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.tools import stored

INTERVAL = 600
BACKUP = {"backupIntervalInSecond": INTERVAL, "maxBackups": 3, "volumeSizeInMB": 1024}
TOOL, CLAIM = "c-backup-tool", "c-pvc"
LABELS = {"app": "etcd_backup_tool", "etcd_cluster": "c"}


def tool_pods(made: Bench) -> list[dict[str, Any]]:
    return list(made.api.objects.select(PODS, labels="app=etcd_backup_tool"))


def runs(made: Bench) -> bool:
    """Whether one pod of the tool runs."""
    pods = tool_pods(made)
    return len(pods) == 1 and pods[0]["status"]["phase"] == "Running"


def health(made: Bench) -> tuple[str, str]:
    found = made.condition(COREOS, "BackupHealthy")
    return found.get("status", ""), found.get("reason", "")


def ask(made: Bench, backup: Any) -> None:
    made.edit(COREOS, "c", {"spec": {"backup": backup}})


def backed_up(made: Bench, backup: Any = None) -> None:
    """A cluster of one member, backed up."""
    made.start()
    made.create(*ephemeral(size=1, backup=backup or BACKUP))
    made.run_until(lambda: health(made)[0] == "True")
    made.settle()


@pytest.fixture
def made() -> Iterator[Bench]:
    with bench() as made:
        backed_up(made)
        yield made


def test_the_objects_are_those_of_the_documents(made: Bench) -> None:
    (pod,) = tool_pods(made)
    assert pod["metadata"]["name"].startswith(f"{TOOL}-")
    assert LABELS.items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    assert (container["name"], container["image"]) == ("backup", "localhost/etcd-operator:test")
    assert container["ports"] == [{"name": "backup-service", "containerPort": 19999}]
    uid = made.get(COREOS)["metadata"]["uid"]
    for kind in (REPLICA_SETS, SERVICES, SECRETS):
        (owner,) = made.get(kind, TOOL)["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (uid, True)
    claim = made.get(CLAIMS, CLAIM)
    assert "ownerReferences" not in claim["metadata"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "1024Mi"
    made.rest()


def test_the_status_has_what_the_tool_reports(made: Bench) -> None:
    assert made.status(COREOS)["backup"] == {
        "name": "3.6.16_0000000000000007_etcd.backup",
        "time": "2026-01-01T00:00:00Z",
        "revision": 7,
        "size": 20512,
        "etcdVersion": "3.6.16",
        "clusterID": "c0de",
        "sha256": "ab" * 32,
        "took": 0.4,
        "count": 1,
        "totalSize": 20512,
    }
    assert health(made) == ("True", "BackedUp")
    made.tools.report = stored(revision=9, count=2)
    made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 9)
    assert made.status(COREOS)["backup"]["count"] == 2
    assert made.status(COREOS)["size"] == 1, "the pod of the tool is no member"
    made.rest()


def test_the_tool_is_asked_with_its_token_now_and_then(made: Bench) -> None:
    import base64

    token = base64.b64decode(made.get(SECRETS, TOOL)["data"]["token"]).decode()
    assert len(token) > 30
    (pod,) = tool_pods(made)
    assert set(made.tools.asked) == {((pod["status"]["podIP"], 19999), token)}
    before = len(made.tools.asked)
    made.wait(300.0)
    assert 8 <= len(made.tools.asked) - before <= 12


def test_an_edit_restarts_the_tool_at_once_and_touches_no_backup(made: Bench) -> None:
    (before,) = tool_pods(made)
    claim = made.get(CLAIMS, CLAIM)
    ask(made, {"maxBackups": 5})
    made.run_until(lambda: runs(made) and tool_pods(made)[0]["metadata"]["uid"] != before["metadata"]["uid"])
    (container,) = tool_pods(made)[0]["spec"]["containers"]
    assert "--max-backups=5" in container["args"]
    assert made.get(CLAIMS, CLAIM) == claim
    made.settle()
    made.rest()


def test_the_claim_grows(made: Bench) -> None:
    (before,) = tool_pods(made)
    ask(made, {"volumeSizeInMB": 2048})
    made.run_until(lambda: made.get(CLAIMS, CLAIM)["spec"]["resources"]["requests"]["storage"] == "2048Mi")
    made.settle()
    made.rest()
    assert tool_pods(made)[0]["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_claim_that_cannot_grow_is_reported_and_stops_nothing_else(made: Bench) -> None:
    def refuse(request: Request) -> Fault | None:
        is_growth = request.method == "PATCH" and request.plural == "persistentvolumeclaims"
        return Answer(code=403, reason="Forbidden") if is_growth else None

    made.api.before = refuse
    ask(made, {"volumeSizeInMB": 2048, "maxBackups": 5})
    made.run_until(
        lambda: "spec.backup is not fully applied" in made.condition(COREOS, "BackupHealthy")["message"]
    )
    made.run_until(
        lambda: runs(made) and "--max-backups=5" in tool_pods(made)[0]["spec"]["containers"][0]["args"]
    )
    made.delete(REPLICA_SETS, TOOL)
    made.run_until(lambda: TOOL in made.names(REPLICA_SETS) and runs(made))
    assert health(made) == ("True", "BackedUp")


def test_without_spec_backup_the_tool_goes_and_the_backups_stay(made: Bench) -> None:
    ask(made, None)
    made.run_until(lambda: not tool_pods(made) and health(made) == ("", ""))
    made.settle()
    assert TOOL not in made.names(REPLICA_SETS) + made.names(SERVICES)
    assert made.names(CLAIMS) == [CLAIM]
    assert "backup" not in made.status(COREOS)
    made.rest()
    ask(made, BACKUP)
    made.run_until(lambda: health(made)[0] == "True")
    assert made.names(CLAIMS) == [CLAIM]


@pytest.mark.parametrize("kind", [REPLICA_SETS, SERVICES, SECRETS], ids=lambda kind: kind.plural)
def test_what_was_deleted_is_made_again(made: Bench, kind: Any) -> None:
    before = made.get(kind, TOOL)["metadata"]["uid"]
    made.delete(kind, TOOL)
    made.run_until(
        lambda: TOOL in made.names(kind) and made.get(kind, TOOL)["metadata"]["uid"] != before, turns=3000
    )
    made.run_until(lambda: runs(made))
    made.settle()
    made.rest()


def test_a_claim_that_somebody_deletes_goes_and_is_made_again(made: Bench) -> None:
    """Kubernetes keeps it until no pod that was scheduled uses it."""
    (pod,), claim = tool_pods(made), made.get(CLAIMS, CLAIM)["metadata"]["uid"]
    made.delete(CLAIMS, CLAIM)
    made.run_until(
        lambda: pod["metadata"]["uid"] not in {each["metadata"]["uid"] for each in tool_pods(made)}
    )
    made.edit(CLAIMS, CLAIM, {"metadata": {"finalizers": []}})
    made.run_until(lambda: made.names(CLAIMS) == [CLAIM] and runs(made))
    assert made.get(CLAIMS, CLAIM)["metadata"]["uid"] != claim
    made.settle()
    made.rest()


def test_a_replica_set_that_was_scaled_to_zero_is_scaled_up(made: Bench) -> None:
    made.edit(REPLICA_SETS, TOOL, {"spec": {"replicas": 0}})
    made.run_until(lambda: made.get(REPLICA_SETS, TOOL)["spec"]["replicas"] == 1 and runs(made))


def test_a_paused_cluster_is_left_alone(made: Bench) -> None:
    made.edit(COREOS, "c", {"spec": {"paused": True}})
    made.drain()
    made.delete(SERVICES, TOOL)
    made.wait(60.0)
    assert TOOL not in made.names(SERVICES)
    made.edit(COREOS, "c", {"spec": {"paused": False}})
    made.run_until(lambda: TOOL in made.names(SERVICES))


def test_a_recovery_of_a_member_needs_no_backup_and_the_tool_runs_on(made: Bench) -> None:
    (before,) = tool_pods(made)
    made.edit(COREOS, "c", {"spec": {"size": 3}})
    made.settle()
    made.delete(PODS, "c-0001")
    made.run_until(lambda: "c-0003" in made.names(PODS))
    made.settle()
    assert tool_pods(made)[0]["metadata"]["uid"] == before["metadata"]["uid"]


def test_metrics_show_the_backups_of_a_cluster_as_long_as_it_has_some(made: Bench) -> None:
    def metrics() -> BackupMetrics | None:
        assert made.operator is not None
        return made.operator.backup_metrics.get(("EtcdCluster", Key("default", "c")))

    made.tools.report = stored(revision=9, failures=2)
    made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 9)
    found = metrics()
    assert found is not None
    assert found.last_success == pytest.approx(made.clock.now().timestamp(), abs=30.0)
    assert (found.cluster, found.took, found.size, found.failures) == ("c", 0.4, 20512, 2)
    assert (found.last_verified, found.is_healthy) == (None, True)
    made.edit(COREOS, "c", {"spec": {"backup": {"maxBackups": 0}}})
    made.run_until(lambda: metrics() is None)
    ask(made, BACKUP)
    made.run_until(lambda: metrics() is not None)
    made.delete(COREOS, "c")
    made.run_until(lambda: metrics() is None)
