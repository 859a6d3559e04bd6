"""What the command `etcd-operator restore` reported in the termination message of its container."""

from collections.abc import Mapping

import msgspec

from etcd_operator.api.restores import RestoreFailure, Verified
from etcd_operator.controllers.etcd_backup.decide.result import LONGEST_MESSAGE, STORE_REASONS, without_flags
from etcd_operator.decoding import reported

REASONS: Mapping[str, str] = {
    **STORE_REASONS,
    "NotABackup": "BackupMissing",
    "ObjectMissing": "BackupMissing",
    "Damaged": "BackupDamaged",
    "DamagedManifest": "BackupDamaged",
    "UnknownFormat": "UnknownFormat",
    "WrongKey": "WrongKey",
    "BadKey": "BadKey",
    "RestoreError": "VolumeFailed",
    "ProgramFailed": "RestoreFailed",
    "ProgramMissing": "RestoreFailed",
}
"""The reason in the status, by the kind of error that the command reported."""


class RestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document of the command: the snapshot, or an error and the kind of it."""

    snapshot: Verified | None = None
    error: str = ""
    reason: str = ""


def read(message: str) -> RestoreReport | None:
    """The report in a termination message; None if there is none."""
    return reported(message, RestoreReport)


def failure(report: RestoreReport | None, *, why: str, job: str) -> RestoreFailure:
    """Why a Job failed. why: what Kubernetes gives as the reason."""
    if report is not None and report.error:
        reason = REASONS.get(report.reason, "RestoreFailed")
        return RestoreFailure(reason=reason, message=without_flags(report.error)[:LONGEST_MESSAGE])
    because = f": {why}" if why else ""
    message = f"the pod of the Job {job} failed without a report{because}"
    return RestoreFailure(reason="PodFailed", message=message[:LONGEST_MESSAGE])
