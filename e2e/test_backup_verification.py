"""EtcdBackups with spec.verify on a real Kubernetes: proven by a test restore, or reported as damaged."""

import os
from pathlib import Path

import pytest

from e2e.support.clusters import Document, persistent
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_backup_schedules import MINUTE, SELECTOR, edit, schedule
from e2e.test_backup_schedules import status_of as status_of_schedule
from e2e.test_backups import (
    CLAIM,
    ON_CLAIM,
    TIMEOUT,
    backup,
    reason_of,
    status_of,
    wait_phase,
    with_a_key,
)
from e2e.test_backups import verified as verified_file
from etcd_operator.kube import resources

NO_MORE_JOBS: Document = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "jobs"},
    "spec": {"hard": {"count/jobs.batch": "3"}},
}
"""Two of the first backup, one of the second: keeps its verification from its start, until it is deleted."""


def verified(status: Document) -> Document:
    """The condition Verified."""
    return next((each for each in status.get("conditions", []) if each["type"] == "Verified"), {})


def wait_verdict(space: Space, name: str, verdict: str) -> Document:
    """Wait for the end of a verification; the condition."""

    def found() -> Document | None:
        condition = verified(status_of(space, name))
        assert condition.get("status") in (None, "Unknown", verdict), condition
        return condition if condition.get("status") == verdict else None

    return wait_until(found, LONG, lambda: f"{name} is verified: {status_of(space, name)}", every=0.5) or {}


def held_back(space: Space, name: str) -> Path:
    """An EtcdBackup that is stored, and whose verification cannot start yet; its file."""
    space.kubectl.create(NO_MORE_JOBS)
    wait_until(
        lambda: "used" in space.kubectl.json("get", "resourcequota", "jobs").get("status", {}),
        LONG,
        "Kubernetes has counted the Jobs",
    )
    space.kubectl.create(backup(name, ON_CLAIM, verify="Hash"))
    wait_phase(space, name, "Completed")
    wait_until(
        lambda: verified(status_of(space, name)).get("reason") == "Forbidden",
        LONG,
        lambda: f"the status reports why: {status_of(space, name)}",
    )
    return claim_folder(space, "my-backups") / f"{name}.db"


def test_a_backup_is_proven_by_a_test_restore_and_damage_is_found(space: Space) -> None:
    """In a namespace that enforces the Pod Security Standard `restricted`, see `Space`."""
    with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM, verify="Restore"))
    space.kubectl("wait", "etcdbackup/one", "--for=condition=Verified", TIMEOUT, deadline=LONG + 30)
    status = status_of(space, "one")
    assert status["phase"] == "Completed"
    verification = status["verification"]
    assert (verification["level"], verification["etcdVersion"]) == ("Restore", "3.6.16")
    assert verification["took"] > 0
    assert verification["completionTime"] >= verification["startTime"] >= status["startTime"]
    condition = verified(status)
    assert condition["reason"] == "Restored"
    proof = f"restored, and served by etcd 3.6.16 at revision {status['revision']}, in "
    assert proof in condition["message"], condition
    (row,) = space.kubectl.table("get", "etcdbackups")
    assert row["VERIFIED"] == "True", row
    wait_until(
        lambda: {("Normal", "VerificationStarted"), ("Normal", "BackupVerified")} <= space.events("one"),
        LONG,
        "Events report it",
    )
    assert len(space.names(resources.JOBS)) == 2

    file = held_back(space, "two")  # one bit is changed before it is verified
    with file.open("r+b") as changed:
        changed.seek(file.stat().st_size // 2)
        (byte,) = changed.read(1)
        changed.seek(-1, os.SEEK_CUR)
        changed.write(bytes([byte ^ 1]))
    space.kubectl("delete", "resourcequota", "jobs")
    space.kubectl("annotate", "etcdbackup", "two", "try=again")  # an event, so that a pass is not awaited
    condition = wait_verdict(space, "two", "False")
    assert condition["reason"] == "Damaged", condition
    status = status_of(space, "two")
    assert (status["phase"], reason_of(space, "two")[0]) == ("Completed", "Stored")
    wait_until(lambda: ("Warning", "VerificationFailed") in space.events("two"), LONG, "an Event reports it")


@pytest.mark.long
def test_a_verification_that_is_killed_proves_nothing(space: Space) -> None:
    """Its pod is deleted while it runs: the database has 200 MiB, so that it takes a while."""
    document = space.created(persistent(replicas=1))
    space.wait_settled(document)
    with Members() as members:
        client = members.client(space.addresses(document)[0])
        for number in range(200):
            value = os.urandom(1 << 20)
            answered(lambda n=number, v=value: client.put(f"key-{n}".encode(), v), "a key is written")  # type: ignore[misc]
    claim: Document = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "1Gi"}}}}
    space.kubectl.create(claim)
    space.kubectl.create(backup("one", ON_CLAIM, verify="Restore"))

    def is_running() -> bool:
        status = verified(status_of(space, "one"))
        assert status.get("status") in (None, "Unknown"), status
        return status.get("reason") == "Running"

    wait_until(is_running, LONG, lambda: f"it runs: {status_of(space, 'one')}", every=0.05)
    space.kubectl(
        "delete", "pods", "--selector=app.kubernetes.io/name=etcd-backup-verification", "--wait=false"
    )
    condition = wait_verdict(space, "one", "False")
    assert condition["reason"] in ("Interrupted", "PodDeleted"), condition
    assert status_of(space, "one")["phase"] == "Completed"
    assert verified_file(str(claim_folder(space, "my-backups") / "one.db")), "it is whole nevertheless"


@pytest.mark.long
def test_a_schedule_names_the_last_verified_backup(space: Space) -> None:
    with_a_key(space)
    document = schedule(schedule="* * * * *")
    document["spec"]["backupTemplate"]["verify"] = "Restore"
    space.kubectl.create(document)
    wait_until(lambda: space.names(resources.BACKUPS, SELECTOR), MINUTE, "one is started")
    edit(space, '{"suspend": true}')
    (name, *_) = space.names(resources.BACKUPS, SELECTOR)
    wait_until(
        lambda: status_of_schedule(space).get("lastVerifiedURL") == f"file:///{name}.db",
        LONG,
        lambda: f"the status reports it: {status_of_schedule(space)}",
    )
    status = status_of_schedule(space)
    assert status["lastVerifiedTime"] == status["lastSuccessfulTime"]
    assert "LAST VERIFIED" in space.kubectl("get", "etcdbackupschedules")
    wait_until(
        lambda: ("Normal", "BackupVerified") in space.events("my-schedule"), LONG, "an Event reports it"
    )
