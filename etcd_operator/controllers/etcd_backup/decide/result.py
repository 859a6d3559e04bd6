"""Why a Job that stores or verifies a backup failed."""

from collections.abc import Mapping
from dataclasses import dataclass

from etcd_operator.controllers.shared.decide.job_report import BACKUP_REASONS, LONGEST_MESSAGE, without_flags
from etcd_operator.controllers.shared.decide.job_state import JobPod
from etcd_operator.pods.contract import ETCD_FOLDER, ETCD_USER_FOLDER

VERIFY_REASONS: Mapping[str, str] = {
    **BACKUP_REASONS,
    "Damaged": "Damaged",
    "DamagedManifest": "Damaged",
    "NotRestorable": "NotRestorable",
    "NotABackup": "NotABackup",
    "UnknownFormat": "UnknownFormat",
    "WrongKey": "WrongKey",
    "NotEncrypted": "NotEncrypted",
}
"""The reasons for a verification. One that is not there is `VerificationFailed`."""

_OF_SOURCE: Mapping[str, str] = {
    "check --endpoints": "check spec.source",
    "if it uses TLS, pass --cacert (and --cert, --key)": "if it uses TLS, write https:// and set "
    "spec.source.tlsSecret",
    "use http:// and no --cacert": "write http://, without spec.source.tlsSecret",
    "check --cacert": "check the CA (of another etcd: ca.crt in spec.source.tlsSecret)",
    "pass --cert and --key": "put tls.crt and tls.key into spec.source.tlsSecret",
    "pass --tls-server-name": "use a name in it in spec.source.clusterURL",
    "--cacert, --cert or --key cannot be used": "spec.source.tlsSecret cannot be used",
    "pass --user and --password-file, or the client certificate of a user": "set spec.source.auth, or use "
    "the certificate of a user",
    "check --user and --password-file": "check spec.source.auth",
    f"{ETCD_USER_FOLDER}/": "spec.source.auth: ",
    f"{ETCD_FOLDER}/": "spec.source.tlsSecret: ",
}
_TEXTS: Mapping[str, str] = {
    "NoQuorum": "no member of the cluster can confirm with a quorum that it has the last writes: wait until "
    "a majority of the members runs, then create another EtcdBackup",
    "Interrupted": "the pod was stopped before the backup was complete: create another EtcdBackup",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a Job does, for messages and reasons."""

    does: str
    instead: str  # what a person can do if it was stopped
    if_not_stopped: str  # what to know if it may go on
    reasons: Mapping[str, str]  # by the kind of error
    texts: Mapping[str, str]  # in place of the text of the command, by the kind of error
    otherwise: str  # the reason for any other kind of error


STORES = Work(
    does="stores the backup at",
    instead="create another EtcdBackup",
    if_not_stopped=", and see `etcd-operator list`, because it may still have stored the backup",
    reasons=BACKUP_REASONS,
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


def failure(pod: JobPod, job: str, work: Work = STORES) -> tuple[str, str]:
    """Reason and message for a pod of this Job that has ended and has not succeeded."""
    report = pod.report
    if report is not None and report.error:
        text = without_flags(work.texts.get(report.reason, report.error), _OF_SOURCE)
        return work.reasons.get(report.reason, work.otherwise), text[:LONGEST_MESSAGE]
    if pod.exit_code is None:
        why = pod.message or pod.reason or "no reason is given"
        return pod.reason or "PodFailed", f"the pod failed before it reported: {why}"
    if pod.reason == "OOMKilled":
        return "OutOfMemory", pod.message
    because = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    message = f"the pod ended with exit code {pod.exit_code}{because} and without a report"
    return work.otherwise, f"{message}: see `kubectl logs job/{job}`"
