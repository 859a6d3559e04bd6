"""What is known of the backups of a cluster: `status.backup`, the condition BackupHealthy, metrics."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from etcd_operator.api.coreos_backup import BackupPolicy, ClusterBackupStatus
from etcd_operator.api.meta import Condition, condition_of
from etcd_operator.controllers.backup_tool.decide.state import ToolPodState, ToolState
from etcd_operator.controllers.shared.decide.backup_health import HEALTHY
from etcd_operator.controllers.shared.decide.job_report import BACKUP_REASONS, LONGEST_MESSAGE, without_flags
from etcd_operator.formats import CORRUPT_ALARM, UNKNOWN_BACKUP
from etcd_operator.object_metrics import HEALTH, BackupMetrics
from etcd_operator.pods.reports import BackupReport, LastFailure, ToolReport

OVERDUE_INTERVALS = 2
SETTLING_SECONDS = 60.0

# The errors of the pipeline name flags of the command line.
_TEXTS = {
    "NoQuorum": "no member can confirm with a quorum that it has the last writes: a backup is taken when a "
    "majority of the members runs",
    "AccessRefused": "etcd requires a user (authentication is enabled), and the backup tool cannot log in",
}
_IT = "the certificate in the Secret of the backup tool, which is made again when it is deleted"
_INSTEAD = {
    "check --endpoints": "check the client Service of the cluster",
    "if it uses TLS, pass --cacert (and --cert, --key)": "if it uses TLS, the backup tool cannot reach it",
    "it does not use TLS: use http:// and no --cacert": "it does not use TLS",
    "check --cacert": "check the Secret of that member",
    "its certificate is for another host: pass --tls-server-name": "its certificate is for another host",
    "if it wants a client certificate, pass --cert and --key": f"it may refuse {_IT}",
    "it requires a client certificate: pass --cert and --key": f"it refuses {_IT}",
    "--cacert, --cert or --key cannot be used: check that they are valid and belong together": f"check {_IT}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why backups do not work now, or may not: a word for programs, a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """What is known of a cluster's backups at one moment."""

    report: ToolReport | None = None  # the last one of the tool
    since_success: float | None = None  # seconds; None if there was no success
    tool_age: float = 0.0  # seconds for which the pod that answers is known
    waited: float = 0.0  # seconds for which this process has wanted backups
    problem: Problem | None = None  # what keeps the tool from working, or the operator from asking it
    refused: str = ""  # why the operator could not do all that is wanted; empty if it could

    @property
    def is_settling(self) -> bool:
        """Whether operator or tool has just been started: what was known before still holds.

        The age of the newest backup alone shows nothing of a cluster that has not changed since.
        """
        if self.report is None:
            return self.waited <= SETTLING_SECONDS
        return self.report.is_starting and self.tool_age <= SETTLING_SECONDS


def stored(previous: ClusterBackupStatus | None, report: ToolReport | None) -> ClusterBackupStatus | None:
    """`status.backup`: what the tool reported; without a report what was known before.

    A backup that is only listed may have been put there by anybody: what is on record remains. It remains,
    too, while a tool that has just started may not have read yet what is stored, and where the token in its
    Secret is an earlier one again, so that it knows an older backup, and lists the one on record as unknown.
    """
    if report is None:
        return previous
    newest, listed = report.newest, report.unknown
    if newest is None:
        return previous if report.is_starting else ClusterBackupStatus()
    known = previous or ClusterBackupStatus()
    is_superseded = listed is not None and listed.name == known.name and newest.revision < known.revision
    if is_superseded or not newest.is_known(known.name, known.sha256):
        return msgspec.structs.replace(known, count=report.count, total_size=report.total_size)
    is_same = known.name == newest.name and known.time == newest.time
    return ClusterBackupStatus(
        time=newest.time,
        name=newest.name,
        revision=newest.revision,
        sha256=newest.sha256,
        size=newest.size,
        etcd_version=newest.etcd_version,
        cluster_id=newest.cluster_id,
        corrupt_alarm=newest.corrupt_alarm,
        took=newest.took or (known.took if is_same else 0.0),
        count=report.count,
        total_size=report.total_size,
    )


def condition(
    state: ToolState,
    facts: ToolFacts,
    previous: tuple[Condition, ...],
    recorded: ClusterBackupStatus | None,
    *,
    generation: int,
) -> Condition | None:
    """The condition without its time; None for a cluster without backups.

    previous: of the cluster. recorded: its `status.backup`.
    """
    if state.wanted.problem:
        return _condition("False", Problem(reason="InvalidSpec", message=state.wanted.problem), generation)
    policy = state.wanted.policy
    if policy is None:
        return None
    interval = policy.backup_interval_in_second
    limit = OVERDUE_INTERVALS * interval
    before = condition_of(previous, HEALTHY)
    if before is not None and before.status == "True" and facts.is_settling:
        return msgspec.structs.replace(before, observed_generation=generation)
    if facts.report is not None and facts.report.foreign_owner is not None:
        return _condition("False", _foreign(facts.report.foreign_owner), generation)
    unknown = facts.report.unknown if facts.report is not None else None
    known = recorded or ClusterBackupStatus()
    if unknown is not None and not unknown.is_known(known.name, known.sha256):
        return _condition("False", _unknown(unknown), generation)
    why = _why(state, facts)
    if facts.since_success is not None and facts.since_success <= limit:
        fine = Problem(reason="BackedUp", message=_fine(interval, facts))
        return _condition("True", fine, generation)
    if facts.since_success is None and facts.waited <= limit:
        pending = why or Problem(
            reason="FirstBackupPending", message="the first backup has not been taken yet"
        )
        return _condition("Unknown", pending, generation)
    return _condition("False", _overdue(facts, limit, why), generation)


