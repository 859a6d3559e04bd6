"""`etcd.improbable.io/v1alpha1`: EtcdBackup, one backup of one etcd cluster.

`spec` of a stored EtcdBackup stays raw until a pass parses it, as that of an EtcdCluster.
"""

from typing import Literal

import msgspec

from etcd_operator.api.cluster_spec import Encryption
from etcd_operator.api.improbable import GROUP, VERSION
from etcd_operator.api.meta import Condition, Stored, Value

API_VERSION = f"{GROUP}/{VERSION}"
BACKING_UP, COMPLETED, FAILED = "BackingUp", "Completed", "Failed"
"""The phases. The last two are final."""

COMPLETE, VERIFIED = "Complete", "Verified"
"""Conditions. The second is only on what is to be verified."""

KIND = "EtcdBackup"

UID_LABEL = f"{GROUP}/backup-uid"
"""On a Job and its pod: the UID of their EtcdBackup (or schedule). Names may be longer than a label."""

SECRET_ANNOTATION = f"{GROUP}/etcd-secret"
"""On a Job: its Secret with a certificate for etcd, which is deleted when the Job has ended."""

PLACEHOLDERS = ("Name", "Namespace", "UID", "CreationTimestamp")
"""Fields of the EtcdBackup itself; nothing in a template is executed."""

# Patterns match a whole text; Python's `re` and RE2 read them alike.
PLACEHOLDER_PATTERN = f"[{{][{{] *[.]({'|'.join(PLACEHOLDERS)}) *[}}][}}]"
TEMPLATE_PATTERN = f"([^{{}}]|{PLACEHOLDER_PATTERN})*"
ANY_PLACEHOLDER_PATTERN = "[{][^}]*[}]*|[}]+"


class SourceAuth(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user of etcd with the role root."""

    secret_name: str  #: A Secret with the keys username and password.


class BackupSource(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The etcd cluster; exactly one of clusterURL and clusterName is set."""

    #: The client URL of an etcd cluster, like http://my-cluster:2379 or https://etcd.example.com:2379.
    cluster_url: str = msgspec.field(default="", name="clusterURL")
    cluster_name: str = ""  #: The name of an EtcdCluster in the same namespace, of either group.
    #: For a clusterURL with https://, which requires it: a Secret with the CA of the servers as ca.crt and,
    #: for a client certificate, tls.crt and tls.key.
    tls_secret: str = ""
    #: For clusterURL: a user of etcd, if etcd requires one and no certificate names it.
    auth: SourceAuth | None = None


class SecretKey(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a Secret in the namespace of the object."""

    name: str  #: The name of the Secret.
    key: str  #: The key in the Secret.


class FileCredentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in a file, as the SDK of the store reads it."""

    secret_key_ref: SecretKey  #: A key of a Secret in the namespace of this object.


class EnvironmentCredentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in environment variables: all keys of a Secret."""

    secret_name: str  #: A Secret; each of its keys becomes a variable.


class Credentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access of a pod to the store; the operator never reads these Secrets."""

    aws: FileCredentials | None = None  #: For s3://: a file in the format of ~/.aws/credentials.
    google_cloud: FileCredentials | None = None  #: For gs://: the JSON key of a service account.
    #: Environment variables, like AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    environment: EnvironmentCredentials | None = None


class ClaimTarget(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A PersistentVolumeClaim in the namespace of the object."""

    claim_name: str  #: The name of a PersistentVolumeClaim.


class BackupDestination(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the backup is stored."""

    #: The URL of the backup: s3://BUCKET/KEY, gs://BUCKET/KEY or file:///FILE. Placeholders: {{ .Name }}, {{
    #: .Namespace }}, {{ .UID }} and {{ .CreationTimestamp }} of the EtcdBackup; in a schedule, one of Name,
    #: UID and CreationTimestamp is required. s3:// has the options region, endpoint, s3ForcePathStyle,
    #: disableSSL, sse and sseKMSKeyID.
    object_url_template: str = msgspec.field(name="objectURLTemplate")
    #: Access to the store, from Secrets in the namespace of this object. Not needed if the platform gives an
    #: identity to the service account.
    credentials: Credentials = Credentials()
    #: For file://: the volume that the file is written to.
    persistent_volume_claim: ClaimTarget | None = None


class BackupSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is backed up, and where the backup is stored. Immutable."""

    source: BackupSource  #: The etcd cluster: clusterURL or clusterName.
    destination: BackupDestination  #: Where the backup is stored.
    #: zstd compresses the backup. `etcd-operator fetch` decompresses it.
    compression: Literal["zstd"] | None = None
    #: Encrypts the backup with AES-256-GCM. `etcd-operator fetch` decrypts it.
    encryption: Encryption | None = None
    #: The service account of the pod, for an identity that the platform gives to it. Its token for Kubernetes
    #: is not mounted.
    service_account_name: str = ""
    #: How the backup is verified after it was stored. Hash: everything is read back, and all hashes are
    #: checked. Restore: the backup is also restored, as a test, and served by an etcd of its own. By default
    #: it is not verified.
    verify: Literal["Hash", "Restore"] | None = None


class Verification(Value, frozen=True, kw_only=True):
    """How a stored backup is verified."""

    level: str  #: Hash or Restore, as in the spec.
    job_name: str = ""  #: The Job that verifies the backup; once this is set, no other Job is created.
    start_time: str = ""  #: When the backup was stored, and its verification was due.
    completion_time: str = ""  #: When the verification ended; set once, with the result.
    etcd_version: str = ""  #: The version of the etcd that served the restored data.
    took: float = 0.0  #: How many seconds a successful verification took.


class BackupStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    phase: str = ""  #: BackingUp, Completed or Failed.
    start_time: str = ""  #: When the operator accepted this object.
    completion_time: str = ""  #: When the backup was completed, or failed.
    job_name: str = ""  #: The Job that takes the backup; once this is set, no other Job is created.
    url: str = ""  #: Where a completed backup is stored: the template with all placeholders replaced.
    revision: int = 0  #: The revision of the snapshot.
    keys: int = 0  #: The number of entries in the snapshot; each revision of a key is one.
    size: int = 0  #: The size of the snapshot in bytes.
    sha256: str = ""  #: The SHA-256 of the snapshot, in hexadecimal.
    etcd_version: str = ""  #: The version of etcd that sent the snapshot.
    #: etcd's ID of the cluster, in hexadecimal.
    cluster_id: str = msgspec.field(default="", name="clusterID")
    # Another etcd may report the ID of a cluster, so an EtcdCluster is restored only from what has this.
    #: The UID of the EtcdCluster that was backed up; empty for another etcd.
    cluster_uid: str = msgspec.field(default="", name="clusterUID")
    #: Whether an alarm CORRUPT was raised when the backup was taken, so that its data may be wrong.
    corrupt_alarm: bool = False
    #: How the backup is verified. The condition Verified has the result.
    verification: Verification | None = None
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdBackup(Stored, frozen=True, kw_only=True):
    """One backup of an etcd cluster. It is taken once, by a Job."""

    status: BackupStatus = BackupStatus()
