"""What is written on members' pods: whether the member serves, its start, and whether clients reach it.

The first is the condition of a readiness gate, so that the disruption budget counts members as
etcd sees them: started, voting, healthy. A silence is judged as in status: the prober has asked
twice. The second replaces the flags that the member was bootstrapped with, so that a new process
in the same pod can never bootstrap again (docs/architecture.md, "Bootstrap").
"""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.facts.departing import departing
from etcd_operator.controllers.etcd_cluster.decide.members import Health, Member, PodFacts
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessUpdate:
    """What is to be written on one member's pod."""

    name: str
    pod: PodFacts
    serves: bool  # the condition of the readiness gate
    sets_existing_only: bool  # from now on the member refuses to start without its data
    reason: str  # of the condition
    message: str  # of the condition


def readiness_updates(state: ClusterState) -> tuple[ReadinessUpdate, ...]:
    """The pods that need a change; none where that cannot be judged, as where no member is asked.

    In a split brain it is only known that members of the conflicting cluster do not serve.
    """
    if not state.persisted.is_bootstrapped or state.conflict or not is_asked(state):
        return ()
    is_split = bool(state.cluster_ids - {state.persisted.cluster_id})
    judged = state.foreign if is_split else state.members
    found = (_update(state, member, member.pod) for member in judged if member.pod is not None)
    return tuple(update for update in found if update is not None)


def is_asked(state: ClusterState) -> bool:
    """Whether members are asked: if not, their silence shows nothing."""
    return state.unseen is None or state.unseen.is_asked


def _update(state: ClusterState, member: Member, pod: PodFacts) -> ReadinessUpdate | None:
    if not pod.is_gated or pod.is_terminating or pod.is_finished:
        return None
    reason, message = _verdict(state, member)
    serves = reason == SERVES
    sets_existing_only = _may_be_existing_only(state, member) and not pod.is_existing_only
    if pod.serves is serves and not sets_existing_only:
        return None
    if pod.serves is None and not serves and not sets_existing_only:
        return None  # a condition that is not there counts as false
    return ReadinessUpdate(
        name=member.name,
        pod=pod,
        serves=serves,
        sets_existing_only=sets_existing_only,
        reason=reason,
        message=message,
    )


def routes(state: ClusterState) -> tuple[tuple[PodFacts, bool], ...]:
    """The pods whose labels need a change, each with whether clients may reach it from then on.

    None in a cluster that is deleted or not ours. The Service selects by labels of the pods. Clients do not
    reach a learner, which refuses most requests, nor a member that is to be stopped (`facts.departing`). A
    pod without the label gets it when its member serves. A member that answers for another etcd cluster than
    the one on record would give clients another cluster's data under this one's name: its pod loses the
    label, and gets it back when it answers for the right cluster again. Nothing else of such a member is
    touched: a person has to decide which data to keep (`rules.guard.split`). Where a quorum answers, a silent
    member whose node is lost loses the label, too: the Service has members that are not ready as well, and
    connections to a dead node are not refused, but wait.

    Only where a member of the cluster on record answers: otherwise the recorded ID may be wrong, and a
    Service without members serves nobody. Where the members answer only users, or the cluster is paused, none
    is kept from clients; but pods are created again there, too, and get them.
    """
    desired, persisted = state.desired, state.persisted
    answers_users = state.requires_user and persisted.is_bootstrapped and not persisted.is_recovering
    if not (state.answers_as_recorded or answers_users) or state.conflict or desired.is_deleting:
        return ()
    may_close = state.answers_as_recorded and not desired.is_paused
    wanted = ((member.pod, _may_be_reached(state, member)) for member in state.members)
    return tuple(
        (pod, is_open)
        for pod, is_open in wanted
        if pod is not None and not pod.is_terminating and is_open is not None and pod.is_routed is not is_open
        if is_open or may_close
    )


def _may_be_reached(state: ClusterState, member: Member) -> bool | None:
    """Whether clients may reach it; None: nothing changes, as where no quorum answers."""
    if member is departing(state):
        return False
    if member is state.upgrading_member:
        return None  # it serves for a moment before it stops
    reason, _ = _verdict(state, member)
    if state.has_quorum and _is_out_of_reach(member):
        return False
    if reason == LEARNER and state.desired.has_one_service:
        return None  # its peers find it by the Service for clients
    return {SERVES: True, LEARNER: False, OTHER_CLUSTER: False}.get(reason)


def _is_out_of_reach(member: Member) -> bool:
    return member.health is Health.NO_ANSWER and member.pod is not None and member.pod.is_on_lost_node


LEARNER = "Learner"
OTHER_CLUSTER = "OtherCluster"
SERVES = "MemberServes"


def _verdict(state: ClusterState, member: Member) -> tuple[str, str]:
    if member in state.foreign:
        return OTHER_CLUSTER, "it answers for a cluster other than the one on record"
    if not state.has_quorum:
        return "QuorumLost", "no quorum answers"
    if member.refusal is not None:
        return _verdict_on_refusal(member)
    if member.entry is None and state.requires_user:
        return "NoAnswer", "no member reports the list of members, and this member is silent"
    if member.entry is None:
        return "NotAMember", "etcd does not list it"
    if member.entry.is_learner:
        return LEARNER, "it does not vote yet"
    if not member.is_healthy:
        return "MemberUnhealthy", member.health.value
    return SERVES, "a healthy voter"


def _verdict_on_refusal(member: Member) -> tuple[str, str]:
    if member.is_serving:
        return SERVES, "a voter that requires authentication"
    return "AuthEnabled", "it requires authentication"


def _may_be_existing_only(state: ClusterState, member: Member) -> bool:
    """A voter that answers has its data and no longer needs its first flags. A pause stops all acts."""
    votes = member.entry is not None and not member.entry.is_learner and member not in state.foreign
    return votes and member.answer is not None and not state.desired.is_paused
