"""Which members of a persistent cluster without a quorum answer, and which are silent.

Their data is on volumes, so whoever is silent may come back with it (see `recovery.manual_recovery`).
"""

from etcd_operator.controllers.etcd_cluster.decide.member_names import is_member_name
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import ELECTION, voters_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def responders(state: ClusterState) -> list[Member]:
    """The voters of the old cluster whose list is known: a learner may have only a part of the data.

    They answer, or their data was read (see `recovery.offline`).
    """
    old = state.persisted.cluster_id
    return [
        m for m in state.members if m.report is not None and m.report.cluster_id == old and m.report.members
    ]


def may_elect(state: ClusterState, left: list[Member]) -> bool:
    """Whether those that answer may be electing a leader.

    Not after a while where one missed the last change of members and counts a majority that is none by the
    list of another (see `quorum_return`). With the same list for all they merely do not reach each other.
    """
    judged = [is_majority(state, responder) for responder in left]
    return any(judged) and (all(judged) or state.unavailable_for < ELECTION)


def is_majority(state: ClusterState, responder: Member, *, led: bool = False) -> bool:
    """Whether most of the voters that a responder lists are there, and (led) follow a leader."""
    voters = voters_of(state, responder)
    found = [state.by_name[name] for name in voters if name in state.by_name]
    there = [m for m in found if (_is_led(state, m) if led else m.report is not None)]
    return len(there) >= quorum(len(voters))


def _is_led(state: ClusterState, member: Member) -> bool:
    """Also one with errors, or that an alarm names: it is not healthy, but of a quorum."""
    answer = member.answer
    return answer is not None and bool(answer.leader) and answer.cluster_id == state.persisted.cluster_id


def is_led(state: ClusterState, left: list[Member]) -> bool:
    """Whether most of the voters that one of these members lists follow a leader: the old cluster serves."""
    return any(is_majority(state, responder, led=True) for responder in left)


def keeps_running(member: Member) -> bool:
    """Whether a member goes on running: its data can be fetched.

    Also one whose claim is being deleted: Kubernetes keeps the volume while a pod uses it.
    """
    if member.pod is None or member.pod.is_terminating:
        return False
    return member.peer is None or not member.peer.is_terminating


def silent_among(state: ClusterState, left: list[Member]) -> str:
    """The voters of which nothing is known, by the lists of the others, each with what is known of it."""
    names = {name for responder in left for name in voters_of(state, responder)}
    missing = [m for m in state.members if m.report is None and (m.name in names or not left)]
    found = [f"{member.name} ({_state_of(member)})" for member in missing]
    found += [f"{name} (not a member of this resource)" for name in others_among(state, left)]
    return ", ".join(found) or "all members"


def others_among(state: ClusterState, left: list[Member]) -> tuple[str, ...]:
    """The voters that they list and that are not of this resource, by name; of two of one name, one is not.

    They hold data, too. While a member answers, `guard.unknown_members` reports them before.
    """
    lists = [[name for name in voters_of(state, responder) if name] for responder in left]
    return tuple(
        sorted(
            {
                name
                for names in lists
                for name in names
                if names.count(name) > 1 or not is_member_name(name, state.desired.name)
            }
        )
    )


def _state_of(member: Member) -> str:
    if member.claim is None:
        return "its claim is missing"
    return member.problem.reason if member.problem is not None else "silent"
