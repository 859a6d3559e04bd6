"""What metrics show of the backups of a `coreos.com` cluster."""

from datetime import datetime

from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.backup_tool.decide.health import ToolFacts
from etcd_operator.object_metrics import HEALTH, BackupMetrics


def tool_metrics(
    cluster: str, facts: ToolFacts, stored: ClusterBackupStatus | None, condition: Condition, now: datetime
) -> BackupMetrics:
    """stored: what the status reports. condition: BackupHealthy.

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
