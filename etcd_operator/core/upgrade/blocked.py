"""Members that do not come up: tried at what is asked for by now, waited for, or told."""

from etcd_operator.api.persisted import Upgrade
from etcd_operator.core.actions import Plan, ReplaceMember
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.member import STEP, is_going, remember, upgrading_member, waiting_for
from etcd_operator.core.upgrade.preflight import would_lose_data
from etcd_operator.core.upgrade.skew import has_old_entries, minor, needs_snapshots, skew_refusal

BLOCKED_RECHECK = 1.0
"""Seconds between looks at a member that does not come up; its pod's own events come first."""

PATIENCE = 30.0
"""Seconds without a quorum after which a member in hand that runs is not what keeps it away."""


def is_blocked(state: ClusterState, member: Member) -> bool:
    """Whether it does not run at a version that is no longer asked for, and may run at the one that is.

    One that this upgrade has touched may. Any other one only if its process crashes, and by a patch only:
    what keeps it down may be something else, and its log may be one that the new version cannot read.
    A learner joins at the version that the others run, which may not be had any more. It may run any.
    """
    asked, wanted = member.requested_version, state.desired.version
    if asked in ("", wanted) or is_going(member) or (state.voters and member.entry is None):
        return False
    if would_lose_data(state, member):
        return False
    if member.pod is None or _is_beyond_help(state, member) or member.problem is None:
        return False
    if member.pod.is_running or member.pod.is_terminating:
        return False
    upgrade = state.persisted.upgrade
    was_touched = upgrade is not None and asked != upgrade.origin
    if needs_snapshots(state.desired) and has_old_entries(asked):
        return False
    is_learner = member.entry is not None and member.entry.is_learner
    if is_learner and not state.has_quorum:
        return False  # whatever it runs, it starts only with the others
    return was_touched or is_learner or (member.pod.has_restarted and minor(asked) == minor(wanted))


def start_again(state: ClusterState, member: Member) -> Plan | None:
    """Try a member that does not run at the version that is asked for by now, if that can help it."""
    if skew_refusal(state) or not is_blocked(state, member):
        return None
    return try_again(state, upgrading_member(state), member)


def try_again(state: ClusterState, upgrading: Member | None, blocked: Member) -> Plan:
    """Start a member at the version that is asked for by now; one that is in hand stays so."""
    wanted = state.desired.version
    return Plan.act(
        *remember(state, upgrading or blocked),
        ReplaceMember(name=blocked.name, version=wanted),
        reason="Upgrading",
        message=f"{blocked.name} does not run at {blocked.requested_version}: starting it at {wanted}",
        requeue_after=STEP,
    )


def await_upgrading(state: ClusterState, upgrade: Upgrade, upgrading: Member) -> Plan | None:
    """The member in hand is away: let it come, or start it again if something else is asked by now."""
    asked, wanted = upgrading.requested_version, state.desired.version
    if _is_beyond_help(state, upgrading):
        return None  # that is for other rules to say
    if asked and asked != wanted and not is_going(upgrading) and _may_leave(state, upgrading):
        return Plan.act(
            *remember(state, upgrading),
            ReplaceMember(name=upgrading.name, version=wanted),
            reason="Upgrading",
            message=f"{upgrading.name} did not come up at {asked}: starting it at {wanted}",
            requeue_after=STEP,
        )
    if upgrading.problem is not None:
        return Plan.hold(
            "UpgradeBlocked",
            f"{upgrading.name} does not come up at {asked or wanted}: {upgrading.problem.reason}: "
            f"{upgrading.problem.message}; the other members are not touched; {_way_out(upgrade, asked)}",
            requeue_after=BLOCKED_RECHECK,
        )
    if _runs(upgrading) and state.unavailable_for > PATIENCE:
        return None  # others are missing: that, too
    return Plan.wait("Upgrading", waiting_for(upgrading.name, wanted), requeue_after=STEP)


def _way_out(upgrade: Upgrade, asked: str) -> str:
    """What a person can do. A member that went back in vain has data that only the newer version reads."""
    if asked == upgrade.origin:
        return f"another version in the spec than {asked} is tried on this one at once"
    return f"{upgrade.origin} in the spec takes this one back"


def _is_beyond_help(state: ClusterState, member: Member) -> bool:
    """Whether its data is gone or of no use, whatever version is asked for."""
    if state.kind.storage_of(member) is None:
        return True
    return member.pod is not None and (member.pod.has_no_data or member.pod.can_never_join)


def _may_leave(state: ClusterState, member: Member) -> bool:
    """Whether the others are a quorum without it, or it does not serve anyhow.

    One that runs and is not heard may be part of the quorum that answers, or of one that is not heard
    either: where all are silent that run, it may be the operator who is cut off.
    """
    if would_lose_data(state, member):
        return False
    others = [voter for voter in state.healthy_voters if voter is not member]
    if member.is_healthy or (state.has_quorum and _runs(member)):
        return len(others) >= quorum(len(state.voters))
    rest = [other for other in state.members if other is not member and _runs(other)]
    return not _runs(member) or not rest or bool(state.answers)


def _runs(member: Member) -> bool:
    return member.pod is not None and member.pod.is_running
