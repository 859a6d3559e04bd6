"""EtcdBackupSchedules on a real Kubernetes: times, edits, the status, and deletion."""

import re
from datetime import UTC, datetime

import pytest

from e2e.support.clusters import Document, persistent
from e2e.support.operators import Operator
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, wait_until
from e2e.test_backups import KEY, ON_CLAIM, VERSION, backup, verified, wait_phase, with_a_key
from etcd_operator.api.backup_schedules import SCHEDULED_ANNOTATION
from etcd_operator.formats import instant
from etcd_operator.kube import resources

SELECTOR = "etcd.improbable.io/backup-schedule-name=my-schedule"
PRUNES = "app.kubernetes.io/name=etcd-backup-prune"
MINUTE = 75.0
"""Until the next minute begins, and a pass."""


def schedule(**spec: object) -> Document:
    """An EtcdBackupSchedule of my-cluster, onto a claim."""
    template = {"source": {"clusterURL": "http://my-cluster:2379"}, "destination": ON_CLAIM}
    return {
        "apiVersion": VERSION,
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": "my-schedule"},
        "spec": {"schedule": "0 3 1 1 *", "backupTemplate": template, **spec},
    }


def status_of(space: Space) -> Document:
    status: Document = space.kubectl.json("get", "etcdbackupschedule", "my-schedule").get("status", {})
    return status


def ready(space: Space) -> str:
    """The reason of the condition Ready."""
    return str(condition({"status": status_of(space)}, "Ready")["reason"])


def edit(space: Space, spec: str) -> None:
    space.kubectl("patch", "etcdbackupschedule", "my-schedule", "--type=merge", "-p", f'{{"spec":{spec}}}')


def health(space: Space) -> tuple[str, str]:
    """Status and reason of the condition BackupHealthy of the cluster."""
    found = condition(space.stored(persistent()), "BackupHealthy")
    return found["status"], found["reason"]


def removed(space: Space) -> int:
    """How many backups the last prune has removed."""
    return int(status_of(space).get("lastPrune", {}).get("removed", 0))


def pruned(space: Space) -> tuple[str, str]:
    """Status and message of the condition Pruned."""
    found = condition({"status": status_of(space)}, "Pruned")
    return found["status"], found["message"]


@pytest.mark.capability("EtcdBackupSchedule")
@pytest.mark.walkthrough("Improbable guide", "The EtcdBackupSchedule resource")
def test_a_schedule_from_its_creation_to_its_deletion(space: Space, operator: Operator) -> None:
    with_a_key(space)
    space.kubectl.create(schedule(timeZone="Europe/Berlin"))
    wait_until(lambda: ready(space) == "Scheduled", "the status has the next time", within=30)
    year = datetime.now(UTC).year
    assert status_of(space)["nextScheduleTime"] == f"{year + 1}-01-01T02:00:00Z"
    assert space.names(resources.BACKUPS) == []
    wait_until(lambda: health(space) == ("Unknown", "FirstBackupPending"), "no backup is due yet", within=30)

    edited = datetime.now(UTC)
    edit(space, '{"schedule": "* * * * *"}')
    wait_until(
        lambda: space.names(resources.BACKUPS, SELECTOR), lambda: f"one: {status_of(space)}", within=MINUTE
    )
    (name, *_) = space.names(resources.BACKUPS, SELECTOR)
    edit(space, '{"suspend": true}')
    stored = wait_phase(space, name, "Completed")
    annotations = space.kubectl.json("get", "etcdbackup", name)["metadata"]["annotations"]
    due = instant(annotations[SCHEDULED_ANNOTATION])
    assert name == f"my-schedule-{due:%Y%m%d-%H%M}"
    assert edited < due < datetime.now(UTC)
    wait_until(
        lambda: status_of(space).get("lastSuccessfulURL") == f"file:///{name}.db",
        lambda: f"the status reports it: {status_of(space)}",
    )
    assert status_of(space)["lastBackup"] == {"name": name, "phase": "Completed", "url": stored["url"]}
    assert ready(space) == "Suspended"
    wait_until(
        lambda: health(space) == ("Unknown", "Suspended"), lambda: f"it is: {health(space)}", within=30
    )
    header, row = space.kubectl("get", "etcdbackupschedules").strip().split("\n")
    columns = list(re.finditer(r"\S+( \S+)* *", header))  # values have spaces, or are empty
    shown = {each[0].strip(): row[each.start() : each.end()].strip() for each in columns}
    assert (shown["SCHEDULE"], shown["STATUS"]) == ("* * * * *", "Suspended"), row
    assert (shown["LAST BACKUP"], shown["NAME"]) == ("Completed", "my-schedule"), row
    assert shown["LAST SUCCESS"] not in ("", "<none>"), row
    described = space.kubectl("describe", "etcdbackupschedule", "my-schedule")
    assert f"EtcdBackup {name}: stored file:///{name}.db: revision {stored['revision']}, " in described
    space.wait_events("my-schedule", ("Normal", "BackupStarted"), ("Normal", "BackupCompleted"), within=30)

    edit(space, '{"schedule": "0 3 1 1 *", "suspend": false}')
    space.kubectl("wait", "etcd/my-cluster", "--for=condition=BackupHealthy", "--timeout=30s")
    metrics: dict[str, float] = {}

    def healthy() -> bool:
        metrics.update(operator.metrics("backup", space.namespace, "my-schedule"))
        return metrics.get("healthy") == 1

    wait_until(healthy, lambda: f"metrics show the same: {metrics}", within=30)
    success = instant(status_of(space)["lastSuccessfulTime"]).timestamp()
    assert metrics["failures_total"] == 0
    assert metrics["last_success_timestamp_seconds"] == success
    assert metrics["last_size_bytes"] == stored["size"]
    assert metrics["last_duration_seconds"] < LONG

    space.kubectl("delete", "etcdbackupschedule", "my-schedule", "--timeout=30s")
    wait_until(
        lambda: health(space) == ("", "") and not operator.metrics("backup", space.namespace, "my-schedule"),
        "condition and metrics are gone",
        within=30,
    )
    wait_until(
        lambda: not space.names(resources.BACKUPS) and not space.names(resources.JOBS),
        "its EtcdBackups and their Jobs are deleted with it",
        within=60,
    )
    assert verified(str(claim_folder(space, "my-backups") / f"{name}.db")), "what is stored is kept"


