"""The members that an upgrade starts again.

The upgrading member is waited for until it serves, started again, or reported as blocked. Which one it is, is
found once per pass (`ClusterState.upgrading_member`). Blocked members are others that do not run, and may at
the desired version.
"""

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import (
    is_earlier,
    lacks_snapshot,
    minor,
    skew_refusal,
)
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import (
    Step,
    planned,
    waiting_for,
    would_lose_data,
)

BLOCKED_RECHECK = 1.0
"""Seconds between observations of a member that does not come up; its pod's own events come first."""

LATE = 120.0
"""Seconds after which a member that does not serve is reported, although nothing shows what keeps it away."""

PULL_FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
"""Reasons for which a container waits that has no image: nothing but another version helps."""

PATIENCE = 30.0
"""Seconds without a quorum after which an upgrading member that runs is not what keeps the quorum away."""


def await_upgrading(state: ClusterState, upgrade: Upgrade, member: Member) -> Step | None:
    """Wait for the upgrading member to serve, or start it again if another version is desired by now.

    None: what is wrong is for other rules to report.
    """
    requested, wanted = member.requested_version, state.desired.version
    if has_unusable_data(state, member):
        return None
    is_outdated = requested not in ("", wanted) and not member.has_terminating_peer
    if is_outdated and _may_be_stopped(state, member) and not lacks_snapshot(state.desired, requested):
        return restart(state, member)
    if _is_late_in_vain(state, member):
        return None
    if member.problem is not None and not _is_going(member):
        return Step(
            reason="UpgradeBlocked",
            message=f"{member.name} does not come up at {requested or wanted}: {member.problem.reason}: "
            f"{member.problem.message}; the other members are not touched; "
            f"{_way_out(state, upgrade, member)}",
            is_held=True,
            pause=BLOCKED_RECHECK,
        )
    if member.is_running and state.unavailable_for > PATIENCE:
        return None  # the quorum lacks other members
    if state.awaited_for > LATE:
        return _late(state, upgrade, member)
    return Step(message=waiting_for(member.name, wanted))


def _is_late_in_vain(state: ClusterState, member: Member) -> bool:
    """Whether others are missing from the quorum, too, and no other version may bring this member back.

    How to recover the quorum is reported then.
    """
    is_late = state.awaited_for > LATE and state.unavailable_for > PATIENCE
    silent = any(other.answer is None for other in state.members if other is not member)
    return is_late and silent and not _needs_another_version(member)


def _needs_another_version(member: Member) -> bool:
    """Whether it has no image, or its process has ended: that may be because of its version."""
    has_no_image = member.problem is not None and member.problem.reason in PULL_FAILURES
    return has_no_image or (member.pod is not None and member.pod.has_restarted)


def _late(state: ClusterState, upgrade: Upgrade, member: Member) -> Step:
    """Report a member that is waited for in vain: what is observed of it, and where a person finds more."""
    version = member.requested_version or state.desired.version
    way_out = f"; {_way_out(state, upgrade, member)}" if not _is_going(member) else ""
    return Step(
        reason="UpgradeBlocked",
        message=f"{member.name} has not served at {version} for more than {LATE / 60:.0f} minutes: "
        f"{_found(member, version)}; the other members are not touched{way_out}",
        is_held=True,
        pause=BLOCKED_RECHECK,
    )


def _is_going(member: Member) -> bool:
    return member.has_terminating_peer or (member.pod is not None and member.pod.is_terminating)


def _found(member: Member, version: str) -> str:
    """What is known of a member that does not serve, as a sentence for people."""
    if _is_going(member):
        return (
            "its former pod has not ended, for example because its node does not report to Kubernetes, or "
            "because of a finalizer: see `kubectl get pods -o wide`; the member starts when that pod is gone"
        )
    if member.pod is None:
        return "it has no pod: see the Events of its EtcdPeer and its ReplicaSet"
    if not member.is_running:
        return "its container does not start: see the Events of its pod"
    if member.answer is None:
        return "it runs, but does not answer: see its log"
    if member.answer.version != version:
        return (
            f"it runs {member.answer.version}: its container was not started again, or an admission policy "
            "or webhook has changed the image"
        )
    return "it follows no leader, or reports an error: see its log"


def _way_out(state: ClusterState, upgrade: Upgrade, member: Member) -> str:
    """What a person can do. A member that went back in vain has data that only the newer version reads."""
    requested = member.requested_version or state.desired.version
    if upgrade.restart and requested == state.desired.version:
        return _way_out_of_restart(state, member)
    if lacks_snapshot(state.desired, requested):
        wanted, series = state.desired.version, requested.rpartition(".")[0]
        return (
            f"{wanted} cannot read what 3.5 wrote: first set spec.version to a version of {series} that "
            "starts"
        )
    if requested == upgrade.origin:
        return f"a version other than {requested} in the spec is tried on this member at once"
    return f"to take this member back to {upgrade.origin}, set that version in the spec"


