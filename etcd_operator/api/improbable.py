"""`etcd.improbable.io/v1alpha1`: EtcdCluster and EtcdPeer, persistent members.

`spec` of a stored EtcdCluster is kept raw until a dialect parses it. So one invalid object results in a
condition instead of breaking the watch for all others.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api import coreos, persisted
from etcd_operator.api.cluster_spec import MOST_MEMBERS, PodTemplate, SharedSpec
from etcd_operator.api.meta import (
    Affinity,
    Condition,
    Lean,
    RawObject,
    Stored,
    Value,
    of_schema,
    written_if_zero,
)
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.tls import MemberTls

GROUP = "etcd.improbable.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

CLUSTER_LABEL = f"{GROUP}/cluster-name"
RESERVED_PREFIX = f"{GROUP}/"

RESERVED_LABELS = ("app.kubernetes.io/name", coreos.CLUSTER_LABEL, coreos.NODE_LABEL)
"""Labels of pods by which Services and budgets select members, also those of clusters of the other group."""

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

PEER_TLS_ANNOTATION = f"{GROUP}/peer-tls"
"""`"true"` on a claim whose data records members with https peer URLs."""

TOKEN_LABEL = f"{GROUP}/cluster-token"
"""On pods: the token of the etcd cluster of the member."""


class Storage(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claim of each member."""

    #: The spec of each member's PersistentVolumeClaim; resources.requests.storage is required.
    volume_claim_template: Annotated[RawObject, of_schema("PersistentVolumeClaimSpec")]


class ClusterSpec(SharedSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired state."""

    #: The number of members: 1 for tests, otherwise 3 or 5. Even numbers, and more than 7, cause a warning.
    replicas: Annotated[int, msgspec.Meta(ge=1, le=MOST_MEMBERS)]
    version: str  #: The version of etcd, like 3.6.16.
    storage: Storage  #: The storage of each member. Immutable.
    pod_template: PodTemplate = PodTemplate()  #: Settings of the members' pods. Immutable.
    #: An alternative to spec.podTemplate.affinity, from earlier versions of this API.
    affinity: Affinity = {}


class MemberStatus(Value, frozen=True, kw_only=True):
    """One member as etcd reports it."""

    name: str  #: The name of the member and of its EtcdPeer.
    id: str  #: etcd's ID of the member, in hexadecimal.
    role: Literal["Leader", "Voter", "Learner"] = "Voter"  #: Leader, Voter or Learner.
    healthy: bool = False  #: Whether the member was healthy when the operator last probed it.
    version: str = ""  #: The version of etcd that the member runs.


class ClusterStatus(persisted.ClusterStatus, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    replicas: int = msgspec.field(default=0)  #: The number of EtcdPeers.
    ready_replicas: int = written_if_zero()  #: The number of members that serve.
    members: tuple[MemberStatus, ...] = ()  #: The members as last reported by etcd.
    leader: str = ""  #: The name of the leader.
    #: etcd's own cluster version, the minor version that all members support, as X.Y.0.
    cluster_version: str = ""
    kept_claims: tuple[str, ...] = ()  #: Claims of members that a recovery gave up. Keep or delete them.


class EtcdCluster(Stored, frozen=True, kw_only=True):
    """An etcd cluster with persistent members: each keeps its data on its own volume."""

    status: ClusterStatus = ClusterStatus()


class InitialMember(Value, frozen=True, kw_only=True):
    """A member of the initial cluster of an EtcdPeer."""

    name: str  #: The name of the member.
    host: str  #: The DNS name of the member, without a port.


class StaticBootstrap(Value, frozen=True, kw_only=True):
    """The initial cluster of an EtcdPeer."""

    #: The members that etcd is configured with at its start, each with its name and host.
    initial_cluster: tuple[InitialMember, ...]


class ExternalMember(Value, frozen=True, kw_only=True):
    """A peer URL of a member of an adopted cluster that the operator did not create."""

    id: str  #: etcd's ID of the member, in hexadecimal.
    url: str  #: A peer URL of the member.


class PeerBootstrap(Value, frozen=True, kw_only=True):
    """How the etcd of a member starts.

    `New` bootstraps a cluster. `Existing` with only itself is the existing-only start: etcd starts from the
    data on its volume and refuses an empty one. `Existing` with a complete list joins an existing cluster.
    """

    initial_cluster_state: Literal["New", "Existing"]  #: New bootstraps a cluster, Existing never does.
    static: StaticBootstrap  #: The members that etcd is configured with at its start.
    # Empty only in an EtcdPeer of the earlier operator of this API.
    initial_cluster_token: str = ""  #: etcd's initial cluster token.
    # Into a cluster of one (`manifests.steps`). Emptied when the seed serves.
    #: The host of the member whose data is fetched and restored before the start; only for the seed of a
    #: recovery.
    survivor: str = ""
    #: The SHA-256 of the data that is fetched, if the survivor restarted without a quorum: then a container
    #: in its pod serves it.
    sha256: str = ""
    #: The external members of the adopted cluster when this member joined.
    external: tuple[ExternalMember, ...] = ()


class PeerSpec(Value, frozen=True, kw_only=True):
    """The desired state, written by the operator."""

    cluster_name: str  #: The EtcdCluster that this member belongs to.
    # Empty only in an EtcdPeer of an early version of the earlier operator of this API.
    version: str = ""  #: The version of etcd.
    bootstrap: PeerBootstrap  #: How the etcd of this member starts.
    storage: Storage  #: The storage of each member. Immutable.
    pod_template: PodTemplate = PodTemplate()  #: Settings of the members' pods. Immutable.
    tls: MemberTls | None = None  #: The TLS that this member uses; without this field it uses none.


class PeerStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    server_version: str = ""  #: The version of etcd that the member runs.
    member_id: str = msgspec.field(default="", name="memberID")  #: etcd's ID of the member, in hexadecimal.
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdPeer(Lean, frozen=True, kw_only=True):
    """A member of an EtcdCluster. Created by the operator, not by users."""

    spec: PeerSpec
    status: PeerStatus = PeerStatus()

    @property
    def is_ours(self) -> bool:
        """Whether this operator made it; that of an earlier operator has no token."""
        return bool(self.spec.bootstrap.initial_cluster_token)
