"""`etcd.improbable.io/v1alpha1`: EtcdRestore, a new EtcdCluster from a backup.

`spec` of a stored EtcdRestore stays raw until a pass parses it, as that of an EtcdBackup.
"""

from typing import Annotated

import msgspec

from etcd_operator.api.backups import (
    ClaimTarget,
    Credentials,
    Encryption,
    EnvironmentCredentials,
    FileCredentials,
    SecretKey,
)
from etcd_operator.api.improbable import GROUP, VERSION, Storage
from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value
from etcd_operator.api.podtemplate import PodTemplate

API_VERSION = f"{GROUP}/{VERSION}"
KIND = "EtcdRestore"

UID_LABEL = f"{GROUP}/restore-uid"
"""On Jobs and their pods: the UID of their EtcdRestore."""

CLAIM_UID_ANNOTATION = f"{GROUP}/claim-uid"
"""On a Job that restores a member: the UID of the claim."""

UID_ANNOTATION = UID_LABEL
"""On the EtcdCluster that an EtcdRestore created: its UID."""

RESTORED_FROM_LABEL = f"{GROUP}/restored-from"
"""On the claims and the EtcdCluster: the name of the EtcdRestore."""

# Patterns match a whole text; Python's `re` and RE2 read them alike.
BUCKET_PATTERN = "(s3|gs)://[^/?#:@]+/?([?].*)?"
OBJECT_PATH_PATTERN = "([^/?#]+/)*[^/?#]+"


class OptionalSecretKey(SecretKey, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a Secret; the pod starts without it if it is `optional` and does not exist."""

    optional: bool = False


class BucketFile(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in a file, as the SDK of the store reads it."""

    secret_key_ref: OptionalSecretKey


class BucketCredentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the pods need to read the bucket."""

    aws: BucketFile | None = None
    google_cloud: BucketFile | None = None
    environment: EnvironmentCredentials | None = None

    @property
    def of_pod(self) -> Credentials:
        """The same, as an EtcdBackup has it."""
        return Credentials(
            aws=_file(self.aws), google_cloud=_file(self.google_cloud), environment=self.environment
        )


def _file(file: BucketFile | None) -> FileCredentials | None:
    return FileCredentials(secret_key_ref=file.secret_key_ref) if file is not None else None


class Bucket(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object in a bucket. bucket_url: with the options of the store, if there are any."""

    bucket_url: str = msgspec.field(name="bucketURL")
    object_path: str
    credentials: BucketCredentials = BucketCredentials()

    @property
    def url(self) -> str:
        """The URL of the object."""
        bucket, mark, options = self.bucket_url.partition("?")
        return f"{bucket.rstrip('/')}/{self.object_path}{mark}{options}"


class RestoreSource(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The backup: exactly one of bucket, object_url and backup_name.

    backup_name: a completed EtcdBackup of the same namespace, with its access to the store.
    credentials, persistent_volume_claim: for object_url, as in the destination of an EtcdBackup.
    """

    bucket: Bucket | None = None
    object_url: str = msgspec.field(default="", name="objectURL")
    backup_name: str = ""
    credentials: BucketCredentials = BucketCredentials()
    persistent_volume_claim: ClaimTarget | None = None


class TemplateSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of the new EtcdCluster. version: empty for that of the backup."""

    replicas: Annotated[int, msgspec.Meta(ge=1)]
    storage: Storage
    version: str = ""
    pod_template: PodTemplate = PodTemplate()
    affinity: RawObject = {}


class ClusterTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new EtcdCluster, in the namespace of the EtcdRestore."""

    cluster_name: str
    spec: TemplateSpec


class RestoreSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdRestore; immutable.

    encryption: the keys of an encrypted backup; with backup_name those of the EtcdBackup by default.
    service_account_name: as for an EtcdBackup.
    """

    source: RestoreSource
    cluster_template: ClusterTemplate
    encryption: Encryption | None = None
    service_account_name: str = ""


class MemberRestore(Value, frozen=True, kw_only=True):
    """How far a member is. phase: Pending, Restoring or Restored.

    fetched_bytes: of the snapshot, which were checked, too. restored_bytes: of the new database.
    total_bytes: of each of them; 0 while that is not known.
    """

    name: str
    phase: str
    fetched_bytes: int = 0
    restored_bytes: int = 0
    total_bytes: int = 0


class RestoreFailure(Value, frozen=True, kw_only=True):
    """Why a restore fails; written before what it made is removed.

    claims_kept: a claim had been handed over to the cluster by then, so no claim is removed.
    """

    reason: str
    message: str
    claims_kept: bool = False


class Verified(Value, frozen=True, kw_only=True):
    """The snapshot that was verified.

    check: what it was compared with: manifest, hash (etcd's, at its end) or none.
    etcd_version: of the member that sent it; without a manifest that of its cluster (`X.Y.0`) or empty.
    """

    revision: int
    keys: int
    size: int
    sha256: str
    check: str
    etcd_version: str = ""


class RecordedBackup(Value, frozen=True, kw_only=True):
    """The EtcdBackup that is restored, as it was when that began: it may be deleted, or replaced, meanwhile.

    sha256: of the snapshot that it has stored; empty if it is not recorded. spec: for its access to the
    store.
    """

    uid: str
    sha256: str = ""
    spec: RawObject = {}


class RestoreStatus(Value, frozen=True, kw_only=True):
    """The status of an EtcdRestore.

    url, backup, snapshot, version, revision_bump, failure are persisted state. backup: None unless the source
    is an EtcdBackup. version: of etcd, of the new EtcdCluster. revision_bump: how much higher its revisions
    are than those of the backup; 0 while the backup is not verified. cluster_id: of the new cluster.
    progress: `45%`; empty after a failure.
    """

    observed_generation: int = 0
    phase: str = ""
    start_time: str = ""
    completion_time: str = ""
    url: str = ""
    backup: RecordedBackup | None = None
    snapshot: Verified | None = None
    version: str = ""
    revision_bump: int = 0
    cluster_id: str = msgspec.field(default="", name="clusterID")
    failure: RestoreFailure | None = None
    progress: str = ""
    members: tuple[MemberRestore, ...] = ()
    conditions: tuple[Condition, ...] = ()


class EtcdRestore(Value, frozen=True, kw_only=True):
    """A stored EtcdRestore; `spec` is raw, see the module."""

    metadata: ObjectMeta
    spec: RawObject = {}
    status: RestoreStatus = RestoreStatus()
