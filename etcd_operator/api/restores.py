"""`etcd.improbable.io/v1alpha1`: EtcdRestore, a new EtcdCluster from a backup.

`spec` of a stored EtcdRestore stays raw until a pass parses it, as that of an EtcdBackup.
"""

from typing import Annotated

import msgspec

from etcd_operator.api.backups import (
    ClaimTarget,
    Credentials,
    FileCredentials,
    SecretKey,
)
from etcd_operator.api.cluster_spec import MOST_MEMBERS, Auth, Encryption, NetworkAccess, PodTemplate
from etcd_operator.api.improbable import GROUP, VERSION, Storage
from etcd_operator.api.meta import Affinity, Condition, RecordedSpec, Stored, Value
from etcd_operator.api.tls import Tls

API_VERSION = f"{GROUP}/{VERSION}"
PENDING, COMPLETED, FAILED = "Pending", "Completed", "Failed"
"""The phases. The last two are final."""

KIND = "EtcdRestore"

UID_LABEL = f"{GROUP}/restore-uid"
"""On Jobs and their pods: the UID of their EtcdRestore."""

CLAIM_UID_ANNOTATION = f"{GROUP}/claim-uid"
"""On a Job that restores a member: the UID of the claim."""

UID_ANNOTATION = UID_LABEL
"""On the EtcdCluster that an EtcdRestore created: its UID."""

RESTORED_FROM_LABEL = f"{GROUP}/restored-from"
"""On the claims and the EtcdCluster: the name of the EtcdRestore."""


