"""What `etcd-operator backup` or `verify` reported in the termination message of its container."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from etcd_operator.decoding import reported

LONGEST_MESSAGE = 1000
"""Characters of a message in the status."""


class StoredManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is read of the manifest of a backup (`archive.manifest`)."""

    revision: int
    keys: int
    size: int
    sha256: str
    etcd_version: str
    cluster_id: str = msgspec.field(name="clusterID")


class TrialReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is read of a test restore. has_compared_hash: false if its etcdutl cannot compute a HashKV."""

    etcd_version: str
    revision: int
    has_compared_hash: bool = msgspec.field(name="hashKVCompared")


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document of the command: a manifest, or an error and the kind of it.

    restore: of `verify --restore`.
    """

    manifest: StoredManifest | None = None
    restore: TrialReport | None = None
    source: str = ""
    seconds: float = 0.0
    error: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a backup failed: a word for programs, a sentence for people."""

    reason: str
    message: str


STORE_REASONS: Mapping[str, str] = {
    "BucketMissing": "BucketMissing",
    "AccessDenied": "AccessDenied",
    "Unreachable": "StoreUnreachable",
    "Stalled": "StoreStalled",
    "InvalidURL": "InvalidURL",
    "MissingSDK": "InvalidURL",
}
"""The reason in the status, by the kind of error that a command reported, for any access to a store."""

REASONS: Mapping[str, str] = {
    **STORE_REASONS,
    "NameTaken": "NameTaken",
    "StoreFull": "StoreFull",
    "NotReachable": "SourceUnreachable",
    "NoQuorum": "SourceWithoutQuorum",
    "AccessRefused": "SourceRefusedAccess",
    "SourceError": "SourceFailed",
    "SnapshotDamaged": "SnapshotDamaged",
    "SnapshotOld": "SnapshotOld",
    "Damaged": "SnapshotDamaged",
    "ManifestMissing": "ManifestMissing",
    "BadKey": "BadKey",
    "Interrupted": "Interrupted",
}
"""The reason in the status, by the kind of error that the command reported."""

VERIFY_REASONS: Mapping[str, str] = {
    **REASONS,
    "Damaged": "Damaged",
    "DamagedManifest": "Damaged",
    "NotRestorable": "NotRestorable",
    "NotABackup": "NotABackup",
    "UnknownFormat": "UnknownFormat",
    "WrongKey": "WrongKey",
}
"""The same for a verification. A reason that is not there is `VerificationFailed`."""

# The commands name flags, which the people who read a status do not have.
_INSTEAD: Mapping[str, str] = {
    "pass --scratch-dir DIR with more space": "its node needs more free disk space",
    "Pass --scratch-dir DIR with": "Its pod needs",
    "pass --etcd-bin DIR with": "its pod needs",
    "pass another --data-dir": "use another volume, or empty this one",
    "pass a folder in it as --data-dir": "the data has to be in a folder in it",
}
_OF_SOURCE: Mapping[str, str] = {
    "check --endpoints": "check spec.source",
    "if it uses TLS, pass --cacert (and --cert, --key)": "if it uses TLS, an EtcdBackup cannot reach it",
}
_TEXTS: Mapping[str, str] = {
    "NoQuorum": "no member of the cluster can confirm with a quorum that it has the last writes: wait until "
    "a majority of the members runs, then create another EtcdBackup",
    "AccessRefused": "etcd requires a user (authentication is enabled), and an EtcdBackup cannot log in",
    "Interrupted": "the pod was stopped before the backup was complete: create another EtcdBackup",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a Job does, for messages and reasons.

    instead: what a person can do if it was stopped. if_not_stopped: what to know if it may go on. texts:
    texts in place of those of the command, by the kind of error. otherwise: the reason of all other kinds.
    """

    does: str
    instead: str
    if_not_stopped: str
    reasons: Mapping[str, str]
    texts: Mapping[str, str]
    otherwise: str


STORES = Work(
    does="stores the backup at",
    instead="create another EtcdBackup",
    if_not_stopped=", and see `etcd-operator list`, because it may still have stored the backup",
    reasons=REASONS,
    texts=_TEXTS,
    otherwise="BackupFailed",
)
VERIFIES = Work(
    does="verifies the backup at",
    instead="verify it with `etcd-operator verify`",
    if_not_stopped="",
    reasons=VERIFY_REASONS,
    texts={
        "Interrupted": "the pod was stopped before it had verified the backup: verify it with "
        "`etcd-operator verify`"
    },
    otherwise="VerificationFailed",
)


def read(message: str) -> BackupReport | None:
    """The report in a termination message; None if there is none."""
    report = reported(message, BackupReport)
    return report if report is not None and (report.manifest is not None or report.error) else None


def without_flags(text: str, also: Mapping[str, str] | None = None) -> str:
    """What a command reported, without its advice to pass flags.

    also: more pieces of such advice, and the text instead of each.
    """
    for advice, instead in (*_INSTEAD.items(), *(also or {}).items()):
        text = text.replace(advice, instead)
    return text


def failure(
    report: BackupReport | None, *, reason: str, exit_code: int, job: str, work: Work = STORES
) -> Failure:
    """Why a container failed that ended with `exit_code`, for which Kubernetes gives `reason`."""
    if report is not None and report.error:
        text = without_flags(work.texts.get(report.reason, report.error), _OF_SOURCE)
        kind = work.reasons.get(report.reason, work.otherwise)
        return Failure(reason=kind, message=text[:LONGEST_MESSAGE])
    if reason == "OOMKilled":
        return Failure(
            reason="OutOfMemory",
            message="the pod was ended because it reached its memory limit, or its node ran out of memory",
        )
    because = f" ({reason})" if reason not in ("", "Error") else ""
    return Failure(
        reason=work.otherwise,
        message=f"the pod ended with exit code {exit_code}{because} and without a report: "
        f"see `kubectl logs job/{job}`",
    )
