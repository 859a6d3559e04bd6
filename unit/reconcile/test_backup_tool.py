"""`spec.backup` of a cluster from its first object to its last."""

from collections.abc import Iterator
from typing import Any

import pytest

from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SECRETS, SERVICES
from unit.reconcile.bench import Bench, bench
from unit.reconcile.bodies import COREOS, ephemeral
from unit.reconcile.tools import failing, stored

INTERVAL = 600
BACKUP = {"backupIntervalInSecond": INTERVAL, "maxBackups": 3, "volumeSizeInMB": 1024}
IN_S3 = {"maxBackups": 3, "storageType": "S3", "s3": {"s3Bucket": "my-bucket"}}
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
        lambda: "not all is as spec.backup says" in made.condition(COREOS, "BackupHealthy")["message"]
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


def test_zero_backups_are_no_backups() -> None:
    with bench() as made:
        made.start()
        made.create(*ephemeral(size=1, backup={"maxBackups": 0}))
        made.settle()
        made.rest()
        assert (made.names(REPLICA_SETS), made.names(CLAIMS), made.names(SECRETS)) == ([], [], [])
        assert health(made) == ("", "")


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


def test_a_pod_that_was_deleted_is_replaced_by_its_replica_set(made: Bench) -> None:
    (pod,) = tool_pods(made)
    made.delete(PODS, pod["metadata"]["name"])
    made.run_until(lambda: runs(made))
    made.settle()
    made.rest()


def test_a_replica_set_that_was_scaled_to_zero_is_scaled_up(made: Bench) -> None:
    made.edit(REPLICA_SETS, TOOL, {"spec": {"replicas": 0}})
    made.run_until(lambda: made.get(REPLICA_SETS, TOOL)["spec"]["replicas"] == 1 and runs(made))


def test_a_deleted_cluster_leaves_its_backups_and_another_one_finds_them(made: Bench) -> None:
    claim = made.get(CLAIMS, CLAIM)["metadata"]["uid"]
    made.delete(COREOS, "c")
    made.drain()
    made.run_until(lambda: not made.names(PODS))
    assert made.names(CLAIMS) == [CLAIM]
    assert made.names(SECRETS) == []
    made.create(*ephemeral(size=1, backup=BACKUP))
    made.run_until(lambda: health(made)[0] == "True")
    assert made.get(CLAIMS, CLAIM)["metadata"]["uid"] == claim


def finalizers(made: Bench) -> list[str]:
    return list(made.get(COREOS)["metadata"].get("finalizers") or ())


def test_backups_are_deleted_with_the_cluster_only_if_it_says_so(made: Bench) -> None:
    assert finalizers(made) == []
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) == ["coreos.com/backup-cleanup"])
    ask(made, {"cleanupBackupsOnClusterDelete": False})
    made.run_until(lambda: finalizers(made) == [])
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) != [])
    made.settle()
    made.rest()
    made.delete(COREOS, "c")
    made.run_until(lambda: made.names(COREOS) == [] and made.names(CLAIMS) == [])
    assert "PVCRemoved" in made.event_reasons()


def test_removing_spec_backup_before_the_cluster_keeps_the_backups(made: Bench) -> None:
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) != [])
    ask(made, None)
    made.run_until(lambda: finalizers(made) == [])
    made.delete(COREOS, "c")
    made.run_until(lambda: made.names(COREOS) == [])
    assert made.names(CLAIMS) == [CLAIM]


@pytest.mark.parametrize("problem", ["", "no store"])
def test_a_store_is_cleaned_by_the_tool_and_blocks_no_deletion(problem: str) -> None:
    with bench() as made:
        backed_up(made, {**IN_S3, "cleanupBackupsOnClusterDelete": True})
        assert made.names(CLAIMS) == []
        made.tools.cannot_clean = problem
        begin = made.clock.monotonic()
        made.delete(COREOS, "c")
        made.run_until(lambda: made.names(COREOS) == [])
        assert made.tools.cleaned
        took = made.clock.monotonic() - begin
        assert (took < 10, 60 <= took < 90) == (not problem, bool(problem))
        assert ("CleanupGivenUp" in made.event_reasons()) is bool(problem)


