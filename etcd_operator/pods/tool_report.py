"""What the backup tool reports at /v1/status; the tool writes it, the operator reads it."""

from etcd_operator.api.meta import Value


class NewestBackup(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The newest backup. time: RFC 3339. size: of the snapshot in bytes. took: seconds, 0 if not known.

    cluster_id: of the etcd cluster that it was taken from; empty if an earlier version of the tool reports.
    """

    name: str
    time: str
    revision: int
    size: int
    etcd_version: str
    cluster_id: str = ""
    took: float = 0.0


class LastFailure(Value, frozen=True, kw_only=True, omit_defaults=False):
    """Why the last try failed: the kind of the error, and a sentence."""

    time: str
    reason: str
    message: str


class VerifiedBackup(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A backup; of `RestorableBackups.newest` every byte was read and checked.

    time: RFC 3339. age: seconds that it is old. cluster_id: of the etcd cluster that it was taken from.
    sha256: of the stored object.
    """

    name: str
    time: str
    age: float
    revision: int
    etcd_version: str
    cluster_id: str
    sha256: str


class RestorableBackups(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What can be restored, as the tool reports it at /v1/restorable.

    is_listed: false while the tool stores a backup, or lists what is stored. candidate: the newest backup by
    its manifest. is_checked: false while the tool still reads. newest: the newest backup that is whole.
    damaged: names of newer ones that are not.
    """

    is_listed: bool = False
    candidate: VerifiedBackup | None = None
    is_checked: bool = False
    newest: VerifiedBackup | None = None
    damaged: tuple[str, ...] = ()


class ToolReport(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What is stored for a cluster, and how the last try went.

    since_success: seconds since it was last known that the newest backup has all data, because it was stored
    or nothing had changed since; None if that never was. It is an age: the clocks of two machines differ.
    failure: of the last try, None if that succeeded. failures: how many tries have failed since the tool was
    started. count, total_size: of all backups. is_starting: no try has ended since the tool was started.
    """

    newest: NewestBackup | None = None
    count: int = 0
    total_size: int = 0
    since_success: float | None = None
    failure: LastFailure | None = None
    failures: int = 0
    is_backing_up: bool = False
    is_starting: bool = False
