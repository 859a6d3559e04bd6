"""Persisted state: facts about a cluster that cannot be observed later.

Everything else is read live. These facts are in the status of the resources of both groups and
are written before the act that they describe.
"""

from typing import Literal

import msgspec

from etcd_operator.api.meta import AnyObject, Condition, ObjectMeta, Value


class Bootstrap(Value, frozen=True, kw_only=True):
    """How a cluster was bootstrapped; written before its first object is created."""

    members: tuple[str, ...]  #: The initial members of the cluster, ordered by number.
    token: str  #: etcd's initial cluster token.
    version: str = ""  #: The version of etcd that the initial members started with; empty if it is not known.


def repeated(token: str) -> str:
    """The token of a repeated bootstrap, after all members of the previous attempt were lost."""
    first, _, number = token.partition(AGAIN)
    return f"{first}{AGAIN}{int(number or 0) + 1}"


def is_repeated(token: str) -> bool:
    """Whether an earlier attempt lost its members, with everything that clients may have written."""
    return AGAIN in token


def recovery_token(uid: str, generation: int) -> str:
    """The token of the cluster that a recovery makes; uid: of the resource. No other cluster has it."""
    return f"{uid}-{generation}"


def is_recovery_token(uid: str, token: str) -> bool:
    """Whether a token is that of some recovery of the resource with this UID."""
    generation = token.removeprefix(f"{uid}-")
    return token != generation and generation.isdecimal()


AGAIN = "."
"""Separates the UID of the resource, which does not contain it, from the number of the attempt."""


Via = Literal["Tool", "Claim", "Bucket", "Object"]
"""How a seed gets a backup: from a backup tool, directly from where that stores it, or an EtcdBackup's."""

REVISION_BUMP = 1_000_000_000
"""How much revisions increase in a recovery.

More than a lost majority can have written: no revision is ever issued twice, and a watcher that continues
from an old revision gets `required revision has been compacted` instead of silently missing writes.
"""


class RestoredBackup(Value, frozen=True, kw_only=True):
    """The backup that a recovery restores."""

    cluster: str  #: The name of the EtcdCluster that was backed up.
    #: How the seed gets the backup: from a backup tool (Tool), from the claim or the bucket of a backup tool
    #: (Claim, Bucket), or by a Job with the credentials of an EtcdBackup (Object).
    via: Via
    #: The name of the backup, or of the EtcdBackup; empty until the seed has fetched the newest backup.
    name: str = ""
    sha256: str = ""  #: The SHA-256 of the stored backup; for an EtcdBackup, of the snapshot in it.
    time: str = ""  #: When the backup was taken.
    age: int = 0  #: How many seconds old the backup was when it was chosen.
    url: str = ""  #: Where the EtcdBackup that is restored stored its backup.
    #: The spec of the EtcdBackup that is restored, which may be deleted meanwhile; it contains the access to
    #: the store.
    spec: AnyObject = {}


class Recovery(Value, frozen=True, kw_only=True):
    """The last recovery from a lost quorum, or restore in place, in progress or finished.

    Written before its first object is created. It is in progress while the recorded cluster ID is `replaces`.
    """

    generation: int  #: The number of this recovery; the first one is 1.
    survivor: str  #: The survivor: the member whose data is restored. Empty if a backup is restored.
    revision: int  #: The latest revision of the survivor, or of the backup.
    #: The version of etcd with which the seed starts: that of the survivor or of the backup; with
    #: spec.restore that of the spec; in a restore in place the lowest that a voting member ran.
    version: str
    seed: str  #: The first member of the new cluster.
    token: str  #: etcd's initial cluster token of the new cluster.
    #: etcd's ID of the cluster that was given up, in hexadecimal; empty if its quorum returned in time, or a
    #: restore in place was cancelled or failed.
    replaces: str
    backup: RestoredBackup | None = None  #: The backup that is restored.
    #: etcd's IDs of the clusters that earlier recoveries gave up, in hexadecimal.
    former: tuple[str, ...] = ()
    automatic: bool = False  #: Whether this recovery started automatically (spec.recovery: Automatic).
    #: Whether the cluster has served for an hour since a recovery that started automatically. Until then, no
    #: other recovery starts automatically.
    stable: bool = False
    #: Whether this recovery followed an automatic one before the cluster had served for an hour.
    follows_automatic: bool = False
    #: The number that was added to revisions by this recovery. Default: 1000000000.
    bump: int = REVISION_BUMP
    #: Whether this is a restore in place: a cluster that served was given up for a backup.
    in_place: bool = False
    #: The last revision that the operator observed of the cluster that a restore in place gave up. Clients
    #: that were still connected may have written later ones.
    given_up: int = 0
    failure: str = ""  #: Why a restore in place ended without a change.
    #: The SHA-256 of the survivor's database, if the database was read because the survivor restarted without
    #: a quorum; otherwise empty.
    sha256: str = ""

    def is_under_way(self, cluster_id: str) -> bool:
        """Whether it has not ended. cluster_id: the one on record; empty if there is none."""
        return self.replaces == cluster_id


