"""What must be well before a member may be stopped on purpose."""

from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState

LAG = 1000
"""Entries of the log that a member may be behind the others and still count as in step.

At a hundred writes a second two members asked a few ms apart differ by one; a thousand are
replayed in well under a second, and the leader keeps five times as many at hand.
"""


def unhealthy(state: ClusterState) -> str:
    """What is not as it must be before a member may be away; empty if all is well."""
    listed = {entry.id for entry in state.etcd_members}
    for member in state.members:
        answer = member.answer
        if member.entry is None:
            continue
        if answer is not None and answer.errors:
            return f"{member.name}, which reports {', '.join(answer.errors)}"
        if answer is None or not member.is_healthy:
            return f"{member.name} ({member.health.value})"
        if member.entry.is_learner:
            return f"{member.name}, which does not vote yet"
        if member.pod is not None and member.pod.is_terminating:
            return f"{member.name}, whose pod is being deleted"
        if state.lag(member) > LAG:
            return f"{member.name}, which has not caught up"
        if {entry.id for entry in answer.members} != listed or answer.member_id != member.entry.id:
            return f"{member.name}, which knows other members than the rest"
    return "" if state.leader is not None else "a leader"


def losing_data(state: ClusterState) -> str:
    """A member that cannot be stopped without a loss, and why; empty if there is none."""
    name = next((voter.name for voter in state.voters if would_lose_data(state, voter)), "")
    return f"{name}, whose claim is being deleted: only more members can save its data" if name else ""


def would_lose_data(state: ClusterState, member: Member) -> bool:
    """Whether its data goes when its pod does, and the others need it.

    A claim that is being deleted stays for as long as a pod uses it. Where the others go on without it, it
    may be stopped like any other, and is found to be lost then.
    """
    is_going = member.claim is not None and member.claim.is_terminating
    return is_going and len(state.voters) - 1 < state.quorum
