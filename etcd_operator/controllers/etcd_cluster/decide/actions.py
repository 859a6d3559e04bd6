"""The closed set of things the operator can do to a cluster, and the plan that orders them.

An action names the result; how it is reached safely (preconditions, a read before a
repetition) is decided by `etcd_cluster.act`.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import TlsAction
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.orphans import Orphan, Unlabelled
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    OnMember,
    RecoveryAction,
    RestoreAction,
    StartSurvivor,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class OnEntry(OnMember):
    """What is done to an entry of etcd's list."""

    member_id: str


class AddLearner(OnMember):
    """Register a non-voting member: it cannot cost quorum while it catches up."""


class Promote(OnEntry):
    """Let a learner that is in step vote."""


class MoveLeader(OnEntry):
    """Transfer leadership to a member that is kept, before the leader is stopped."""


class RemoveMember(OnEntry):
    """Take a member out of etcd's list for good; its data is never used again."""


class RemoveExternal(OnEntry):
    """Take a member of an adopted cluster, which the operator did not make, out of etcd's list for good."""


class RemoveCorrupt(OnEntry):
    """Take a member with corrupt data out of etcd's list, if a quorum of others has equal data, live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisarmCorrupt:
    """Let etcd take writes again: the member with the corrupt data is out, and the others have equal data."""

    member_id: str


MembershipAction = (
    AddLearner | Promote | MoveLeader | RemoveMember | RemoveExternal | RemoveCorrupt | DisarmCorrupt
)
"""Changes of etcd's own list of members and alarms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Write the persisted state into status before anything depends on it."""

    persisted: PersistedState


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClientService:
    """Make the Service for clients."""


class CreateMemberService(OnMember):
    """Make the Service of one member (ephemeral members only)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreLabels:
    """Restore the labels by which a member's pod is found."""

    pod: Unlabelled


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack:
    """Make the resource the owner of an object that has none."""

    orphan: Orphan


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepBudget:
    """Make or change the budget by which evictions leave at least so many members that serve."""

    min_available: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMember(OnMember):
    """Make a member's objects: a pod, or an EtcdPeer that makes claim and ReplicaSet."""

    start: Start
    version: str = ""  # of etcd; empty for the one in the spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceMember(OnMember):
    """Stop a member's process and start another version of etcd on the same data, or the same one.

    An ephemeral member's container is restarted in its pod: at the same version with two actions. A
    persistent member's EtcdPeer is deleted, its claim kept: `rules.objects.repair` makes it again.
    """

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PadLog:
    """Append entries that change nothing, `entries` at most: in time every member saves a raft snapshot."""

    entries: int


class AppendEntry:
    """Append an entry that changes nothing. A failure fails no pass: it is tried again at the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetExistingOnly(OnMember):
    """From now on this member refuses to start without its data.

    Its claim is annotated with the identity of cluster and member first, and with the voters (as in
    `AnnotateVoters`), so that the data can be recognised when everything else is lost.
    """

    cluster_id: str
    member_id: str
    voters: tuple[str, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateVoters(OnMember):
    """Write on a member's claim who votes now (`name=ID` each), as something newer than smaller revisions."""

    voters: tuple[str, ...]
    revision: int


class RecreatePod(OnMember):
    """Delete a persistent member's pod that reports that its data is missing; its ReplicaSet makes another.

    Its claim is annotated with that pod first: only another one that reports the same is believed.
    """


class ClearMissing(OnMember):
    """Remove that annotation from a claim: its member runs on its data after all."""


class DeleteMember(OnMember):
    """Remove the objects of a member that etcd no longer lists, its data included."""


class DropPod(OnMember):
    """Delete the pod of an ephemeral member that has ended for good, before the cluster ever served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmNoAuthentication:
    """Make sure, live, that requests need no user: without TLS, the operator would be none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmClaimsLost:
    """Make sure, live, that no initial member has a claim: nothing that follows may happen otherwise."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStorage:
    """Delete claims that, live, never had a volume, and the EtcdPeers of their initial members."""

    names: tuple[str, ...]


KindAction = (
    CreateMemberService
    | RestoreAction
    | DropPod
    | StartSurvivor
    | SetExistingOnly
    | AnnotateVoters
    | RecreatePod
    | ClearMissing
    | ConfirmClaimsLost
    | ChangeStorage
)
"""What is done for one kind of member only."""

CommonAction = (
    Remember
    | CreateClientService
    | KeepBudget
    | RestoreLabels
    | TakeBack
    | CreateMember
    | DeleteMember
    | ReplaceMember
    | PadLog
    | AppendEntry
    | ConfirmNoAuthentication
)
"""What is done for all clusters."""

Action = MembershipAction | RecoveryAction | KindAction | CommonAction | TlsAction


class Stage(Enum):
    """Where a cluster stands after an observation."""

    SETTLED = "settled"  # as desired
    WORKING = "working"  # acting, or waiting for what was begun
    HELD = "held"  # something outside must change first; the reason of the plan names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now, why, and when to observe again."""

    actions: tuple[Action, ...] = ()
    stage: Stage
    reason: str
    message: str
    # seconds until the next observation at the latest; None: when something changes
    requeue_after: float | None = None
    is_quiet: bool = False  # a detail of what status already reports; not worth a write of its own

    @classmethod
    def act(cls, *actions: Action, reason: str, message: str, requeue_after: float | None = None) -> "Plan":
        """Do `actions` in order; the first failure stops."""
        return cls(
            actions=actions, stage=Stage.WORKING, reason=reason, message=message, requeue_after=requeue_after
        )

    @classmethod
    def wait(cls, reason: str, message: str, *, requeue_after: float) -> "Plan":
        """What was begun goes on by itself; observe again."""
        return cls(stage=Stage.WORKING, reason=reason, message=message, requeue_after=requeue_after)

    @classmethod
    def hold(cls, reason: str, message: str, *, requeue_after: float | None = None) -> "Plan":
        """Nothing may be done until something outside changes."""
        return cls(stage=Stage.HELD, reason=reason, message=message, requeue_after=requeue_after)

    @classmethod
    def settled(cls) -> "Plan":
        """The cluster is as desired."""
        return cls(stage=Stage.SETTLED, reason="Settled", message="the cluster is as desired")