def _foreign(owner: str) -> Problem:
    return Problem(
        reason="ForeignWriter",
        message=f"another EtcdCluster (UID {owner or 'unknown'}) stores backups in the same folder of the "
        "bucket, like one with the same namespace and name in another Kubernetes cluster: set another "
        "spec.backup.s3.prefix in one of the two",
    )


def _unknown(backup: BackupReport) -> Problem:
    if backup.refusal:
        what = f"no recovery uses the newest backup that is listed, {backup.name}: {backup.refusal}"
        return Problem(reason="UnknownBackup", message=f"{what}, or move it away with its manifest")
    return Problem(
        reason="UnknownBackup",
        message=f"the newest backup that is listed, {backup.name}, {UNKNOWN_BACKUP}: no recovery uses it by "
        "itself; if you do not know it, move it away with its manifest",
    )


def _fine(interval: int, facts: ToolFacts) -> str:
    message = f"a backup is taken every {interval} seconds"
    newest = facts.report.newest if facts.report is not None else None
    if newest is not None and newest.corrupt_alarm:
        message += f"; no old one is removed, because the newest was {CORRUPT_ALARM}"
    if not facts.refused:
        return message
    return f"{message}, but spec.backup is not fully applied: {facts.refused}"[:LONGEST_MESSAGE]


def _overdue(facts: ToolFacts, limit: int, why: Problem | None) -> Problem:
    since = (
        "no backup has succeeded yet"
        if facts.since_success is None
        else f"the last success is more than {limit} seconds ago"
    )
    if why is None:
        return Problem(reason="Overdue", message=f"{since}, and the backup tool reports no reason")
    return Problem(reason=why.reason, message=f"{since}: {why.message}")


def _why(state: ToolState, facts: ToolFacts) -> Problem | None:
    """What comes first: what the operator could not do, a tool that does not run, one that cannot be asked,
    and what the tool itself reported."""
    if not state.is_bootstrapped:
        return Problem(reason="ClusterNotReady", message="the cluster has not served yet")
    if facts.problem is not None:
        return facts.problem
    if state.running is None:
        return _not_running(state)
    failure = facts.report.failure if facts.report is not None else None
    return _of_tool(failure) if failure is not None else None


def _not_running(state: ToolState) -> Problem:
    pod = next((pod for pod in state.pods if not pod.is_terminating), None)
    if pod is not None:
        waits = pod.waits_for or _events_of(pod, state.wanted.policy)
        return Problem(reason="ToolNotRunning", message=f"the pod of the backup tool is not ready: {waits}")
    found = state.replica_set
    why = found.problem if found is not None and found.problem else "it is being created"
    return Problem(reason="ToolNotRunning", message=f"the backup tool has no pod: {why}")


def _events_of(pod: ToolPodState, policy: BackupPolicy | None) -> str:
    """Kubernetes reports in Events only that a volume or a Secret cannot be mounted."""
    aws = policy.s3.aws_secret if policy is not None and policy.s3 is not None else ""
    keys = policy.encryption.secret_name if policy is not None and policy.encryption is not None else ""
    missing = " or ".join(["volume", *(f"the Secret {name}" for name in (aws, keys) if name)])
    return f"see `kubectl describe pod {pod.name}`: it also shows whether a {missing} is missing"


def _of_tool(failure: LastFailure) -> Problem:
    text = without_flags(_TEXTS.get(failure.reason, failure.message), _INSTEAD)
    return Problem(reason=BACKUP_REASONS.get(failure.reason, "BackupFailed"), message=text[:LONGEST_MESSAGE])


def _condition(status: Literal["True", "False", "Unknown"], why: Problem, generation: int) -> Condition:
    return Condition(
        type=HEALTHY,
        status=status,
        reason=why.reason,
        message=why.message,
        observed_generation=generation,
    )


def tool_metrics(
    cluster: str, facts: ToolFacts, stored: ClusterBackupStatus | None, condition: Condition, now: datetime
) -> BackupMetrics:
    """The metrics of a cluster's backups, from what its status reports: `stored`, and BackupHealthy.

    The tool does not restore what it stores, so no backup counts as verified.
    """
    newest = stored if stored is not None and stored.time else ClusterBackupStatus()
    since = facts.since_success
    return BackupMetrics(
        cluster=cluster,
        last_success=now.timestamp() - since if since is not None else None,
        took=newest.took or None,
        size=newest.size or None,
        failures=facts.report.failures if facts.report is not None else None,
        is_healthy=HEALTH.get(condition.status),
    )
