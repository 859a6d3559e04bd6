"""`etcd.improbable.io/v1alpha1`: EtcdBackup, one backup of one etcd cluster.

`spec` of a stored EtcdBackup stays raw until a pass parses it, as that of an EtcdCluster.
"""

from typing import Literal

import msgspec

from etcd_operator.api.improbable import GROUP, VERSION
from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value

API_VERSION = f"{GROUP}/{VERSION}"
KIND = "EtcdBackup"

UID_LABEL = f"{GROUP}/backup-uid"
"""On a Job and its pod: the UID of their EtcdBackup (or schedule). Names may be longer than a label."""

PLACEHOLDERS = ("Name", "Namespace", "UID", "CreationTimestamp")
"""Fields of the EtcdBackup itself; nothing in a template is executed."""

S3_OPTIONS = ("region", "endpoint", "s3ForcePathStyle", "disableSSL", "sse", "sseKMSKeyID")
"""The query of `s3://`, as `storage.urls` reads it."""

# Patterns match a whole text; Python's `re` and RE2 read them alike.
PLACEHOLDER_PATTERN = f"[{{][{{] *[.]({'|'.join(PLACEHOLDERS)}) *[}}][}}]"
TEMPLATE_PATTERN = f"([^{{}}]|{PLACEHOLDER_PATTERN})*"
ANY_PLACEHOLDER_PATTERN = "[{][^}]*[}]*|[}]+"
SCHEME_PATTERN = "(s3|gs|file)://.*"
CREDENTIALS_PATTERN = "[a-z0-9]+://([^/?#]*|[^?]*[?](.*&)?endpoint=[^&#]*)@.*"
OBJECT_PATTERN = "(s3|gs)://[^/?#:]+/([^/?#]+/)*[^/?#]+([?].*)?|file:///[^/?#]+([?].*)?"
DOTS_PATTERN = ".*/[.][.]?([/?].*)?|[^?]*%2[EeFf].*"
_OPTION = f"({'|'.join(S3_OPTIONS)})=[^&#]*"
OPTIONS_PATTERN = f"[^?]*|s3://[^?]*[?]{_OPTION}(&{_OPTION})*"
CLUSTER_URL_PATTERN = r"http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?"


class BackupSource(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster; exactly one of the two.

    cluster_url: where clients connect. cluster_name: an EtcdCluster of the same namespace, of either group.
    """

    cluster_url: str = msgspec.field(default="", name="clusterURL")
    cluster_name: str = ""


class SecretKey(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a Secret in the namespace of the EtcdBackup."""

    name: str
    key: str


class FileCredentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in a file, as the SDK of the store reads it."""

    secret_key_ref: SecretKey


class EnvironmentCredentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials in environment variables: all keys of a Secret."""

    secret_name: str


class Credentials(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the pod of a backup needs to write to the store; the operator never reads these Secrets."""

    aws: FileCredentials | None = None
    google_cloud: FileCredentials | None = None
    environment: EnvironmentCredentials | None = None


class ClaimTarget(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A PersistentVolumeClaim in the namespace of the EtcdBackup."""

    claim_name: str


class BackupDestination(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the backup is stored; `persistent_volume_claim` belongs to `file://`."""

    object_url_template: str = msgspec.field(name="objectURLTemplate")
    credentials: Credentials = Credentials()
    persistent_volume_claim: ClaimTarget | None = None


class Encryption(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Secret with one key of 32 bytes per entry (`archive.keys`)."""

    secret_name: str


class BackupSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdBackup; immutable.

    service_account_name: for the identity that the platform gives it; its token is not mounted.
    verify: what is done after the backup was stored: everything is read back, and also restored on trial.
    """

    source: BackupSource
    destination: BackupDestination
    compression: Literal["zstd"] | None = None
    encryption: Encryption | None = None
    service_account_name: str = ""
    verify: Literal["Hash", "Restore"] | None = None


class Verification(Value, frozen=True, kw_only=True):
    """How a stored backup is verified; the condition Verified has the result.

    level: as in the spec. job_name, start_time: persisted state; once job_name is set, no other Job is made.
    completion_time: set once, with the result. etcd_version: of the etcd that served the restored data.
    took: seconds, 0 without a success.
    """

    level: str
    job_name: str = ""
    start_time: str = ""
    completion_time: str = ""
    etcd_version: str = ""
    took: float = 0.0


class BackupStatus(Value, frozen=True, kw_only=True):
    """The status of an EtcdBackup.

    job_name is persisted state: once it is set, no other Job is made. size: of the snapshot in bytes;
    sha256: of the snapshot, in hexadecimal. verification: of a completed backup that is to be verified.
    """

    observed_generation: int = 0
    phase: str = ""
    start_time: str = ""
    completion_time: str = ""
    job_name: str = ""
    url: str = ""
    revision: int = 0
    keys: int = 0
    size: int = 0
    sha256: str = ""
    etcd_version: str = ""
    cluster_id: str = msgspec.field(default="", name="clusterID")
    verification: Verification | None = None
    conditions: tuple[Condition, ...] = ()


class EtcdBackup(Value, frozen=True, kw_only=True):
    """A stored EtcdBackup; `spec` is raw, see the module."""

    metadata: ObjectMeta
    spec: RawObject = {}
    status: BackupStatus = BackupStatus()
