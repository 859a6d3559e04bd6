"""`coreos.com/v1`: `spec.backup` of an EtcdCluster, and `status.backup`.

`spec.backup` of a stored EtcdCluster stays raw until a pass for backups parses it: what is wrong with it must
not keep members from being served.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api.meta import Value
from etcd_operator.api.s3 import S3Target

TOOL_APP = "etcd_backup_tool"
"""The label `app` of all objects of the backup tool."""

PERSISTENT_VOLUME, S3 = "PersistentVolume", "S3"

CLEANUP_FINALIZER = "coreos.com/backup-cleanup"
"""On an EtcdCluster whose backups are to be deleted with it, until they are."""

DEFAULT_INTERVAL = 1800
LONGEST_INTERVAL = 31_622_400
"""Seconds of a year; larger numbers are typing errors."""

MOST_BACKUPS = 10_000
LARGEST_VOLUME = 1 << 30
"""MiB: a PiB."""

# Patterns match a whole text; Python's `re` and RE2 read them alike.
BUCKET_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]"
_FOLDER = "[A-Za-z0-9_-][A-Za-z0-9._-]*"
PREFIX_PATTERN = f"{_FOLDER}(/{_FOLDER})*/?"
CLUSTER_PATTERN = "[a-z]([-a-z0-9]*[a-z0-9])?"
REGION_PATTERN = "[a-z0-9-]+"
ENDPOINT_PATTERN = r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?"


class BackupPolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a cluster is backed up. max_backups 0: it is not.

    cleanup_backups_on_cluster_delete: whether what is stored is deleted with the cluster.
    """

    backup_interval_in_second: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_INTERVAL)] = DEFAULT_INTERVAL
    max_backups: Annotated[int, msgspec.Meta(ge=0, le=MOST_BACKUPS)]
    storage_type: Literal["PersistentVolume", "S3"] = "PersistentVolume"
    volume_size_in_mb: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_VOLUME)] | None = msgspec.field(
        default=None, name="volumeSizeInMB"
    )
    s3: S3Target | None = None
    cleanup_backups_on_cluster_delete: bool = False


class RestorePolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The backups from which a new cluster is restored.

    backup_cluster_name: of the cluster whose backups they are, in the same namespace; it need not exist.
    storage_type: where they are: on its claim, or in the bucket of `spec.backup.s3` of the new cluster.
    """

    backup_cluster_name: str
    storage_type: Literal["PersistentVolume", "S3"] = "PersistentVolume"


class ClusterBackupStatus(Value, frozen=True, kw_only=True):
    """What is stored, as the backup tool last reported it; it remains while the tool does not answer.

    time (RFC 3339), name, revision, size (bytes of the snapshot), etcd_version: of the newest backup; empty
    or 0 if there is none. cluster_id: of the etcd cluster that it was taken from, hexadecimal; empty where an
    earlier version has written the status. took: seconds, 0 if the tool does not know it. count, total_size
    (stored bytes): of all complete backups.
    """

    time: str = ""
    name: str = ""
    revision: int = 0
    size: int = 0
    etcd_version: str = ""
    cluster_id: str = msgspec.field(default="", name="clusterID")
    took: float = 0.0
    count: int = 0
    total_size: int = 0