def test_a_tool_that_is_gone_blocks_no_deletion_either() -> None:
    with bench() as made:
        backed_up(made, {**IN_S3, "cleanupBackupsOnClusterDelete": True})
        made.world.up.clear()
        made.delete(REPLICA_SETS, TOOL)
        made.delete(COREOS, "c")
        made.run_until(lambda: made.names(COREOS) == [])
        assert made.tools.cleaned == [] or "CleanupGivenUp" in made.event_reasons()


def test_backups_that_fail_for_two_intervals_are_unhealthy_and_say_why(made: Bench) -> None:
    why = failing("BucketMissing", "The bucket b does not exist.")
    made.tools.report = stored(since=INTERVAL * 1.0, failure=why)
    made.wait(60.0)
    assert health(made) == ("True", "BackedUp")
    made.tools.report = stored(since=INTERVAL * 2.0 + 1, failure=why)
    made.run_until(lambda: health(made) == ("False", "BucketMissing"))
    message = made.condition(COREOS, "BackupHealthy")["message"]
    assert message == "the last success is more than 1200 seconds ago: The bucket b does not exist."
    made.settle()
    made.rest()
    made.tools.report = stored(revision=8)
    made.run_until(lambda: health(made)[0] == "True")
    assert {"BackupUnhealthy", "BackupHealthy"} <= set(made.event_reasons())


def test_a_tool_that_does_not_answer_is_believed_for_two_intervals(made: Bench) -> None:
    made.tools.problem = "Connection refused"
    made.wait(INTERVAL * 2 - 120)
    assert health(made) == ("True", "BackedUp")
    made.run_until(lambda: health(made) == ("False", "ToolUnreachable"))
    assert made.status(COREOS)["backup"]["revision"] == 7
    made.settle()
    made.rest()


def test_after_a_restart_of_the_operator_the_newest_backup_counts(made: Bench) -> None:
    made.tools.problem = "Connection refused"
    made.restart()
    made.wait(60.0)
    assert health(made) == ("True", "BackedUp")
    made.rest()


def test_a_token_that_is_refused_is_read_again(made: Bench) -> None:
    made.tools.refused_token = made.tools.asked[-1][1]
    made.delete(SECRETS, TOOL)
    made.run_until(lambda: made.tools.asked[-1][1] != made.tools.refused_token)
    made.run_until(lambda: health(made)[0] == "True")


def test_members_are_served_although_backups_cannot_be() -> None:
    with bench() as made:
        made.create(REPLICA_SETS, {"metadata": {"name": TOOL}, "spec": _foreign()})
        made.start()
        made.create(*ephemeral(size=1, backup=BACKUP))
        made.settle()
        made.run_until(lambda: health(made) == ("Unknown", "NameConflict"))
        assert "belongs to somebody else" in made.condition(COREOS, "BackupHealthy")["message"]
        made.edit(COREOS, "c", {"spec": {"size": 3}})
        made.settle()
        assert made.status(COREOS)["size"] == 3


def _foreign() -> dict[str, Any]:
    labels = {"app": "other"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    return {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}


def test_a_claim_of_somebody_else_is_not_used() -> None:
    with bench() as made:
        requests = {"requests": {"storage": "1Gi"}}
        made.create(CLAIMS, {"metadata": {"name": CLAIM}, "spec": {"resources": requests}})
        made.start()
        made.create(*ephemeral(size=1, backup=BACKUP))
        made.run_until(lambda: health(made) == ("Unknown", "NameConflict"))
        assert TOOL not in made.names(REPLICA_SETS)
        made.edit(CLAIMS, CLAIM, {"metadata": {"labels": LABELS}})
        made.run_until(lambda: health(made)[0] == "True")


def test_an_invalid_policy_is_reported_and_changes_nothing(made: Bench) -> None:
    ask(made, {"storageType": "S3"})
    made.run_until(lambda: health(made) == ("False", "InvalidSpec"))
    assert runs(made)
    made.settle()
    made.rest()


def test_a_spec_that_is_wrong_elsewhere_changes_nothing(made: Bench) -> None:
    made.edit(COREOS, "c", {"spec": {"version": "latest"}})
    made.drain()
    made.delete(SERVICES, TOOL)
    made.wait(30.0)
    assert TOOL not in made.names(SERVICES)
    assert health(made) == ("True", "BackedUp")
    made.edit(COREOS, "c", {"spec": {"version": None}})
    made.run_until(lambda: TOOL in made.names(SERVICES))


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
