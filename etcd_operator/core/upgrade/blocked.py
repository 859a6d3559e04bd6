"""Blocked members: other ones than the upgrading member that do not run, and may at the desired version."""

from etcd_operator.core.actions import Plan
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.member import has_unusable_data, restart
from etcd_operator.core.upgrade.preflight import would_lose_data
from etcd_operator.core.upgrade.skew import has_old_entries, minor, needs_snapshots, skew_refusal
from etcd_operator.core.upgrade.step import planned


def is_blocked(state: ClusterState, member: Member) -> bool:
    """Whether a member does not run at a version that is no longer desired, and may run at the one that is.

    One that this upgrade has restarted may. Any other one only if its process crashes, and by a patch only:
    what keeps it down may be something else, and its log may be one that the new version cannot read.
    A learner joins at the version that the others run, whose image may be missing by now. It may run any.
    """
    if not _fails_to_start(state, member) or would_lose_data(state, member):
        return False
    requested, wanted = member.requested_version, state.desired.version
    if needs_snapshots(state.desired) and has_old_entries(requested):
        return False
    if member.entry is not None and member.entry.is_learner:
        return state.has_quorum  # without, it does not start at any version
    upgrade = state.persisted.upgrade
    if upgrade is not None and requested != upgrade.origin:
        return True
    return member.pod is not None and member.pod.has_restarted and minor(requested) == minor(wanted)


def _fails_to_start(state: ClusterState, member: Member) -> bool:
    """Whether a pod with usable data does not run, at another version than the desired one."""
    is_outdated = member.requested_version not in ("", state.desired.version)
    if not is_outdated or member.has_terminating_peer or (state.voters and member.entry is None):
        return False
    if member.pod is None or member.pod.is_running or member.pod.is_terminating:
        return False
    return member.problem is not None and not has_unusable_data(state, member)


def start_again(state: ClusterState, member: Member) -> Plan | None:
    """The restart of a blocked member outside of the upgrade's own turn; None if it would not help."""
    if skew_refusal(state) or not is_blocked(state, member):
        return None
    return planned(state, restart(state, member))
