"""`coreos.com/v1`: `spec.backup` of an EtcdCluster, and `status.backup`.

`spec.backup` of a stored EtcdCluster stays raw until a pass for backups parses it: what is wrong with it must
not keep members from being served.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api.cluster_spec import Encryption, S3Target
from etcd_operator.api.meta import Value

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


class BackupPolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a cluster is backed up."""

    #: The seconds between two backups; 1800 by default.
    backup_interval_in_second: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_INTERVAL)] = DEFAULT_INTERVAL
    #: How many backups are kept. 0: no backups are taken.
    max_backups: Annotated[int, msgspec.Meta(ge=0, le=MOST_BACKUPS)]
    #: PersistentVolume (the default) or S3.
    storage_type: Literal["PersistentVolume", "S3"] = "PersistentVolume"
    #: For PersistentVolume: the size of the volume in MiB. It cannot become smaller.
    volume_size_in_mb: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_VOLUME)] | None = msgspec.field(
        default=None, name="volumeSizeInMB"
    )
    s3: S3Target | None = None  #: For S3: where backups are stored.
    #: Encrypts backups with AES-256-GCM. Only backups that are encrypted with one of these keys are restored.
    encryption: Encryption | None = None
    #: While true, all backups are deleted with the cluster. By default they are kept.
    cleanup_backups_on_cluster_delete: bool = False


class RestorePolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The backups from which a new cluster is restored."""

    #: The EtcdCluster in the same namespace whose newest backup is restored. It need not exist any more.
    backup_cluster_name: str
    #: Where the backups are. PersistentVolume (the default): on the claim `NAME-pvc` of that cluster. S3: in
    #: the bucket that spec.backup.s3 of the new cluster names. If the backups are encrypted, the new
    #: cluster names the keys in spec.backup.encryption.
    storage_type: Literal["PersistentVolume", "S3"] = "PersistentVolume"


class ClusterBackupStatus(Value, frozen=True, kw_only=True):
    """The stored backups as the backup tool last reported them, also while it does not answer.

    The newest backup is the newest one that the tool itself has stored, whatever else is listed.
    """

    time: str = ""  #: When the newest backup was begun.
    name: str = ""  #: The name of the newest backup.
    revision: int = 0  #: etcd's revision in the newest backup.
    sha256: str = ""  #: The SHA-256 of the snapshot in the newest backup.
    size: int = 0  #: The size of the newest backup in bytes.
    etcd_version: str = ""  #: The version of etcd that sent the newest backup.
    #: etcd's ID of the cluster in the newest backup, in hexadecimal.
    cluster_id: str = msgspec.field(default="", name="clusterID")
    took: float = 0.0  #: The seconds that the newest backup took; absent if that is not known.
    #: Whether the newest backup was taken while an alarm CORRUPT was raised, so that its data may be wrong.
    corrupt_alarm: bool = False
    count: int = 0  #: The number of backups.
    total_size: int = 0  #: The total size of all backups in bytes.
