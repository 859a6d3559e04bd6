"""The Jobs of an EtcdRestore, run as processes, and their reports read by the operator."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import RestoreSpec
from etcd_operator.controllers.etcd_restore.decide.spec import access
from etcd_operator.controllers.etcd_restore.manifests import restore_job, restored
from etcd_operator.controllers.shared.decide.backup_spec import CLAIM_FOLDER
from etcd_operator.controllers.shared.decide.job_report import JobReport, restore_failure
from etcd_operator.controllers.shared.manifests.command import SCRATCH
from etcd_operator.controllers.shared.manifests.pod import DATA_DIR
from unit.api.contract.case import changed
from unit.api.contract.restore_cases import RESTORE
from unit.archive.restoring import COPY
from unit.archive.test_programs import program
from unit.commands.conftest import Ran, Run, job_ran

METADATA = ObjectMeta(name="my-restore", namespace="default", uid="uid")
FROM_FILE = {"objectURL": "file:///one.db", "persistentVolumeClaim": {"claimName": "backups"}}
SPEC: RestoreSpec = msgspec.convert(changed(RESTORE, {"spec/source": FROM_FILE})["spec"], RestoreSpec)
URL = "file:///one.db"


def carried_out(run: Run, job: RawObject, backups: Path, folder: Path) -> tuple[Ran, JobReport | None]:
    """Run the container with the folders of this machine; what it reported."""
    volume = folder / "volume"
    volume.mkdir(exist_ok=True)
    places: dict[str, Path | str] = {
        CLAIM_FOLDER: backups,
        DATA_DIR: volume,
        f"--scratch-dir={SCRATCH}": f"--scratch-dir={folder}",
        "--etcd-in-pod": f"--etcd-bin={folder / 'bin'}",
    }
    return job_ran(run, job, folder, places)


def checked(run: Run, backups: Path, folder: Path) -> tuple[Ran, JobReport | None]:
    return carried_out(
        run, restore_job.check_job(METADATA, access(SPEC), image="i", url=URL), backups, folder
    )


def job_of(sha256: str) -> RawObject:
    member = restored.members(METADATA, SPEC.cluster_template)[1]
    template = SPEC.cluster_template.spec.pod_template
    options: Any = {"image": "i", "etcd_image": "e", "url": URL, "sha256": sha256, "claim_uid": "claim-uid"}
    options |= {"bump": 1_000_000_000, "size": 20512}
    return restore_job.job(METADATA, access(SPEC), member, template, **options)


@pytest.fixture
def etcdutl(tmp_path: Path) -> None:
    script = f"PATH=/usr/bin:/bin; LOG={tmp_path}/arguments; "
    program(
        tmp_path / "bin" / "etcdutl", f"{script}case $1 in version) echo version: 3.6.16;; *) {COPY};; esac"
    )


def test_a_backup_is_checked_and_restored(
    run: Run, stored: Path, backups: Path, tmp_path: Path, etcdutl: None
) -> None:
    ran, report = checked(run, backups, tmp_path)
    assert ran.code == 0, ran.err
    assert report is not None
    assert report.snapshot is not None
    assert (report.snapshot.revision, report.snapshot.check) == (6, "manifest")
    assert list((tmp_path / "volume").iterdir()) == [], "to check changes nothing"

    ran, report = carried_out(run, job_of(report.snapshot.sha256), backups, tmp_path)
    assert ran.code == 0, ran.err
    assert (tmp_path / "volume" / "restored" / "member" / "snap" / "db").read_bytes() == stored.read_bytes()
    assert {each.name for each in (tmp_path / "volume").iterdir()} == {"restored", ".restored.restored"}
    again, _ = carried_out(run, job_of("ab" * 32), backups, tmp_path)
    assert (again.code, again.document["skipped"]) == (0, True), "a repetition leaves complete data alone"


@pytest.mark.parametrize("marker", [None, "another my-cluster-1\n", "uid my-cluster-0\n"])
def test_a_volume_that_comes_with_the_data_of_another_restore(
    run: Run, stored: Path, backups: Path, tmp_path: Path, etcdutl: None, marker: str | None
) -> None:
    database = tmp_path / "volume" / "restored" / "member" / "snap" / "db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"old")
    if marker is not None:
        (tmp_path / "volume" / ".restored.restored").write_text(marker)
    for _ in range(2):
        ran, report = carried_out(run, job_of("ab" * 32), backups, tmp_path)
        assert ran.code == 1
        why = restore_failure(report, why="", job="j")
        assert why.reason == "VolumeFailed"
        assert "the volume was not empty" in why.message
    assert database.read_bytes() == b"old"


def test_a_backup_that_was_replaced_in_between(
    run: Run, stored: Path, backups: Path, tmp_path: Path, etcdutl: None
) -> None:
    ran, report = carried_out(run, job_of("ab" * 32), backups, tmp_path)
    assert ran.code == 3
    why = restore_failure(report, why="", job="j")
    assert why.reason == "BackupDamaged"
    assert "it was replaced" in why.message
    assert list((tmp_path / "volume").iterdir()) == []


def test_a_plain_snapshot_and_none(run: Run, stored: Path, backups: Path, tmp_path: Path) -> None:
    stored.with_name("one.db.manifest.json").unlink()
    _, report = checked(run, backups, tmp_path)
    assert report is not None
    assert report.snapshot is not None
    assert (report.snapshot.check, report.snapshot.etcd_version) == ("hash", "")
    stored.write_bytes(stored.read_bytes()[:9000])
    ran, report = checked(run, backups, tmp_path)
    assert (ran.code, restore_failure(report, why="", job="j").reason) == (3, "BackupDamaged")
    stored.unlink()
    ran, report = checked(run, backups, tmp_path)
    assert (ran.code, restore_failure(report, why="", job="j").reason) == (1, "BackupMissing")
