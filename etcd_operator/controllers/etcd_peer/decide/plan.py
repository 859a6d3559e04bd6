"""The ordered rules for one EtcdPeer: its claim, then its ReplicaSet. The first that returns a plan decides.

The claim is made once, before the ReplicaSet. A claim that is missing while the ReplicaSet exists has been
lost: a new, empty one would let a member come back without its data, so it is not made.

No initial member starts before the claims of all of them exist, and each claim is annotated as started
before the first ReplicaSet of its member is made. So as soon as one is, or has a ReplicaSet, a claim that is
missing was lost and not merely late: this distinguishes an interrupted bootstrap from one whose data
somebody deleted (see `rules.bootstrap`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.members import PeerFinding, PodProblem
from etcd_operator.controllers.etcd_peer.decide.state import Awaited, PeerState, is_started
from etcd_operator.controllers.shared.decide.holds import PEER_REFUSED, RETRY_HELD

INITIAL_MEMBERS_RECHECK = 5.0
"""Seconds; the claims' own events come first."""

CLUSTER_GRACE = 2.0
"""Seconds for which a peer may not fit its cluster before that is reported."""

BINDING_GRACE = 0.5
"""Seconds to wait for a volume. A class that binds only once a pod is there never binds before."""

CLEANUP_PATIENCE = 300.0
"""Seconds for which a claim that cannot be deleted holds its peer."""


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


PeerRule = Callable[[PeerState], PeerPlan | None]


def clean_up(state: PeerState) -> PeerPlan | None:
    """Nothing is made for a peer that is being deleted.

    Its claim is deleted if its member was removed for good. A peer that belongs to no cluster only loses its
    finalizer: objects of its name may be another member's.
    """
    if state.deleting_for is None:
        return None
    if not state.is_for_cleanup:
        return PeerPlan()
    if not state.is_members:
        return PeerPlan(actions=(Act.RELEASE,))
    return PeerPlan(actions=(CleanUp(may_leave=state.deleting_for > CLEANUP_PATIENCE), Act.RELEASE))


def refuse(state: PeerState) -> PeerPlan | None:
    """Nothing is done for a peer that the operator would not make.

    Its cluster reports why. A peer that belongs to no cluster reports it in its own status.
    """
    problem = state.ownership_problem or state.content_problem
    if not problem:
        return None
    left = CLUSTER_GRACE - state.waited_for(Awaited.CLUSTER)
    if left > 0:
        return PeerPlan(awaits=Awaited.CLUSTER, requeue_after=left)
    if state.ownership_problem:
        refused = PodProblem(reason=PEER_REFUSED, message=problem)
        return PeerPlan(actions=(Disown(problem=refused),), awaits=Awaited.CLUSTER)
    return PeerPlan.hold(
        reason=PEER_REFUSED,
        message=problem,
        requeue_after=RETRY_HELD,
        awaits=Awaited.CLUSTER,
        finding=PeerFinding.REFUSED,
    )


def keep(state: PeerState) -> PeerPlan | None:
    """Keep the template of an existing ReplicaSet up to date; it depends on the claim's annotations."""
    if not state.has_replica_set:
        return None
    actions: list[PeerAction] = [] if state.claim is not None else [Act.FIND_CLAIM]
    if not state.is_template_current:
        actions.append(Act.CHANGE_TEMPLATE)
    return PeerPlan.make(*actions)


def given_up(state: PeerState) -> PeerPlan | None:
    """A claim that a recovery gave up is left alone until a person deletes it."""
    if state.claim is None or not state.claim.given_up_by:
        return None
    return PeerPlan.hold(
        reason="NameConflict",
        message=f"PersistentVolumeClaim {state.name} was given up by a recovery: delete it to use its name",
        requeue_after=RETRY_HELD,
    )


def foreign(state: PeerState) -> PeerPlan | None:
    """No member starts on a claim of another etcd cluster, such as one that was created late for a seed.

    It would never be known as its claim: not when it is removed, nor when its EtcdPeer is made again.
    """
    if state.claim is None or state.claim.is_terminating or state.claim.token in ("", state.token):
        return None
    return PeerPlan.hold(
        reason="NameConflict",
        message=f"PersistentVolumeClaim {state.name} is of another etcd cluster (token {state.claim.token}): "
        "delete it if its data is not needed",
        requeue_after=RETRY_HELD,
    )


def claim_lost(state: PeerState) -> PeerPlan | None:
    """An initial member's claim is missing although others may have served: no empty one takes its place."""
    if not state.lacks_claim or not any(other.may_have_served for other in state.others):
        return None
    return PeerPlan.hold(
        Act.FIND_CLAIM,
        reason="ClaimLost",
        message=f"PersistentVolumeClaim {state.name} was lost while the cluster was bootstrapped",
        requeue_after=RETRY_HELD,
        finding=PeerFinding.CLAIM_LOST,
    )


def make_claim(state: PeerState) -> PeerPlan | None:
    """Make the missing claim. Only a member of a cluster that serves is started in the same pass."""
    if not state.lacks_claim:
        return None
    if state.is_initial:
        return PeerPlan.make(Act.CREATE_CLAIM, requeue_after=INITIAL_MEMBERS_RECHECK)
    return PeerPlan.make(Act.CREATE_CLAIM, Act.CREATE_REPLICA_SET)


def await_claims(state: PeerState) -> PeerPlan | None:
    """An initial member starts when the claims of all of them exist.

    That happens once: where one of them has started, the others go on with what is left.
    """
    claims = (state.claim, *(other.claim for other in state.others))
    if None not in claims or any(is_started(claim) for claim in claims):
        return None
    return PeerPlan.make(requeue_after=INITIAL_MEMBERS_RECHECK)


def await_volume(state: PeerState) -> PeerPlan | None:
    """Wait for a moment for the volume.

    The scheduler sets a pod aside whose claim is not bound yet, for a second or more.
    """
    left = BINDING_GRACE - state.waited_for(Awaited.VOLUME)
    if state.claim is None or state.claim.is_bound or left <= 0:
        return None
    return PeerPlan.make(requeue_after=left, awaits=Awaited.VOLUME)


def start(state: PeerState) -> PeerPlan | None:
    """Make the ReplicaSet, after an initial member's claim is annotated."""
    actions: list[PeerAction] = [Act.CREATE_REPLICA_SET]
    if state.is_initial and state.claim is not None and not is_started(state.claim):
        actions.insert(0, AnnotateStarted(uid=state.claim.uid))
    return PeerPlan.make(*actions)


RULES: tuple[PeerRule, ...] = (
    clean_up,
    refuse,
    keep,
    given_up,
    foreign,
    claim_lost,
    make_claim,
    await_claims,
    await_volume,
    start,
)


def plan(state: PeerState) -> PeerPlan:
    """What to do for a peer: total, deterministic, without side effects."""
    return next((found for rule in RULES if (found := rule(state))), PeerPlan())
