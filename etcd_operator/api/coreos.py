"""`coreos.com/v1`: EtcdCluster with ephemeral members.

Its oldest version has `size` at the top level instead of inside `spec`. Both are read; `spec.size`
takes precedence.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api import persisted
from etcd_operator.api.adoption import Adopt, SelfHosted
from etcd_operator.api.coreos_backup import ClusterBackupStatus, RestorePolicy
from etcd_operator.api.meta import ObjectMeta, RawObject, Value, written_if_zero
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
    """Settings of the members' pods.

    security_context: of the pod; it replaces the whole default. None selects the default.
    """

    security_context: RawObject | None = None


class ClusterSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdCluster. Only the size is required, here or at the top level.

    backup: raw, see `api.coreos_backup`. restore: the backup that a new cluster begins with.
    adopt, self_hosted: alternatives, see `api.adoption`.
    """

    size: Annotated[int, msgspec.Meta(ge=1)] | None = None
    version: str = ""
    paused: bool = False
    node_selector: dict[str, str] = {}
    anti_affinity: bool = False
    pod: PodPolicy = PodPolicy()
    backup: RawObject | None = None
    adopt: Adopt | None = None
    self_hosted: SelfHosted | None = None
    restore: RestorePolicy | None = None
    recovery: RecoveryMode = "Manual"
    recovery_after_seconds: AfterSeconds = None


class MembersStatus(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The names of the members that serve and of those that do not."""

    ready: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()


class ClusterStatus(persisted.ClusterStatus, frozen=True, kw_only=True):
    """The status of an EtcdCluster. next_ordinal: of the next member, persisted; it never decreases.

    backup: written by the pass for backups only, as its condition.
    """

    phase: Literal["", "Creating", "Running", "Failed"] = ""
    size: int = written_if_zero()
    target_version: str = ""
    members: MembersStatus = MembersStatus()
    next_ordinal: int = 0
    backup: ClusterBackupStatus | None = None


class EtcdCluster(Value, frozen=True, kw_only=True):
    """A stored EtcdCluster; `spec` is raw, `size` is its place in the oldest version of the API."""

    metadata: ObjectMeta
    spec: RawObject = {}
    size: int | None = None
    status: ClusterStatus = ClusterStatus()
