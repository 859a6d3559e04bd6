"""`etcd.improbable.io/v1alpha1`: EtcdCluster and EtcdPeer, persistent members.

`spec` of a stored EtcdCluster is kept raw until a dialect parses it. So one invalid object results in a
condition instead of breaking the watch for all others.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api import persisted
from etcd_operator.api.adoption import Adopt
from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value, written_if_zero
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.podtemplate import PodTemplate
from etcd_operator.api.recovery import AfterSeconds, RecoveryMode

GROUP = "etcd.improbable.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

CLUSTER_LABEL = f"{GROUP}/cluster-name"
RESERVED_PREFIX = f"{GROUP}/"
POD_KEYS = PodKeys(GROUP)

CLOSED_ANNOTATION = f"{GROUP}/closed"
"""On the Service of an EtcdCluster, while it selects no member because a restore in place gives them up."""

PAUSED_ANNOTATION = f"{GROUP}/paused"
"""`"true"` on an EtcdCluster: the operator changes nothing and still writes the status."""

PAUSED_FORM = 'must be "true" or "false"'

CLEANUP_FINALIZER = f"etcdpeer.{GROUP}/pvc-cleanup"
"""On an EtcdPeer whose member was removed permanently: its claim is deleted before it."""

# Annotations of every claim: a claim outlives the resource whose status has the same facts. More of them are
# in `shared_keys`.
CLUSTER_UID_ANNOTATION = f"{GROUP}/cluster-uid"
"""The UID of the EtcdCluster that the claim was created for: only that one may delete it unasked."""

CLUSTER_ID_ANNOTATION = f"{GROUP}/cluster-id"
VOTERS_ANNOTATION = f"{GROUP}/voters"
"""The voters, as `name=ID,name=ID`; if claims differ, the one with the larger revision is valid."""

MISSING_ANNOTATION = f"{GROUP}/data-missing-in"
"""The UID of a pod whose process reported missing data; removed when a process runs on the claim."""

VOTERS_REVISION_ANNOTATION = f"{GROUP}/voters-revision"
SIZE_ANNOTATION = f"{GROUP}/cluster-size"
"""From earlier versions: the number of voters when the cluster was bootstrapped. The operator removes it."""

MEMBER_ID_ANNOTATION = f"{GROUP}/member-id"
VERSION_ANNOTATION = f"{GROUP}/version"
STARTED_ANNOTATION = f"{GROUP}/started"
"""On the claim of an initial member: `"true"` from right before its first process can start (by then the
claims of all initial members have existed), `"false"` until then. Claims of earlier versions lack it."""

GIVEN_UP_AT_ANNOTATION = f"{GROUP}/given-up-at"
RESTORED_ANNOTATION = f"{GROUP}/restored"
"""`"true"` on the claim of a seed: its data directory is the one with the restored snapshot."""

NON_ROOT_ANNOTATION = f"{GROUP}/non-root"
"""`"true"` on a claim that was created for an etcd that does not run as root (`manifests.security`)."""

TOKEN_LABEL = f"{GROUP}/cluster-token"
"""On pods: the token of the etcd cluster of the member. The client Service selects by it."""


class Storage(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claim of each member; immutable."""

    volume_claim_template: RawObject


class ClusterSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdCluster."""

    replicas: Annotated[int, msgspec.Meta(ge=1)]
    version: str
    storage: Storage
    pod_template: PodTemplate = PodTemplate()
    affinity: RawObject = {}
    adopt: Adopt | None = None
    recovery: RecoveryMode = "Manual"
    recovery_after_seconds: AfterSeconds = None


class MemberStatus(Value, frozen=True, kw_only=True):
    """One member as etcd reports it; `id` is hexadecimal without 0x."""

    name: str
    id: str
    role: Literal["Leader", "Voter", "Learner"] = "Voter"
    healthy: bool = False
    version: str = ""


class ClusterStatus(persisted.ClusterStatus, frozen=True, kw_only=True):
    """The status of an EtcdCluster. cluster_version: etcd's own, such as 3.6.0."""

    replicas: int = msgspec.field(default=0)
    ready_replicas: int = written_if_zero()
    members: tuple[MemberStatus, ...] = ()
    leader: str = ""
    cluster_version: str = ""
    kept_claims: tuple[str, ...] = ()


class EtcdCluster(Value, frozen=True, kw_only=True):
    """A stored EtcdCluster; `spec` is raw, see the module."""

    metadata: ObjectMeta
    spec: RawObject = {}
    status: ClusterStatus = ClusterStatus()


class InitialMember(Value, frozen=True, kw_only=True):
    """One entry of the initial cluster of an EtcdPeer; `host` is a DNS name without a port."""

    name: str
    host: str


class StaticBootstrap(Value, frozen=True, kw_only=True):
    """The initial cluster that this member's etcd starts with."""

    initial_cluster: tuple[InitialMember, ...]


class ExternalMember(Value, frozen=True, kw_only=True):
    """A peer URL of a member of an adopted cluster, which the operator did not create; id: hexadecimal."""

    id: str
    url: str


class SurvivorReader(Value, frozen=True, kw_only=True):
    """What reads a survivor that answers nobody, on its host: its token, and the SHA-256 of the database."""

    token: str
    sha256: str


class PeerBootstrap(Value, frozen=True, kw_only=True):
    """How this member's etcd starts.

    `New` bootstraps a cluster. `Existing` with only itself is the existing-only start: etcd starts from the
    data on its volume and refuses an empty one. `Existing` with a complete list joins an existing cluster.
    initial_cluster_token: never empty, but in an EtcdPeer of the earlier operator of this API.
    survivor: host of a member whose data is fetched and restored first, into a cluster of one (see
    `manifests.steps`); empty except for the seed of a recovery, and for the seed once it serves.
    reader: where the survivor answers nobody, and its data is fetched from a reader.
    external: the members of an adopted cluster that were listed when this member joined it.
    """

    initial_cluster_state: Literal["New", "Existing"]
    static: StaticBootstrap
    initial_cluster_token: str = ""
    survivor: str = ""
    reader: SurvivorReader | None = None
    external: tuple[ExternalMember, ...] = ()


class PeerSpec(Value, frozen=True, kw_only=True):
    """The spec of an EtcdPeer. The operator writes it; edits by users are refused.

    version: never empty, but in an EtcdPeer of an early version of the earlier operator of this API.
    """

    cluster_name: str
    version: str = ""
    bootstrap: PeerBootstrap
    storage: Storage
    pod_template: PodTemplate = PodTemplate()


class PeerStatus(Value, frozen=True, kw_only=True):
    """The status of an EtcdPeer."""

    observed_generation: int = 0
    server_version: str = ""
    member_id: str = msgspec.field(default="", name="memberID")
    conditions: tuple[Condition, ...] = ()


class EtcdPeer(Value, frozen=True, kw_only=True):
    """A stored EtcdPeer."""

    metadata: ObjectMeta
    spec: PeerSpec
    status: PeerStatus = PeerStatus()

    @property
    def is_ours(self) -> bool:
        """Whether this operator made it; that of an earlier operator has no token."""
        return bool(self.spec.bootstrap.initial_cluster_token)
