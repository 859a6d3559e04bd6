"""What is known of the backups of a cluster when a recovery chooses its source."""

from dataclasses import dataclass

from etcd_operator.core.backup_tool.report import Stock


@dataclass(frozen=True, slots=True, kw_only=True)
class StockSight:
    """What the backup tool of the cluster has, as far as the operator knows.

    is_kept: the cluster has backups. report: the tool's, asked for since the loss; None if there is none yet.
    waited: seconds since it was first asked for. problem: why it is missing, as far as that is
    known. known_revision: of the newest backup, as it was known before the loss. has_source_tool: the cluster
    from whose backups a new cluster is restored has a backup tool, which uses its claim.
    """

    is_kept: bool = False
    report: Stock | None = None
    waited: float = 0.0
    problem: str = ""
    known_revision: int = 0
    has_source_tool: bool = False


NO_STOCK = StockSight()