def _way_out_of_restart(state: ClusterState, member: Member) -> str:
    """The same of a member that only starts again: another version would not help.

    Kubernetes waits longer before each restart in the same pod. A pod that is deleted does not have to wait,
    but takes the data of an ephemeral member along, of which the others must have a copy.
    """
    until = member.problem.until if member.problem is not None else ""
    waits = f"Kubernetes starts its container again at {until}; if it does not serve then" if until else ""
    advice = f"{waits or 'if that lasts'}, see the log and the Events of its pod"
    is_lost = state.kind.restarts_in_place
    if member.pod is None or (is_lost and not state.has_quorum):
        return advice
    return f"{advice}, and delete the pod: the member {'is replaced' if is_lost else 'keeps its data'}"


def _may_be_stopped(state: ClusterState, member: Member) -> bool:
    """Whether the others are a quorum without the upgrading member, or it does not serve anyhow.

    One that runs and does not answer may be part of the quorum that answers, or of one that does not answer
    either: where all are silent that run, the operator itself may be cut off.
    """
    if would_lose_data(state, member):
        return False
    others = [voter for voter in state.healthy_voters if voter is not member]
    if member.is_healthy or (state.has_quorum and member.is_running):
        return len(others) >= quorum(len(state.voters))
    rest = [other for other in state.members if other is not member and other.is_running]
    return not member.is_running or not rest or bool(state.answers)


def restart(state: ClusterState, member: Member) -> Step:
    """Start a member at the version that is desired by now; another upgrading member remains on record."""
    wanted = state.desired.version
    return Step(
        action=ReplaceMember(name=member.name, version=wanted),
        member=state.upgrading_member or member,
        message=f"{member.name} does not serve at {member.requested_version}: starting it at {wanted}",
    )


def has_unusable_data(state: ClusterState, member: Member) -> bool:
    """Whether a member's data is missing or of no use, whatever version is desired."""
    if state.kind.storage_of(member) is None:
        return True
    return member.pod is not None and (member.pod.has_no_data or member.pod.can_never_join)


def may_fail_by_version(state: ClusterState, member: Member) -> bool:
    """Whether a member that reports its data as broken may do so only because of its new version."""
    upgrade = state.persisted.upgrade
    if upgrade is None or upgrade.member != member.name:
        return False
    return member.requested_version != upgrade.origin


def is_blocked(state: ClusterState, member: Member) -> bool:
    """Whether it is one of the blocked members."""
    return member.name in blocked(state)


@fact
def blocked(state: ClusterState) -> frozenset[str]:
    """The members that do not run at a version that is no longer desired, and may run at the one that is."""
    return frozenset(member.name for member in state.members if _is_blocked(state, member))


def _is_blocked(state: ClusterState, member: Member) -> bool:
    """Whether the desired version may bring back a member that does not run.

    One that this upgrade has restarted may. Any other one only where `_may_be_kept_down` by its version.
    A learner joins at the version that the others run, whose image may be missing by now. It may run any.
    """
    if not _fails_to_start(state, member) or would_lose_data(state, member):
        return False
    requested = member.requested_version
    if lacks_snapshot(state.desired, requested):
        return False
    if member.entry is not None and member.entry.is_learner:
        return state.has_quorum  # without, it does not start at any version
    upgrade = state.persisted.upgrade
    if upgrade is not None and requested != upgrade.origin:
        return True
    return _may_be_kept_down(state, member)


def _may_be_kept_down(state: ClusterState, member: Member) -> bool:
    """Whether another version may help a member that no upgrade on record has restarted.

    Its image is missing, or its process crashes, and no minor version further: what keeps it down may be
    something else, and its log may be one that the new version cannot read. Back only to the minor version
    that runs: the resource may have been created again in the middle of an upgrade, which nobody knows of.
    Back to an earlier patch not before it is known what runs: the other members would follow.
    """
    if not _needs_another_version(member):
        return False
    running, requested, wanted = state.lowest_version, member.requested_version, state.desired.version
    if minor(requested) == minor(wanted):
        return running is not None or not is_earlier(wanted, requested) or not _others_may_start(state)
    return running is not None and running.minor == minor(wanted) < minor(requested)


def _others_may_start(state: ClusterState) -> bool:
    """Whether nothing keeps a quorum of members down: what they run decides which versions are refused."""
    able = [member for member in state.members if member.problem is None]
    return len(able) >= quorum(len(state.members))


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
