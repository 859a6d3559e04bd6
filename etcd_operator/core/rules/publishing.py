"""An entry in etcd's log, without which a member that runs may never serve (decision 036).

A member publishes its name through the log before it serves clients. What a raft snapshot contains it counts
as not applied until it applies an entry after it. So where its first request is lost, and the snapshot
contains more than 5,000 entries, it refuses its own further requests, and waits for the next entry. In a
cluster to which no client writes, none comes.
"""

import functools
from collections.abc import Callable
from dataclasses import replace

from etcd_operator.core.actions import Action, PadLog, Plan
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState

LOST_AFTER = 8.0
"""Seconds of silence after which a request to publish must have been lost: etcd gives each one 7 s."""

GIVEN_UP_AFTER = 600.0
"""Seconds of silence after which something else keeps a member away: no more entries are appended."""

PAUSE = 1.0
"""Seconds between two entries, if nothing changes meanwhile."""


def beside(rule: Callable[[ClusterState], Plan | None]) -> Callable[[ClusterState], Plan | None]:
    """The rule, whose plans append an entry where they only wait and a member may need one."""

    @functools.wraps(rule)
    def with_entry(state: ClusterState) -> Plan | None:
        made = rule(state)
        if made is None or made.actions or not _is_needed(state):
            return made
        entry: tuple[Action, ...] = (PadLog(entries=1),)
        return replace(made, actions=entry, requeue_after=max(made.requeue_after or 0.0, PAUSE))

    return with_entry


def _is_needed(state: ClusterState) -> bool:
    """Whether a member may wait for an entry, and there is one that can append it."""
    can_append = state.persisted.is_bootstrapped and state.has_quorum and bool(state.all_healthy_voters)
    return can_append and any(_may_wait(member) for member in state.members)


def _may_wait(member: Member) -> bool:
    return member.entry is not None and member.is_running and LOST_AFTER <= member.silent_for < GIVEN_UP_AFTER