class OptionalSecretKey(SecretKey, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a Secret that may be missing."""

    optional: bool = False  #: Whether the pods start if the key does not exist.


class BucketFile(FileCredentials, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in a file, as the SDK of the store reads it."""

    secret_key_ref: OptionalSecretKey  #: A key of a Secret in the namespace of this object.


class BucketCredentials(Credentials, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access of the pods to the bucket."""

    aws: BucketFile | None = None  #: For s3://: a file in the format of ~/.aws/credentials.
    google_cloud: BucketFile | None = None  #: For gs://: the JSON key of a service account.


class Bucket(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object in a bucket."""

    #: The bucket: gs://BUCKET or s3://BUCKET. s3:// has the options region, endpoint, s3ForcePathStyle and
    #: disableSSL.
    bucket_url: str = msgspec.field(name="bucketURL")
    object_path: str  #: The path of the object in the bucket.
    #: Access to the store, from Secrets in the namespace of this object.
    credentials: BucketCredentials = BucketCredentials()

    @property
    def url(self) -> str:
        """The URL of the object."""
        bucket, mark, options = self.bucket_url.partition("?")
        return f"{bucket.rstrip('/')}/{self.object_path}{mark}{options}"


class RestoreSource(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The backup; exactly one of bucket, object_url and backup_name is set."""

    bucket: Bucket | None = None  #: An object in a bucket.
    #: The URL of the object, in the form that an EtcdBackup has in its status: s3://, gs:// or file://.
    object_url: str = msgspec.field(default="", name="objectURL")
    backup_name: str = ""  #: A completed EtcdBackup in the same namespace; its access to the store is used.
    #: Access to the store, from Secrets in the namespace of this object.
    credentials: BucketCredentials = BucketCredentials()
    persistent_volume_claim: ClaimTarget | None = None  #: For file://: the volume with the file.

    @property
    def url(self) -> str:
        """The URL of the backup; empty if an EtcdBackup names it."""
        return self.bucket.url if self.bucket is not None else self.object_url


class TemplateSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of the new EtcdCluster."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=MOST_MEMBERS)]  #: The number of members.
    storage: Storage  #: The storage of each member.
    #: The version of etcd. It must have the minor version of the backup or the next minor version. Default:
    #: the version of the backup.
    version: str = ""
    pod_template: PodTemplate = PodTemplate()  #: Settings of the members' pods.
    affinity: Affinity = {}  #: An alternative to podTemplate.affinity; set one of the two.
    #: TLS between the members and for clients, as in the spec of an EtcdCluster.
    tls: Tls | None = None
    #: Whether etcd requires users. Without this field, authentication remains as it is in the backup.
    auth: Auth | None = None
    network_policy: NetworkAccess = NetworkAccess()  #: Who may connect to the pods of the cluster.


class ClusterTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new EtcdCluster, in the namespace of the EtcdRestore."""

    #: The name of the new EtcdCluster. Neither an EtcdCluster with this name nor claims of one may exist.
    cluster_name: str
    spec: TemplateSpec  #: The spec of the new EtcdCluster.


class RestoreSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The backup, and the EtcdCluster that is created from it. Immutable."""

    source: RestoreSource  #: The backup: bucket, objectURL or backupName.
    cluster_template: ClusterTemplate  #: The new EtcdCluster.
    #: The keys of an encrypted backup. Default with backupName: the keys of the EtcdBackup.
    encryption: Encryption | None = None
    #: The service account of the pods, for an identity that the platform gives to it. Its token for
    #: Kubernetes is not mounted.
    service_account_name: str = ""


class MemberRestore(Value, frozen=True, kw_only=True):
    """The progress of a member."""

    name: str  #: The name of the member.
    phase: str  #: Pending, Restoring or Restored.
    fetched_bytes: int = 0  #: How many bytes of the snapshot the member has fetched and checked.
    restored_bytes: int = 0  #: How many bytes of the member's database are restored.
    #: The size of the snapshot in bytes, about the size of the database; 0 until it is known.
    total_bytes: int = 0


class RestoreFailure(Value, frozen=True, kw_only=True):
    """Why a restore fails; written before the objects that it created are removed."""

    reason: str  #: The reason in one word, for programs.
    message: str  #: The reason in a sentence.
    #: Whether the data of all members was complete when the restore failed. If so, the claims are not
    #: removed.
    claims_kept: bool = False


class Verified(Value, frozen=True, kw_only=True):
    """The snapshot that was verified."""

    revision: int  #: The revision of the snapshot.
    keys: int  #: The number of entries in the snapshot; each revision of a key is one.
    size: int  #: The size of the snapshot in bytes.
    sha256: str  #: The SHA-256 of the snapshot, in hexadecimal.
    #: What the snapshot was compared with: manifest, hash (there is no manifest, but etcd's hash matches) or
    #: none.
    check: str
    #: The version of etcd that sent the snapshot; without a manifest, the cluster version (X.Y.0) or empty.
    etcd_version: str = ""


class RecordedBackup(Value, frozen=True, kw_only=True):
    """The EtcdBackup that is restored, as it was when the restore began."""

    uid: str  #: The UID of the EtcdBackup.
    #: The SHA-256 of the snapshot that the EtcdBackup has stored; empty if it is not recorded.
    sha256: str = ""
    spec: RecordedSpec = {}  #: The spec of the EtcdBackup; it contains the access to the store.


class RestoreStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator.

    `url`, `backup`, `snapshot`, `version`, `revision_bump` and `failure` are persisted state.
    """

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    phase: str = ""  #: Pending, Completed or Failed.
    start_time: str = ""  #: When the operator accepted this object.
    completion_time: str = ""  #: When the restore was completed, or failed.
    url: str = ""  #: Where the backup is.
    #: The EtcdBackup of source.backupName, as it was when the restore began.
    backup: RecordedBackup | None = None
    snapshot: Verified | None = None  #: The snapshot in the backup, as verified.
    version: str = ""  #: The version of etcd of the new EtcdCluster.
    #: How much higher the revisions of the new cluster are than those of the backup; 0 until the backup is
    #: verified.
    revision_bump: int = 0
    #: etcd's ID of the new cluster, in hexadecimal.
    cluster_id: str = msgspec.field(default="", name="clusterID")
    failure: RestoreFailure | None = None  #: Why the restore fails.
    #: How much is done, like 45%, in steps of 5 percent, counted in bytes; empty after a failure.
    progress: str = ""
    members: tuple[MemberRestore, ...] = ()  #: The progress of each member.
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdRestore(Stored, frozen=True, kw_only=True):
    """Creates an EtcdCluster with the data of a backup, once."""

    status: RestoreStatus = RestoreStatus()
