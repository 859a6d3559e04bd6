"""What a member's metrics page reports, as a value that the rules and the reader of pages share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPage:
    """What the process at one endpoint reports; None for what its page lacks, or could not be read."""

    leaders_seen: int | None = None  # changes of leader since it started; 0: it has never followed one
    snapshots_saved: int | None = None  # raft snapshots saved since it started
    cluster_version: str | None = None  # the version that its cluster has agreed on, such as 3.6.0


UNREAD = MetricsPage()
