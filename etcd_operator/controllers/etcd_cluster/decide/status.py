"""What a pass reports to the user: conditions common to both API groups (for Events see `events`).

Available: whether clients are served. Progressing: whether a change is under way. Degraded: whether
something needs attention. The reason and message of a plan that holds become those of
Degraded, so that `kubectl describe` shows what the operator waits for.
"""

from collections.abc import Sequence

from etcd_operator.api.meta import Condition, condition
from etcd_operator.api.persisted import is_repeated
from etcd_operator.api.recoveries import is_recovery_token
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.corruption import data_corrupt
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import rotating
from etcd_operator.controllers.etcd_cluster.decide.facts.expiries import near_end
from etcd_operator.controllers.etcd_cluster.decide.first_start import CREATING, awaited, is_resuming
from etcd_operator.controllers.etcd_cluster.decide.members import PeerFinding
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import kept_survivor
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import ONLY_LOST, missing, origin, source_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import PEER_REFUSED
from etcd_operator.formats import timestamp
from etcd_operator.versions import is_agreed

CONDITIONS = frozenset(
    {
        *("Available", "Progressing", "Degraded", "DataLossPossible", "NetworkPolicyDiffers"),
        *("TLSRotating", "CertificateExpiring"),
    }
)
"""The types of conditions that `conditions` returns; others in a status belong to somebody else."""

QUIET_HOLDS = frozenset({"Paused", "Deleting", "TurnedBack"})
"""Holds that the user requested: nothing is wrong."""

OUT_OF_SPACE = (
    "OutOfSpace",
    (
        "etcd accepts no writes: its storage quota is used up (alarm NOSPACE); reads and deletions work: "
        "delete keys, compact, defragment each member, then run `etcdctl alarm disarm` (docs/operations.md)"
    ),
)
"""Reason and message for a full store."""


NAMED = 10
"""How many objects a message names: there may be hundreds, and each change would be a write."""


def named(objects: Sequence[str], separator: str = ", ") -> str:
    """The first ones as a list for a message, which shows whether there are more."""
    return separator.join(objects[:NAMED]) + (" and others" if len(objects) > NAMED else "")


def of_another_operator(names: Sequence[str], what: str = "") -> tuple[str, str]:
    """Reason and message for objects of this cluster's name that another operator created.

    what: stands before their names.
    """
    message = (
        f"{what}{named(names)} were not created by this operator: nothing is changed; "
        "docs/migrating.md describes how to take over the cluster of another operator"
    )
    return "OtherOperator", message


def auth_enabled(state: ClusterState) -> tuple[str, str]:
    """Reason and message for members that answer only users."""
    names = ", ".join(member.name for member in state.members if member.refusal is not None)
    message = (
        f"authentication is enabled in etcd, and the operator is not a user ({names} refused it): "
        "no member is added, removed, replaced or upgraded until `etcdctl auth disable` is run as root"
    )
    return "AuthEnabled", message


def conditions(state: ClusterState, plan: Plan) -> tuple[Condition, ...]:
    """The conditions, not yet stamped with times (see `api.meta.merge_conditions`).

    DataLossPossible is set only by a recovery, and kept for the life of the cluster: its users
    may have to know. NetworkPolicyDiffers is set only while the NetworkPolicy is not as the spec says.
    """
    degraded = _degraded(state, plan)
    verdicts = {
        "Available": _awaited(state, degraded) or available(state),
        "Progressing": (plan.stage is Stage.WORKING, plan.reason, plan.message),
        "Degraded": degraded,
    }
    loss = _loss(state)
    if loss is not None:
        verdicts["DataLossPossible"] = loss
    if state.tls.sides or state.tls.supplied:
        verdicts |= {"TLSRotating": rotating(state), "CertificateExpiring": _expiring(state)}
    if state.network_problem is not None:
        verdicts["NetworkPolicyDiffers"] = (True, *state.network_problem)
    return tuple(
        condition(kind, holds=holds, reason=reason, message=message, generation=state.desired.generation)
        for kind, (holds, reason, message) in verdicts.items()
    )


ConditionValue = tuple[bool | None, str, str]
"""Whether a condition holds, None where that is not known; reason and message."""


def available(state: ClusterState) -> ConditionValue:
    """Whether clients are served; reason and message.

    `QuorumLost` only after the cluster has served, or should have.
    """
    if state.persisted.is_restoring:
        return False, CREATING, "a backup is being restored: the cluster has not served yet"
    if state.persisted.is_recovering and not _serves_still(state):
        return False, "QuorumLost", "recovering: neither writes nor consistent reads are possible"
    if is_adopting(state) and not state.healthy_voters:
        return False, "Adopting", "no member of this resource serves yet, only those of the adopted cluster"
    if state.has_quorum:
        return True, "QuorumHealthy", "a quorum answers"
    if state.unseen is not None:
        return None, state.unseen.reason, f"whether a quorum answers is not known: {state.unseen.message}"
    if not state.persisted.is_bootstrapped:
        return False, CREATING, "the cluster has not served yet"
    if is_resuming(state):
        return False, CREATING, f"the cluster has not served yet: {awaited(state)}"
    return False, "QuorumLost", "no quorum answers: neither writes nor consistent reads are possible"


