"""What an EtcdRestore has begun to restore is restored to all members, whatever happens to its EtcdBackup."""

from unittest.mock import patch

import pytest

from etcd_operator.api.recoveries import REVISION_BUMP
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import MANIFEST, STORED, Jobs, backup
from unit.passes.restoring import SNAPSHOT, Restoring, made, restore

__all__ = ["made"]

URL = "s3://bucket/default/one.db"
FIRST = {"destination": {"objectURLTemplate": URL}, "serviceAccountName": "first"}
OTHER = {"destination": {"objectURLTemplate": "s3://other/one.db"}, "serviceAccountName": "other"}


def store(made: Restoring, spec: Json, sha256: str = "ab" * 32) -> None:
    """The EtcdBackup `one`, completed."""
    made.made.create(*backup("one", **spec))
    complete(made, sha256)


def complete(made: Restoring, sha256: str) -> None:
    """Its Job stores a snapshot with this SHA-256."""
    made.made.run_until(lambda: bool(made.named("one-")))
    (job,) = made.named("one-")
    Jobs(made.made).run(job, {**STORED, "manifest": {**MANIFEST, "sha256": sha256}})
    made.made.run_until(lambda: made.made.status(BACKUPS, "one").get("phase") == "Completed")


def replace_backup(made: Restoring, sha256: str = "cd" * 32) -> None:
    """Another EtcdBackup of the same name, with other data, elsewhere."""
    made.made.delete(BACKUPS, "one")
    made.made.run_until(lambda: not made.named("one-"))
    store(made, OTHER, sha256)


def begin(made: Restoring, part: str) -> Json:
    """A restore of the EtcdBackup, until it has a Job of this name, which nothing has run yet."""
    store(made, FIRST)
    made.made.create(*restore(source={"backupName": "one"}))
    made.until(lambda: bool(made.named(part)))
    made.made.drain()
    (job,) = made.named(part)
    return job


def again(made: Restoring, job: Json) -> Json:
    """The Job that is made after somebody has deleted this one."""
    made.made.delete(JOBS, job["metadata"]["name"])
    made.made.run_until(lambda: bool(made.named(job["metadata"]["name"])))
    (other,) = made.named(job["metadata"]["name"])
    assert other["metadata"]["uid"] != job["metadata"]["uid"]
    return other


def pod_of(job: Json) -> Json:
    return dict(job["spec"]["template"]["spec"])


def arguments(job: Json) -> list[str]:
    return list(pod_of(job)["containers"][0]["args"])


def flag(job: Json, name: str) -> str:
    (found,) = [word for word in arguments(job) if word.startswith(f"--{name}=")]
    return found


@pytest.mark.parametrize("part", ["r-verify", "r-1-"])
def test_an_etcdbackup_that_is_replaced_changes_nothing_of_a_restore_that_has_begun(
    made: Restoring, part: str
) -> None:
    """Each Job reads the same object, as the same ServiceAccount, and compares the same SHA-256."""
    first = begin(made, part)
    replace_backup(made)
    second = again(made, first)
    assert arguments(second) == arguments(first)
    assert pod_of(second) == pod_of(first)
    assert (arguments(second)[1], pod_of(second)["serviceAccountName"]) == (URL, "first")
    made.until_ended()
    assert (made.status["url"], made.status["snapshot"]) == (URL, SNAPSHOT)
    assert made.status["backup"]["sha256"] == SNAPSHOT["sha256"]


def test_an_etcdbackup_that_is_deleted_does_not_stop_a_restore_that_has_begun(made: Restoring) -> None:
    job = begin(made, "r-verify")
    uid = made.made.get(BACKUPS, "one")["metadata"]["uid"]
    made.made.delete(BACKUPS, "one")
    again(made, job)
    made.until_ended()
    assert made.status["backup"]["uid"] == uid
    assert made.status["backup"]["spec"]["serviceAccountName"] == "first"


def test_what_is_read_is_compared_with_what_was_recorded(made: Restoring) -> None:
    begin(made, "r-verify")
    replace_backup(made, sha256="ef" * 32)
    made.answers["verify"] = ({"snapshot": {**SNAPSHOT, "sha256": "ef" * 32}}, 0)
    made.until_ended("Failed")
    assert made.reason == "Replaced"
    assert made.message.startswith(f"the object at {URL} is not the one that the EtcdBackup stored there")


def test_all_members_are_raised_alike_by_whichever_operator(made: Restoring) -> None:
    """An operator that computes the difference otherwise takes over when some members have their Jobs."""
    made.made.create(*restore())
    made.until(lambda: bool(made.named("r-1-")))
    made.made.drain()
    (job,) = made.named("r-1-")
    made.made.kill()
    with patch(
        "etcd_operator.controllers.etcd_cluster.decide.recovery.entry.REVISION_BUMP", REVISION_BUMP * 2
    ):
        made.made.start()
        other = again(made, job)
        assert flag(other, "bump-revision") == flag(job, "bump-revision")
        assert flag(job, "bump-revision") == f"--bump-revision={made.status['revisionBump']}"
        made.until_ended()
