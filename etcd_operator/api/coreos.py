"""`coreos.com/v1`: EtcdCluster with ephemeral members.

Its oldest version has `size` at the top level instead of inside `spec`. Both are read; `spec.size`
takes precedence.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api import persisted
from etcd_operator.api.adoption import Adopt, SelfHosted
from etcd_operator.api.coreos_backup import BackupPolicy, ClusterBackupStatus, RestorePolicy
from etcd_operator.api.meta import ObjectMeta, RawObject, SecurityContext, Value, of_schema, written_if_zero
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.recovery import AfterSeconds, RecoveryMode

GROUP = "coreos.com"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"

APP_LABEL = "app"
CLUSTER_LABEL = "etcd_cluster"
NODE_LABEL = "etcd_node"
VERSION_ANNOTATION = "etcd.version"
POD_KEYS = PodKeys(GROUP)


class PodPolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the members' pods."""

    #: The security context of the pods, with the fields of a pod's security context. It replaces the whole
    #: default, which complies with the Pod Security Standard restricted: user, group and fsGroup 65532,
    #: seccomp profile RuntimeDefault.
    security_context: SecurityContext | None = None


class ClusterSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired state."""

    #: The number of members: 1 for tests, otherwise 3 or 5. Even numbers, and more than 7, cause a warning.
    size: Annotated[int, msgspec.Meta(ge=1)] | None = None
    #: The version of etcd, like v3.5.35. Default of a new cluster: --default-etcd-version of the operator.
    version: str = ""
    #: While true, the operator changes nothing in this cluster and only reports its status.
    paused: bool = False
    node_selector: dict[str, str] = {}  #: Labels of the nodes that the pods may run on.
    anti_affinity: bool = False  #: While true, two members of the cluster never run on the same node.
    pod: PodPolicy = PodPolicy()  #: Settings of the members' pods.
    # Raw: see `api.coreos_backup`.
    #: Regular backups of the cluster. Without this field, or with maxBackups: 0, no backups are taken.
    backup: Annotated[RawObject, of_schema(BackupPolicy)] | None = None
    #: A running etcd cluster to join instead of bootstrapping a new one. The existing (external) members are
    #: removed afterwards, unless the mode is Join or Leave. Cannot be set once the cluster is bootstrapped,
    #: except to continue an adoption.
    adopt: Adopt | None = None
    #: Short form of spec.adopt for a cluster with one member. Mutually exclusive with spec.adopt and
    #: spec.restore.
    self_hosted: SelfHosted | None = None
    restore: RestorePolicy | None = None  #: The backup with which a new cluster begins.
    #: Manual (the default): members that do not answer are given up only on request. Automatic: if the quorum
    #: is lost, and stays lost for recoveryAfterSeconds, the operator gives up the members that do not answer,
    #: and recovers the cluster without a request. Writes that only these members have are then lost.
    recovery: RecoveryMode = "Manual"
    #: How many seconds the quorum must be lost, and each member that is given up must be silent, before an
    #: automatic recovery starts. Default: 600. The count restarts if the operator restarts or cannot reach
    #: the API server.
    recovery_after_seconds: AfterSeconds = None


class MembersStatus(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The names of the members."""

    ready: tuple[str, ...] = ()  #: Members that serve.
    unready: tuple[str, ...] = ()  #: Members that do not serve.


class ClusterStatus(persisted.ClusterStatus, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    phase: Literal["", "Creating", "Running", "Failed"] = ""  #: Creating, Running or Failed.
    size: int = written_if_zero()  #: The number of members.
    target_version: str = ""  #: The desired version of etcd, during an upgrade.
    members: MembersStatus = MembersStatus()  #: The members by name.
    #: The number of the next member; numbers are never reused. Persisted state of the operator.
    next_ordinal: int = 0
    # Written only by the passes for backups.
    #: The newest backup, and the number and total size of all backups.
    backup: ClusterBackupStatus | None = None


class EtcdCluster(Value, frozen=True, kw_only=True):
    """An etcd cluster with ephemeral members: their data exists as long as their pods."""

    metadata: ObjectMeta
    spec: RawObject = {}
    size: int | None = None
    status: ClusterStatus = ClusterStatus()
