"""What a command of the operator reports in the termination message of its container, and what that means."""

from collections.abc import Mapping

import msgspec

from etcd_operator.api.restores import RestoreFailure, Verified
from etcd_operator.decoding import reported

LONGEST_MESSAGE = 1000
"""Characters of a message in the status."""


class StoredManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is read of the manifest of a backup (`archive.manifest`), and stored in `BackupStatus`."""

    revision: int
    keys: int
    size: int
    sha256: str
    etcd_version: str
    cluster_id: str = msgspec.field(name="clusterID")
    corrupt_alarm: bool = False


class TrialReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is read of a test restore."""

    etcd_version: str
    revision: int
    has_compared_hash: bool = msgspec.field(name="hashKVCompared")  # false: etcdutl cannot compute a HashKV


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document of a command: what it has done, or an error and the kind of it."""

    manifest: StoredManifest | None = None  # of `backup` and `verify`
    restore: TrialReport | None = None  # of `verify --restore`
    snapshot: Verified | None = None  # of `restore`
    removed: int | None = None  # how many backups `prune` has removed
    kept: int = 0
    source: str = ""
    seconds: float = 0.0
    error: str = ""
    reason: str = ""


STORE_REASONS: Mapping[str, str] = {
    "BucketMissing": "BucketMissing",
    "AccessDenied": "AccessDenied",
    "Unreachable": "StoreUnreachable",
    "Stalled": "StoreStalled",
    "InvalidURL": "InvalidURL",
    "MissingSDK": "InvalidURL",
}
"""The reason in the status, by the kind of error that a command reported, for any access to a store."""

BACKUP_REASONS: Mapping[str, str] = {
    **STORE_REASONS,
    "NameTaken": "NameTaken",
    "StoreFull": "StoreFull",
    "NotReachable": "SourceUnreachable",
    "NoQuorum": "SourceWithoutQuorum",
    "AccessRefused": "SourceRefusedAccess",
    "BadCredentials": "BadCredentials",
    "SourceError": "SourceFailed",
    "SnapshotDamaged": "SnapshotDamaged",
    "SnapshotOld": "SnapshotOld",
    "RevisionBehind": "RevisionBehind",
    "UnknownBackup": "UnknownBackup",
    "Damaged": "SnapshotDamaged",
    "ManifestMissing": "ManifestMissing",
    "BadKey": "BadKey",
    "Interrupted": "Interrupted",
}
"""The same for a backup."""

RESTORE_REASONS: Mapping[str, str] = {
    **STORE_REASONS,
    "NotABackup": "BackupMissing",
    "ObjectMissing": "BackupMissing",
    "Damaged": "BackupDamaged",
    "DamagedManifest": "BackupDamaged",
    "UnknownFormat": "UnknownFormat",
    "WrongKey": "WrongKey",
    "NotEncrypted": "NotEncrypted",
    "BadKey": "BadKey",
    "RestoreError": "VolumeFailed",
    "ProgramFailed": "RestoreFailed",
    "ProgramMissing": "RestoreFailed",
}
"""The same for a restore."""

# The commands name flags, which the people who read a status do not have.
_INSTEAD: Mapping[str, str] = {
    "pass --scratch-dir DIR with more space": "its node needs more free disk space",
    "Pass --scratch-dir DIR with": "Its pod needs",
    "pass --etcd-bin DIR with": "its pod needs",
    "pass another --data-dir": "use another volume, or empty this one",
    "read it without --encryption-keys": "restore it by its URL, without `encryption`",
    "pass a folder in it as --data-dir": "the data has to be in a folder in it",
}


def read(message: str) -> JobReport | None:
    """The report in a termination message; None if there is none."""
    return reported(message, JobReport)


def without_flags(text: str, also: Mapping[str, str] | None = None) -> str:
    """What a command reported, without its advice to pass flags.

    also: more pieces of such advice, and the text instead of each.
    """
    for advice, instead in (*_INSTEAD.items(), *(also or {}).items()):
        text = text.replace(advice, instead)
    return text


def restore_failure(report: JobReport | None, *, why: str, job: str) -> RestoreFailure:
    """Why a Job that restores, or verifies before, failed. why: what Kubernetes gives as the reason."""
    if report is not None and report.error:
        reason = RESTORE_REASONS.get(report.reason, "RestoreFailed")
        return RestoreFailure(reason=reason, message=without_flags(report.error)[:LONGEST_MESSAGE])
    because = f": {why}" if why else ""
    message = f"the pod of the Job {job} failed without a report{because}"
    return RestoreFailure(reason="PodFailed", message=message[:LONGEST_MESSAGE])