class Upgrade(Value, frozen=True, kw_only=True):
    """An upgrade in progress; written before its first member is restarted."""

    origin: str = msgspec.field(name="from")  #: The lowest version that ran when the upgrade began.
    target: str = msgspec.field(name="to")  #: The version that all members are upgraded to.
    member: str = ""  #: The member that is being upgraded: restarted for this upgrade, or about to be.
    # Set when the status is written.
    since: str = ""  #: When the upgrade began.


class AdoptedMember(Value, frozen=True, kw_only=True):
    """A member of the adopted cluster that the operator did not create."""

    # Empty if the resource was created again, and etcd does not list the member any more.
    id: str  #: etcd's ID of the member, in hexadecimal.
    endpoint: str  #: The HOST:PORT at which the member serves clients.
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs")  #: The peer URLs of the member.
    # Written before etcd is asked for the removal; from then on the member is not probed.
    removed: bool = False  #: Whether the removal of the member has begun.


class Adoption(Value, frozen=True, kw_only=True):
    """The adoption of a running etcd cluster, in progress or finished.

    Written together with the ID of that cluster, before the first object is created.
    """

    # Empty while a resource that was created again on its claims has not found the members that are left.
    members: tuple[AdoptedMember, ...]  #: The external members at the beginning of the adoption.
    # A member that reports less has lost data.
    #: The raft index that the members had committed when the operator last wrote status.adoption.
    committed: int = 0
    # No member was added since, so a list without members of this resource is right.
    #: Whether the only member of this resource is leaving the adopted cluster, or has left it.
    last_member_removed: bool = False
    finished: bool = False  #: Whether only members of this resource are left.


class ClusterStatus(Value, frozen=True, kw_only=True):
    """What the status of a cluster has in both groups.

    `bootstrap`, `cluster_id`, `recovery`, `upgrade` and `adoption` are the operator's persisted state.
    """

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    selector: str = ""  #: The label selector of the members' pods.
    current_version: str = ""  #: The lowest version of etcd that a voting member runs.
    # Of each member that etcd lists, for clients that fail over by themselves.
    endpoints: tuple[str, ...] = ()  #: The client URL of each member.
    #: etcd's ID of the cluster, in hexadecimal.
    cluster_id: str = msgspec.field(default="", name="clusterID")
    bootstrap: Bootstrap | None = None  #: How the cluster was bootstrapped. Persisted state of the operator.
    #: The last recovery from a lost quorum, or restore in place, in progress or finished. Persisted state of
    #: the operator.
    recovery: Recovery | None = None
    upgrade: Upgrade | None = None  #: The upgrade in progress.
    #: The adoption of a running cluster, in progress or finished. Persisted state of the operator.
    adoption: Adoption | None = None
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class AnyCluster(Value, frozen=True, kw_only=True):
    """What is read of an EtcdCluster of either group, where the group makes no difference."""

    metadata: ObjectMeta
    status: ClusterStatus = ClusterStatus()
