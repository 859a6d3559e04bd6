"""The closed set of things the operator does for one EtcdPeer, and the plan that orders them.

An action ends its pass where the caches turn out to be behind: the next pass decides anew.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.members import PeerFinding, PodProblem
from etcd_operator.controllers.etcd_peer.decide.state import Awaited


class Act(Enum):
    """What is done for a peer as it was observed."""

    FIND_CLAIM = "find claim"  # live; one that is there is given its labels and ends the pass
    CREATE_CLAIM = "create claim"  # one that was there already ends the pass: its annotations are unknown
    CREATE_REPLICA_SET = "create ReplicaSet"  # its pod starts etcd
    CHANGE_TEMPLATE = "change template"  # the running pod is left alone
    RELEASE = "release"  # take the cleanup finalizer off the peer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateStarted:
    """Write on an initial member's claim that from now on there may be data on it."""

    uid: str  # of the claim


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """Delete the ReplicaSet and then the claim of a member that was removed for good."""

    may_leave: bool  # a claim that cannot be deleted is left behind, and an Event names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Disown:
    """Write into the peer's own status why nothing is done for it: no cluster's pass sees it."""

    problem: PodProblem


PeerAction = Act | AnnotateStarted | CleanUp | Disown


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPlan:
    """What to do for a peer now."""

    actions: tuple[PeerAction, ...] = ()
    problem: PodProblem | None = None  # why its objects are not made; its cluster's status reports it
    is_well: bool = False  # its objects are made, or wait for nothing but time: an earlier problem is over
    awaits: Awaited | None = None  # what this pass waits for
    requeue_after: float | None = None  # seconds until the next pass at the latest; None for an event

    @classmethod
    def make(
        cls, *actions: PeerAction, requeue_after: float | None = None, awaits: Awaited | None = None
    ) -> "PeerPlan":
        """Make what is missing, in order; the first failure stops."""
        return cls(actions=actions, is_well=True, awaits=awaits, requeue_after=requeue_after)

    @classmethod
    def hold(
        cls,
        *actions: PeerAction,
        reason: str,
        message: str,
        requeue_after: float,
        awaits: Awaited | None = None,
        finding: PeerFinding | None = None,
    ) -> "PeerPlan":
        """Do `actions`, then nothing until something outside changes."""
        problem = PodProblem(reason=reason, message=message, finding=finding)
        return cls(actions=actions, problem=problem, awaits=awaits, requeue_after=requeue_after)
