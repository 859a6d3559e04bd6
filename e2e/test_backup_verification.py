"""EtcdBackups with spec.verify on a real Kubernetes: proven by a test restore, or reported as damaged."""

import os
from pathlib import Path

import pytest

from e2e.support.clusters import Document, persistent
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_backup_schedules import MINUTE, SELECTOR, edit, schedule
from e2e.test_backup_schedules import status_of as status_of_schedule
from e2e.test_backups import (
    CLAIM,
    ON_CLAIM,
    TIMEOUT,
    backup,
    complete,
    damage,
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


def verified(space: Space, name: str) -> Document:
    """The condition Verified."""
    return condition(space.kubectl.json("get", "etcdbackup", name), "Verified")


def wait_verdict(space: Space, name: str, verdict: str) -> Document:
    """Wait for the end of a verification; the condition."""

    def found() -> Document | None:
        now = verified(space, name)
        assert now["status"] in ("", "Unknown", verdict), now
        return now if now["status"] == verdict else None

    return wait_until(found, lambda: f"{name} is verified: {status_of(space, name)}", every=0.5) or {}


def held_back(space: Space, name: str) -> Path:
    """An EtcdBackup that is stored, and whose verification cannot start yet; its file."""
    space.kubectl.create(NO_MORE_JOBS)
    wait_until(
        lambda: "used" in space.kubectl.json("get", "resourcequota", "jobs").get("status", {}),
        "Kubernetes has counted the Jobs",
    )
    space.kubectl.create(backup(name, ON_CLAIM, verify="Hash"))
    wait_phase(space, name, "Completed")
    wait_until(
        lambda: verified(space, name)["reason"] == "Forbidden",
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
    found = verified(space, "one")
    assert found["reason"] == "Restored"
    proof = f"restored, and served by etcd 3.6.16 at revision {status['revision']}, in "
    assert proof in found["message"], found
    (row,) = space.kubectl.table("get", "etcdbackups")
    assert row["VERIFIED"] == "True", row
    space.wait_events("one", ("Normal", "VerificationStarted"), ("Normal", "BackupVerified"))
    assert len(space.names(resources.JOBS)) == 2

    file = held_back(space, "two")  # one bit is changed before it is verified
    damage(file)
    space.kubectl("delete", "resourcequota", "jobs")
    space.kubectl("annotate", "etcdbackup", "two", "try=again")  # an event, so that a pass is not awaited
    found = wait_verdict(space, "two", "False")
    assert found["reason"] == "Damaged", found
    assert (status_of(space, "two")["phase"], complete(space, "two")["reason"]) == ("Completed", "Stored")
    space.wait_events("two", ("Warning", "VerificationFailed"))


@pytest.mark.long
def test_a_verification_that_is_killed_proves_nothing(space: Space) -> None:
    """Its pod is deleted while it runs: the database has 200 MiB, so that it takes a while."""
    document = space.settled(persistent(replicas=1))
    with Members() as members:
        client = members.client(space.addresses(document)[0])
        for number in range(200):
            value = os.urandom(1 << 20)
            answered(lambda n=number, v=value: client.put(f"key-{n}".encode(), v), "a key is written")  # type: ignore[misc]
    claim: Document = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "1Gi"}}}}
    space.kubectl.create(claim)
    space.kubectl.create(backup("one", ON_CLAIM, verify="Restore"))

    def is_running() -> bool:
        now = verified(space, "one")
        assert now["status"] in ("", "Unknown"), now
        return bool(now["reason"] == "Running")

    wait_until(is_running, lambda: f"it runs: {status_of(space, 'one')}", every=0.05)
    space.kubectl(
        "delete", "pods", "--selector=app.kubernetes.io/name=etcd-backup-verification", "--wait=false"
    )
    found = wait_verdict(space, "one", "False")
    assert found["reason"] in ("Interrupted", "PodDeleted"), found
    assert status_of(space, "one")["phase"] == "Completed"
    assert verified_file(str(claim_folder(space, "my-backups") / "one.db")), "it is whole nevertheless"


@pytest.mark.long
def test_a_schedule_names_the_last_verified_backup(space: Space) -> None:
    with_a_key(space)
    document = schedule(schedule="* * * * *")
    document["spec"]["backupTemplate"]["verify"] = "Restore"
    space.kubectl.create(document)
    wait_until(lambda: space.names(resources.BACKUPS, SELECTOR), "one is started", within=MINUTE)
    edit(space, '{"suspend": true}')
    (name, *_) = space.names(resources.BACKUPS, SELECTOR)
    wait_until(
        lambda: status_of_schedule(space).get("lastVerifiedURL") == f"file:///{name}.db",
        lambda: f"the status reports it: {status_of_schedule(space)}",
    )
    status = status_of_schedule(space)
    assert status["lastVerifiedTime"] == status["lastSuccessfulTime"]
    assert "LAST VERIFIED" in space.kubectl("get", "etcdbackupschedules")
    space.wait_events("my-schedule", ("Normal", "BackupVerified"))
