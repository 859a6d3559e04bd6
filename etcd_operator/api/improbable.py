"""`etcd.improbable.io/v1alpha1`: EtcdCluster and EtcdPeer, persistent members.

The specs are what users write; `spec` of a stored object stays raw until a dialect
parses it, so that one odd object can be answered with a condition instead of
breaking the watch for all others.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value
from etcd_operator.api.persisted import Bootstrap, Recovery, Upgrade
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.podtemplate import PodTemplate

GROUP = "etcd.improbable.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

CLUSTER_LABEL = f"{GROUP}/cluster-name"
PEER_LABEL = f"{GROUP}/peer-name"
RESERVED_PREFIX = f"{GROUP}/"
POD_KEYS = PodKeys(GROUP)

RECOVER_ANNOTATION = f"{GROUP}/recover"
"""On an EtcdCluster that lost its quorum: the recovery that is wanted (`core.rules.manual_recovery`)."""

PAUSED_ANNOTATION = f"{GROUP}/paused"
"""`"true"` on an EtcdCluster: nothing is done for it, its status goes on."""

CLEANUP_FINALIZER = f"etcdpeer.{GROUP}/pvc-cleanup"
"""On a peer whose member has been removed for good: its claim goes before it."""

# Written on every claim, because a claim outlives the resource whose status holds the same facts.
TOKEN_ANNOTATION = f"{GROUP}/cluster-token"
CLUSTER_UID_ANNOTATION = f"{GROUP}/cluster-uid"
"""The UID of the EtcdCluster that the claim was made for: only that one may remove it unasked."""

INITIAL_MEMBERS_ANNOTATION = f"{GROUP}/initial-members"
CLUSTER_ID_ANNOTATION = f"{GROUP}/cluster-id"
VOTERS_ANNOTATION = f"{GROUP}/voters"
"""The members that vote, as `name=ID,name=ID`; of claims that differ the larger revision is right."""

MISSING_ANNOTATION = f"{GROUP}/data-missing-in"
"""The UID of a pod whose process reported that its data is missing, until one runs on it."""

VOTERS_REVISION_ANNOTATION = f"{GROUP}/voters-revision"
SIZE_ANNOTATION = f"{GROUP}/cluster-size"
"""What earlier versions wrote: the number of voters when the cluster was bootstrapped. It is removed."""

MEMBER_ID_ANNOTATION = f"{GROUP}/member-id"
VERSION_ANNOTATION = f"{GROUP}/version"
STARTED_ANNOTATION = f"{GROUP}/started"
"""On the claim of an initial member: `"true"` from just before its first process can be started (by then
the claims of all initial members have existed), `"false"` until then. Older claims do not say."""

GIVEN_UP_ANNOTATION = f"{GROUP}/given-up-by"
"""On the claim of a member that a recovery gave up: its name. The claim is kept until a person deletes it."""

GIVEN_UP_AT_ANNOTATION = f"{GROUP}/given-up-at"
DELETE_CLAIMS = "/delete-claims"
"""After the name of a recovery in the annotation `recover`: claims that it gives up are deleted at once."""

RESTORED_ANNOTATION = f"{GROUP}/restored"
"""`"true"` on the claim of a seed: its data directory is the one that a snapshot was restored into."""

NON_ROOT_ANNOTATION = f"{GROUP}/non-root"
"""`"true"` on a claim that was made for an etcd that is not root (`render.security`)."""

TOKEN_LABEL = f"{GROUP}/cluster-token"
"""On pods: the token of the etcd cluster that the member belongs to. Clients' Service selects by it."""


class Storage(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claim of each member; fixed once the cluster exists."""

    volume_claim_template: RawObject


class ClusterSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdCluster."""

    replicas: Annotated[int, msgspec.Meta(ge=1)]
    version: str
    storage: Storage
    pod_template: PodTemplate = PodTemplate()
    affinity: RawObject = {}


class MemberStatus(Value, frozen=True, kw_only=True):
    """One member as etcd reports it; `id` is hexadecimal without 0x."""

    name: str
    id: str
    role: Literal["Leader", "Voter", "Learner"] = "Voter"
    healthy: bool = False
    version: str = ""


class ClusterStatus(Value, frozen=True, kw_only=True):
    """The status of an EtcdCluster.

    `bootstrap`, `cluster_id`, `recovery`, `upgrade` are the operator's memory.

    cluster_version: etcd's own, such as 3.6.0. current_version: the lowest that a voter runs.
    """

    observed_generation: int = 0
    replicas: int = msgspec.field(default=0)
    ready_replicas: int = 0
    selector: str = ""
    members: tuple[MemberStatus, ...] = ()
    leader: str = ""
    cluster_version: str = ""
    current_version: str = ""
    cluster_id: str = msgspec.field(default="", name="clusterID")
    bootstrap: Bootstrap | None = None
    recovery: Recovery | None = None
    upgrade: Upgrade | None = None
    kept_claims: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


class EtcdCluster(Value, frozen=True, kw_only=True):
    """A stored EtcdCluster; `spec` is raw, see the module."""

    metadata: ObjectMeta
    spec: RawObject = {}
    status: ClusterStatus = ClusterStatus()


class InitialMember(Value, frozen=True, kw_only=True):
    """One entry of a peer's initial cluster; `host` is a DNS name without port."""

    name: str
    host: str


class StaticBootstrap(Value, frozen=True, kw_only=True):
    """The initial cluster that this peer's etcd is started with."""

    initial_cluster: tuple[InitialMember, ...]


class PeerBootstrap(Value, frozen=True, kw_only=True):
    """How this peer's etcd starts.

    `New` bootstraps a cluster. `Existing` with only itself starts from the data on its volume
    and refuses an empty one. `Existing` with a whole list joins a cluster that knows it.
    survivor: host of a member whose data is fetched and restored first, into a cluster of one (see
    `render.steps`); empty for all but the seed of a recovery, and for that one once it serves.
    """

    initial_cluster_state: Literal["New", "Existing"]
    static: StaticBootstrap
    initial_cluster_token: str
    survivor: str = ""


class PeerSpec(Value, frozen=True, kw_only=True):
    """The spec of an EtcdPeer: made by the operator, user edits are refused."""

    cluster_name: str
    version: str
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
