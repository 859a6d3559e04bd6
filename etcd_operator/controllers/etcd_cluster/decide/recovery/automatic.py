"""When members are given up without a person: `spec.recovery: Automatic` (docs/decisions/032).

Time proves nothing: the user accepts what it can lose. So it is the time of one process that has seen, in
each of its passes, the same members silent, the others without a leader, and the API server
(`recovery.absences`). Which survivor is recovered, and every proof after that, is as for a person's request.
"""

from etcd_operator.api.persisted import Recovery
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import names_answering
from etcd_operator.controllers.etcd_cluster.decide.recovery.responders import (
    is_majority,
    others_among,
    responders,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import learners_of, voters_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import is_blocked
from etcd_operator.formats import duration_text

STABLE_AFTER = 3600.0
"""Seconds for which a cluster has to serve after a recovery without a person, before there may be another."""


def missed(state: ClusterState) -> frozenset[str]:
    """The voters whose silence counts; none while a quorum answers or may come about, or a person decides.

    While no member answers, the operator cannot distinguish a loss from a failure of its own network. Nor
    where one that is silent followed a leader since: a quorum may serve clients that reach it.
    """
    left = responders(state)
    led = any(member.answer is not None and member.answer.leader for member in left)
    if state.desired.recovers_after is None or state.has_quorum or led or _is_held(state):
        return frozenset()
    if any(is_majority(state, responder) for responder in left) or others_among(state, left):
        return frozenset()
    voters = {name for responder in left for name in voters_of(state, responder)}
    voters |= {member.name for member in state.members if left and member.has_voted}
    learners = {name for responder in left for name in learners_of(state, responder)}
    if (voters | learners).intersection(_followers(state)):
        return frozenset()
    return frozenset(voters - names_answering(state))


def committed_by_others(state: ClusterState) -> int:
    """The highest raft index that learners which answer know to be committed; 0 without any.

    Only a leader that a quorum follows raises it. The leader that a learner reports proves nothing: it never
    campaigns, so etcd reports the last one for ever.
    """
    answers = (member.answer for member in state.answers)
    found = [a for a in answers if a is not None and a.is_learner]
    return max((a.committed for a in found if a.cluster_id == state.persisted.cluster_id), default=0)


def _followers(state: ClusterState) -> tuple[str, ...]:
    """Those that followed a leader since the quorum was lost, as far as the operator knows it."""
    return tuple(member.name for member in state.members if member.followed_a_leader)


def _is_held(state: ClusterState) -> bool:
    """Whether something else has been begun, or forbids to begin anything."""
    desired, persisted = state.desired, state.persisted
    if desired.is_paused or desired.is_deleting or not persisted.is_bootstrapped:
        return True
    if state.requires_user or state.corrupt:
        return True
    if persisted.is_recovering or persisted.is_adopting or persisted.upgrade is not None:
        return True
    return any(is_blocked(state, member) for member in state.members)


def is_due(state: ClusterState) -> bool:
    """Whether those that do not answer may be given up now."""
    after = state.desired.recovers_after
    if after is None or not state.absence.since or is_recent(state.persisted.recovery):
        return False
    return state.absence.seconds >= after


def without_request(state: ClusterState) -> str:
    """What happens to those that do not answer, for messages; their names come before it."""
    seconds = duration_text(int(state.absence.seconds))
    return f"given up without a request, after {seconds} (spec.recovery: Automatic)"


def when_due(state: ClusterState) -> str:
    """When it happens by itself, or why not, as the end of a message; empty for `Manual`."""
    after = state.desired.recovers_after
    if after is None:
        return ""
    if is_recent(state.persisted.recovery):
        return (
            "; no recovery begins by itself, because an earlier recovery did, and the cluster has not served "
            f"for {duration_text(int(STABLE_AFTER))} since then"
        )
    followers = ", ".join(_followers(state))
    if followers and not state.absence.since:
        return (
            f"; no recovery begins by itself, because {followers} followed a leader after the quorum was "
            "lost, and may serve clients without being reachable for the operator"
        )
    if not state.absence.since:
        return ""
    return (
        f"; a recovery begins by itself after {duration_text(int(after))} in which none of this changes, "
        f"counted since {state.absence.since} (spec.recovery: Automatic)"
    )


def is_recent(recovery: Recovery | None) -> bool:
    """Whether one began without a person, and the cluster has not served for long enough since.

    A proven recovery that followed it changes nothing of that.
    """
    if recovery is None or not recovery.replaces or recovery.stable:
        return False
    return recovery.automatic or recovery.follows_automatic


def is_stabilizing(state: ClusterState) -> bool:
    """Whether the cluster serves after a recovery without a person, and that is not on record yet."""
    return state.has_quorum and not state.persisted.is_recovering and is_recent(state.persisted.recovery)
