"""An entry in etcd's log, without which a member may refuse requests for ever (decision 036).

What a raft snapshot contains a member counts as not applied, until it applies an entry after it. While these
are more than 5,000 entries, it refuses all that goes through the log: the request to publish its name,
without which it never serves clients, and writes of clients if it serves. Where nobody writes through another
member, no entry comes. An entry that changes nothing is enough.
"""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import AppendEntry, Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

MOST_UNAPPLIED = 5000
"""Entries: with more of them that it has not applied, etcd refuses requests (3.5 to 3.7)."""

LOST_AFTER = 8.0
"""Seconds of silence after which a request to publish must have been lost: etcd gives each one 7 s."""

RARELY_AFTER = 600.0
"""Seconds of silence after which something else is likely to keep a member away."""

RARE = 60.0
"""Seconds between two entries from then on, if the plan is made every few seconds."""

PAUSE = 1.0
"""Seconds between two entries until then, if nothing changes meanwhile."""


def with_entry(state: ClusterState, made: Plan) -> Plan:
    """The plan; where it does nothing, and a member may wait for an entry, it appends one."""
    if made.actions or not _is_needed(state):
        return made
    return replace(made, actions=(AppendEntry(),), requeue_after=max(made.requeue_after or 0.0, PAUSE))


def _is_needed(state: ClusterState) -> bool:
    """Whether a member may wait for an entry, and there is one that can append it."""
    can_append = state.persisted.is_bootstrapped and state.has_quorum and bool(state.all_healthy_voters)
    listed = [member for member in state.members if member.entry is not None]
    return can_append and any(_may_not_publish(member) or _is_behind(state, member) for member in listed)


def _may_not_publish(member: Member) -> bool:
    if not member.is_running or member.silent_for < LOST_AFTER:
        return False
    return member.silent_for < RARELY_AFTER or member.silent_for % RARE < 2 * PAUSE


def _is_behind(state: ClusterState, member: Member) -> bool:
    return member.answer is not None and state.committed - member.answer.applied > MOST_UNAPPLIED
