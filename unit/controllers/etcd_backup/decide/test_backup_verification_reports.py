"""What is read of the report of a verification, and which image of etcd restores a backup."""

import pytest

from etcd_operator.archive.errors import BackupError
from etcd_operator.controllers.etcd_backup.decide.result import VERIFIES, VERIFY_REASONS, failure
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.decide.job_state import JobPod
from etcd_operator.versions import restoring


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("3.6.16", "3.6.16"),
        ("3.7.0-rc.1", "3.7.0-rc.1"),
        ("3.5.0", "3.5.0"),
        ("3.4.27", "3.5.35"),
        ("", None),
        ("3.6", None),
        ("3.6.16+dirty", None),
    ],
)
def test_the_version_that_restores(version: str, image: str | None) -> None:
    assert restoring(version) == image


def test_every_error_that_means_damage_has_a_reason_of_its_own() -> None:
    assert {kind.__name__ for kind in BackupError.__subclasses__()} - set(VERIFY_REASONS) <= {
        "FetchError",
        "RestoreError",
        "ScratchFailed",
        "ProgramMissing",
        "ProgramFailed",
    }, "these report nothing about the backup"


def test_a_lack_of_space_is_reported_without_flags() -> None:
    error = "a test restore needs 4352 MiB, and /tmp has 100 MiB free: pass --scratch-dir DIR with more space"
    pod = JobPod(name="p", exit_code=1, report=JobReport(error=error, reason="BackupError"))
    reason, message = failure(pod, "one", VERIFIES)
    assert (reason, "--" in message) == ("VerificationFailed", False)
    assert "its node needs more free disk space" in message


def test_a_backup_of_a_newer_etcd_is_reported_without_flags() -> None:
    error = "etcd is 3.6.16, and the backup is of etcd 3.7.3: pass --etcd-bin DIR with etcd and etcdutl 3.7"
    pod = JobPod(name="p", exit_code=1, report=JobReport(error=error, reason="ProgramMissing"))
    _, message = failure(pod, "one", VERIFIES)
    assert message.endswith("of etcd 3.7.3: its pod needs etcd and etcdutl 3.7")
