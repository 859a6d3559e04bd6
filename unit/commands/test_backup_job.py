"""The Job that the operator makes, run as a process, and its report read by the operator."""

from pathlib import Path

import msgspec

from etcd_operator.controllers.etcd_backup.decide import verification
from etcd_operator.controllers.etcd_backup.decide.plan import BackupPlan, plan
from etcd_operator.controllers.etcd_backup.decide.state import BackupState
from etcd_operator.controllers.shared.decide.backup_spec import CLAIM_FOLDER
from etcd_operator.controllers.shared.decide.job_state import JobPod, JobState
from unit.archive.samples import flip
from unit.commands.conftest import Run, job_ran
from unit.controllers.manifests.backups import ENDPOINTS, METADATA, backup_job_of, verification_job_of


def carried_out(run: Run, endpoint: str, folder: Path, name: str = "one") -> BackupPlan:
    """What the operator concludes after the container of a Job has run."""
    job = backup_job_of(
        "file:///{{ .Name }}.db",
        msgspec.structs.replace(METADATA, name=name),
        persistentVolumeClaim={"claimName": "backups"},
        compression="zstd",
    )
    ran, report = job_ran(run, job, folder, {",".join(ENDPOINTS): endpoint, CLAIM_FOLDER: folder})
    pod = JobPod(name="pod", exit_code=ran.code, report=report)
    made = plan(
        BackupState(phase="BackingUp", url=f"file:///{name}.db", job=JobState(name="j", uid="u", pods=(pod,)))
    )
    assert made is not None
    return made


def test_a_backup_is_stored_and_reported(run: Run, endpoint: str, backups: Path) -> None:
    made = carried_out(run, endpoint, backups)
    assert (made.phase, made.reason) == ("Completed", "Stored")
    assert made.manifest is not None
    assert (made.manifest.revision, made.manifest.etcd_version) == (6, "3.6.16")
    assert made.message.startswith(
        f"stored file:///one.db: revision 6, 5 keys, 40.0 KiB, from {endpoint} in "
    )
    (listed,) = run("list", backups, "--json").document["backups"][:1]
    assert (listed["name"], listed["state"]) == ("one.db", "complete")


def test_a_name_that_is_taken_and_a_cluster_that_does_not_answer(
    run: Run, endpoint: str, backups: Path
) -> None:
    carried_out(run, endpoint, backups)
    again = carried_out(run, endpoint, backups)
    assert (again.phase, again.reason) == ("Failed", "NameTaken")
    silent = carried_out(run, "127.0.0.1:1", backups, "two")
    assert (silent.phase, silent.reason) == ("Failed", "SourceUnreachable")
    assert "127.0.0.1:1" in silent.message


def verified(run: Run, folder: Path, sha256: str) -> BackupPlan:
    """What the operator concludes after the container that verifies one.db has run."""
    job = verification_job_of("file:///one.db", persistentVolumeClaim={"claimName": "backups"})
    ran, report = job_ran(run, job, folder, {CLAIM_FOLDER: folder})
    pod = JobPod(name="pod", exit_code=ran.code, report=report)
    job_state = JobState(name="j", uid="u", pods=(pod,))
    state = BackupState(phase="Completed", url="file:///one.db", verify="Hash", sha256=sha256, job=job_state)
    made = verification.plan(state)
    assert made is not None
    return made


def test_what_was_stored_is_verified_and_damage_is_found(run: Run, endpoint: str, backups: Path) -> None:
    stored = carried_out(run, endpoint, backups).manifest
    assert stored is not None
    good = verified(run, backups, stored.sha256)
    assert (good.verdict, good.reason) == (True, "HashesMatch"), good
    assert verified(run, backups, "ab" * 32).reason == "Replaced"
    file = backups / "one.db"
    flip(file, file.stat().st_size // 2)
    assert (verified(run, backups, stored.sha256).verdict, verified(run, backups, "").reason) == (
        False,
        "Damaged",
    )
    file.write_bytes(file.read_bytes()[:-1])
    assert verified(run, backups, stored.sha256).reason == "Damaged"
    file.unlink()
    assert verified(run, backups, stored.sha256).reason == "Damaged"
    (backups / "one.db.manifest.json").unlink()
    assert verified(run, backups, stored.sha256).reason == "NotABackup"