def _expiring(state: ClusterState) -> ConditionValue:
    """Whether a certificate should have been renewed some time ago."""
    near = near_end(state)
    if not near:
        return False, "AsExpected", "all certificates are renewed in time"
    ends = ", ".join(f"{each.kind} ({timestamp(each.end)})" for each in near)
    return True, "RenewalLate", f"due for renewal for some time, and not renewed: {ends}"


def _awaited(state: ClusterState, degraded: ConditionValue) -> ConditionValue | None:
    """Why a cluster that has never served cannot be created, if it waits for somebody to do something.

    `kubectl get etcd` shows the reason of Available only.
    """
    serves, reason, message = available(state)
    is_wrong, why, _ = degraded
    if not is_wrong or reason != CREATING or state.persisted.is_bootstrapped:
        return None
    return serves, why, message


def _serves_still(state: ClusterState) -> bool:
    """Whether clients reach the cluster that a restore in place will give up."""
    recovery = state.persisted.recovery
    if recovery is None or not recovery.is_in_place:
        return False
    return state.has_quorum and not state.backups.is_closed


def is_adopting(state: ClusterState) -> bool:
    """Whether members of another cluster serve, or are to serve, until those of this resource do."""
    is_next = state.desired.adopt is not None and not state.persisted.is_bootstrapped
    return is_next or state.persisted.is_adopting


def _loss(state: ClusterState) -> ConditionValue | None:
    recovery, bootstrap = state.persisted.recovery, state.persisted.bootstrap
    if recovery is None:
        return _first_loss(state)
    if recovery.is_at_creation:
        return None  # restored on request
    if not recovery.replaces_cluster or (_serves_still(state) and state.persisted.is_recovering):
        # Without effect, until now at least; but the cluster itself may be the result of an earlier one.
        if bootstrap is None or not is_recovery_token(state.desired.uid, bootstrap.token):
            return _first_loss(state)
        earlier = f"an earlier recovery recovered the cluster as {bootstrap.members[0]}"
        return True, "RecoveredFromSurvivor", f"{earlier}: {ONLY_LOST}"
    reason = "RecoveredFromSurvivor" if recovery.backup is None else "RecoveredFromBackup"
    if recovery.is_in_place:
        reason = "RestoredInPlace"
    restored = f"recovery {recovery.generation} restored the data of {source_of(recovery)}"
    return True, reason, f"{restored}: {missing(recovery)}{origin(recovery)}"


def _first_loss(state: ClusterState) -> ConditionValue | None:
    bootstrap = state.persisted.bootstrap
    if bootstrap is None or not is_repeated(bootstrap.token):
        return None
    return True, "BootstrapRepeated", f"all members failed before the cluster ID was recorded: {ONLY_LOST}"


def _degraded(state: ClusterState, plan: Plan) -> ConditionValue:
    if plan.stage is Stage.HELD and plan.reason not in QUIET_HOLDS:
        return True, plan.reason, plan.message
    if state.persisted.is_recovering and not state.persisted.is_restoring:
        return True, "Restoring" if _serves_still(state) else "Recovering", plan.message
    if state.corrupt:
        return True, *data_corrupt(state)
    upgrade = state.persisted.upgrade
    on_purpose = upgrade.member if upgrade is not None and not state.desired.is_paused else ""
    expected = [v for v in state.all_voters if v.name != on_purpose and v not in state.leaving]
    unhealthy = [v.name for v in expected if not v.is_healthy]
    if unhealthy and plan.reason != CREATING:
        return True, "MemberUnhealthy", f"unhealthy or not answering: {', '.join(unhealthy)}"
    if state.is_out_of_space:
        return True, *OUT_OF_SPACE
    for member in state.members:
        if member.problem is not None and member.problem.finding is PeerFinding.REFUSED:
            return True, PEER_REFUSED, f"{member.name}: {member.problem.message}"
    return False, "AsExpected", "nothing is known to be wrong"


def member_names(state: ClusterState) -> tuple[str, ...]:
    """The members there are; while a bootstrap is under way, those that it creates."""
    bootstrap = state.persisted.bootstrap
    if bootstrap is not None and not state.persisted.is_bootstrapped:
        return bootstrap.members
    kept = kept_survivor(state)
    members = (member for member in state.members if member is not kept)
    return tuple(member.name for member in members if member.pod is not None or member.entry is not None)


def current_version(state: ClusterState) -> str:
    """The lowest version that voters run: what the whole cluster can do; empty while none is known."""
    found = state.lowest_version
    return str(found) if found is not None else ""


def awaits_cluster_version(state: ClusterState) -> bool:
    """Whether etcd's cluster version has still to follow the members', which takes seconds.

    Where it cannot be read (a NetworkPolicy may close the port to the operator) it is not requested often.
    """
    if state.desired.cluster_version is None or not state.has_quorum or state.is_version_hidden:
        return False
    running = (voter.answer.version for voter in state.all_voters if voter.answer is not None)
    return not is_agreed(state.cluster_version, running)