@pytest.mark.long
def test_old_etcd_backups_are_deleted_and_two_never_run_at_once(space: Space) -> None:
    """The second one is due while the first waits for its Secret."""
    keys = {"encryption": {"secretName": "keys"}}
    document = schedule(schedule="* * * * *", successfulBackupsHistoryLimit=0)
    document["spec"]["backupTemplate"] |= keys
    with_a_key(space)
    space.kubectl.create(document)
    wait_until(lambda: ready(space) == "Waiting", lambda: f"one waits: {status_of(space)}", within=2 * MINUTE)
    assert len(space.names(resources.BACKUPS, SELECTOR)) == 1
    space.kubectl("create", "secret", "generic", "keys", f"--from-literal=key-1={KEY}")
    edit(space, '{"suspend": true}')
    wait_until(
        lambda: status_of(space).get("lastSuccessfulURL") and not space.names(resources.BACKUPS),
        lambda: f"it is stored, and its EtcdBackup deleted: {status_of(space)}",
        within=LONG + MINUTE,
    )


def test_only_the_newest_stored_backups_of_a_schedule_are_kept(space: Space) -> None:
    """The EtcdBackups are created by hand, as the schedule would at its times."""
    with_a_key(space)
    space.kubectl.create(schedule(retention={"maxCount": 1}))
    uid = space.kubectl.json("get", "etcdbackupschedule", "my-schedule")["metadata"]["uid"]
    owner = {"apiVersion": VERSION, "kind": "EtcdBackupSchedule", "name": "my-schedule", "uid": uid}
    names = [f"my-schedule-2025010{day}-0000" for day in range(1, 4)]
    for day, name in enumerate(names, 1):
        document = backup(name, ON_CLAIM)
        if name != names[1]:
            document["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
            document["metadata"]["annotations"] = {SCHEDULED_ANNOTATION: f"2025-01-0{day}T00:00:00Z"}
        space.kubectl.create(document)
        wait_phase(space, name, "Completed")
    wait_until(
        lambda: removed(space) and pruned(space)[0] == "True", lambda: f"one is removed: {status_of(space)}"
    )
    folder = claim_folder(space, "my-backups")
    stored = sorted(path.name for path in folder.iterdir() if path.name.endswith(".db"))
    assert stored == [f"{name}.db" for name in names[1:]], "the second is of no schedule, and is not counted"
    assert len(list(folder.iterdir())) == 2 * len(stored), "its manifest is removed, too"
    assert f"{names[2]}.db" in verified(str(folder / stored[-1]))
    assert pruned(space) == ("True", "removed 1 backup, 1 left")
    assert status_of(space)["lastPrune"]["stored"] == 1
    space.wait_events("my-schedule", ("Normal", "BackupsPruned"), within=30)
    space.kubectl("delete", "etcdbackupschedule", "my-schedule", "--timeout=30s")
    wait_until(lambda: not space.names(resources.JOBS, PRUNES), "its Job is deleted with it", within=60)
    assert len(list(folder.iterdir())) == 2 * len(stored)


@pytest.mark.long
def test_a_claim_that_is_gone_delays_no_backup_and_is_reported(space: Space) -> None:
    """Each minute one is stored and one removed, until the claim of the schedule names is another one."""
    with_a_key(space)
    space.kubectl.create(schedule(schedule="* * * * *", retention={"maxCount": 1}))
    wait_until(lambda: removed(space) == 1, lambda: f"one is removed: {status_of(space)}", within=3 * MINUTE)
    folder = claim_folder(space, "my-backups")
    edit(space, '{"suspend": true}')
    (left,) = [path.name for path in folder.iterdir() if path.name.endswith(".db")]
    assert status_of(space)["lastSuccessfulURL"] == f"file:///{left}"
    edit(space, '{"backupTemplate": {"destination": {"persistentVolumeClaim": {"claimName": "gone"}}}}')
    edit(space, '{"retention": {"maxCount": 2}}')
    wait_until(lambda: '"gone" not found' in pruned(space)[1], lambda: f"reports why: {status_of(space)}")
    space.kubectl("delete", "etcdbackupschedule", "my-schedule", "--timeout=30s")
    assert (folder / left).exists()
