"""When members are given up without a person: `spec.recovery: Automatic` (docs/decisions/032).

Time proves nothing: the user accepts what it can lose. So it is the time of one process that has seen, in
each of its passes, the same members silent, the others without a leader, and the API server. Nothing may
shorten that time: it is counted by the monotonic clock of one process, and another one counts from zero. It
begins again, too, whenever this process was not the leader, could not read the EtcdCluster or all that
belongs to it, or made no pass for long; and whenever a learner shows that a quorum which the operator does
not reach has written something.

Which survivor is recovered, and every proof after that, is as for a person's request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import NO_ABSENCE, Absence
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import (
    Left,
    corrupt_ids,
    is_majority,
    learners_of,
    names_answering,
    others_among,
    responders,
    voters_of,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import is_blocked
from etcd_operator.formats import duration_text

LONGEST_GAP = 60.0
"""Seconds between two passes; a pass that fails is repeated after 30 at most."""

LEAST_GAP = 8.0
"""Seconds that a pass of a busy operator, with a slow API server, may come later than the one before."""

STABLE_AFTER = 3600.0
"""Seconds for which a cluster has to serve after a recovery without a person, before there may be another."""


@fact
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
    if state.requires_user or corrupt_ids(state):
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


def without_silent(left: Left) -> Left | None:
    """What is left without the members that do not answer; None where they may not be given up."""
    if not is_due(left.state):
        return None
    answering = {name: member for name, member in left.remaining.items() if member.report is not None}
    silent = tuple(name for name in left.remaining if name not in answering and name in left.all_voters)
    given = replace(left, remaining=answering, silent=silent)
    return given if given.able else None


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
            "; no recovery begins by itself, because an earlier recovery did, and this operator has not seen "
            f"the cluster serve for {duration_text(int(STABLE_AFTER))} without a break since then"
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
    return recovery is not None and recovery.is_unstable and recovery.replaces_cluster


def is_stabilizing(state: ClusterState) -> bool:
    """Whether the cluster serves after a recovery without a person, and that is not on record yet."""
    return state.has_quorum and not state.persisted.is_recovering and is_recent(state.persisted.recovery)


# What a process remembers from pass to pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a pass is made."""

    epoch: int  # another one once leadership was lost: what was remembered in an earlier one does not count
    monotonic: float
    time: str  # for people (RFC 3339)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Since when members have been missed without interruption."""

    last: Moment  # the last pass
    committed: int  # the highest index that `committed_by_others` has found
    since: Mapping[str, Moment]  # when each member was first missed, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Since when a quorum has answered after an automatic recovery."""

    token: str  # the token of that recovery
    since: Moment


def count_missed(
    memory: Missing | None, state: ClusterState, now: Moment, *, may_count: bool
) -> tuple[Missing | None, Absence]:
    """For how long those have been missed that are missed now.

    may_count: this process leads, and can read the EtcdCluster and all that belongs to it.
    """
    names = missed(state)
    if not names or not may_count:
        return None, NO_ABSENCE
    committed, known = committed_by_others(state), dict[str, Moment]()
    if memory is not None:
        # Half of a short time: two moments of silence are not that much silence.
        longest = min(LONGEST_GAP, max(LEAST_GAP, (state.desired.recovers_after or 0.0) / 2))
        is_same = memory.last.epoch == now.epoch and now.monotonic - memory.last.monotonic <= longest
        if is_same and committed <= memory.committed:
            known = dict(memory.since)
        committed = max(committed, memory.committed)
    since = {name: known.get(name, now) for name in names}
    latest = max(since.values(), key=lambda moment: moment.monotonic)
    absence = Absence(seconds=now.monotonic - latest.monotonic, since=latest.time)
    return Missing(last=now, committed=committed, since=since), absence


def count_served(memory: Serving | None, state: ClusterState, now: Moment) -> tuple[Serving | None, float]:
    """Seconds for which a quorum has answered since an automatic recovery; 0 after any other."""
    recovery = state.persisted.recovery
    if recovery is None or not is_stabilizing(state):
        return None, 0.0
    if memory is None or (memory.token, memory.since.epoch) != (recovery.token, now.epoch):
        memory = Serving(token=recovery.token, since=now)
    return memory, now.monotonic - memory.since.monotonic
