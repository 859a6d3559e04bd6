"""Persisted state: facts about a cluster that cannot be observed later.

Everything else is read live. These facts are in the status of the resources of both groups and
are written before the act that they describe.
"""

from typing import Literal

import msgspec

from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value


class Bootstrap(Value, frozen=True, kw_only=True):
    """How a cluster was bootstrapped; written before its first object is created.

    members: names of the initial members, ordered by number.
    token: etcd's `--initial-cluster-token`.
    version: of etcd, that all initial members start with; empty if it is not known.
    """

    members: tuple[str, ...]
    token: str
    version: str = ""


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
    """The backup that a recovery restores.

    cluster: whose backup (the name of a cluster in the same namespace).
    name: of the file; empty while the seed has not fetched the newest one yet. sha256: of its bytes; for an
    EtcdBackup of the snapshot. time: when it was taken (RFC 3339). age: seconds that it was old when it was
    chosen. spec: of an EtcdBackup as stored, for its access to the store: it may be deleted before the end.
    url: where that is stored.
    """

    cluster: str
    via: Via
    name: str = ""
    sha256: str = ""
    time: str = ""
    age: int = 0
    url: str = ""
    spec: RawObject = {}


class Recovery(Value, frozen=True, kw_only=True):
    """The last recovery of a cluster that lost its quorum permanently, in progress or finished.

    Also the last restore in place: a person gives up the data of a cluster that serves, for a backup.

    Written before its first object is created. It is in progress while the recorded cluster ID is
    the one that it replaces.

    generation: counts the recoveries of this resource, from 1; token: of the new cluster.
    survivor: the member whose data is restored, empty for a backup; revision: its latest etcd revision, or
    that of the backup; version: the version that it ran, with which the seed starts, whatever version is
    desired by then. sha256: of its database, where it answered nobody and that was read.
    seed: the first member of the new cluster. replaces: ID of the cluster that is given up; empty
    if its quorum returned in time, so nothing was given up, and for a backup that is restored at creation.
    former: IDs of the clusters that earlier recoveries gave up.
    automatic: it began without a person. stable: the cluster served for long enough since that another one
    may begin without a person. follows_automatic: it followed one after which that was not so.
    bump: how much higher the revisions of the new cluster are.
    in_place: of a cluster that serves. given_up: the last revision that was observed of that cluster.
    failure: why it ended without a change; empty if it did not.
    """

    generation: int
    survivor: str
    revision: int
    version: str
    seed: str
    token: str
    replaces: str
    backup: RestoredBackup | None = None
    former: tuple[str, ...] = ()
    automatic: bool = False
    stable: bool = False
    follows_automatic: bool = False
    bump: int = REVISION_BUMP
    in_place: bool = False
    given_up: int = 0
    failure: str = ""
    sha256: str = ""

    def is_under_way(self, cluster_id: str) -> bool:
        """Whether it has not ended. cluster_id: the one on record; empty if there is none."""
        return self.replaces == cluster_id


class Upgrade(Value, frozen=True, kw_only=True):
    """An upgrade in progress; written before its first member is restarted.

    origin: the lowest version that ran when it began. target: the desired version.
    member: the upgrading member: restarted for this upgrade, or about to be.
    since: when it began, RFC 3339; set when the status is written.
    """

    origin: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    member: str = ""
    since: str = ""


class AdoptedMember(Value, frozen=True, kw_only=True):
    """A member of the adopted cluster that the operator did not create.

    id: hexadecimal. endpoint: where it serves clients, `host:port`. peer_urls: as etcd lists them.
    removed: its removal has begun, written before etcd is asked for it; from then on it is not probed.

    The ID is empty where the resource was created again since, and etcd does not list the member any more.
    """

    id: str
    endpoint: str
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs")
    removed: bool = False


class Adoption(Value, frozen=True, kw_only=True):
    """The adoption of a running etcd cluster, in progress or finished.

    Written together with the ID of that cluster, before the first object is created.

    members: none while a resource that was created again on its claims has yet to find those that are left.
    committed: raft index that its members had reached when this was last written: one that reports less has
    lost data. last_member_removed: the removal of the only member of ours has begun, and none was added
    since, so lists without ours are right.
    """

    members: tuple[AdoptedMember, ...]
    committed: int = 0
    last_member_removed: bool = False
    finished: bool = False


class ClusterStatus(Value, frozen=True, kw_only=True):
    """What the status of a cluster has in both groups.

    `bootstrap`, `cluster_id`, `recovery`, `upgrade`, `adoption` are the operator's persisted state.

    current_version: the lowest that a voter runs. selector: of the pods, for `kubectl scale`.
    endpoints: the client URL of each member that etcd lists, for clients that fail over by themselves.
    """

    observed_generation: int = 0
    selector: str = ""
    current_version: str = ""
    endpoints: tuple[str, ...] = ()
    cluster_id: str = msgspec.field(default="", name="clusterID")
    bootstrap: Bootstrap | None = None
    recovery: Recovery | None = None
    upgrade: Upgrade | None = None
    adoption: Adoption | None = None
    conditions: tuple[Condition, ...] = ()


class AnyCluster(Value, frozen=True, kw_only=True):
    """What is read of an EtcdCluster of either group, where the group makes no difference."""

    metadata: ObjectMeta
    status: ClusterStatus = ClusterStatus()
