"""What a pass tells the user: conditions common to both API groups.

Available: do clients get answers. Progressing: is something under way. Degraded: does
something need a look. The reason and sentence of a plan that holds become those of
Degraded, so that `kubectl describe` says what the operator waits for.
"""

from etcd_operator.api.meta import Condition
from etcd_operator.api.persisted import is_repeated
from etcd_operator.core.actions import Plan, Stage
from etcd_operator.core.replies import ANYBODY
from etcd_operator.core.state import ClusterState
from etcd_operator.core.versions import is_agreed

MILESTONES = {
    "ClusterCreated": "ClusterCreated",
    "Recovering": "RecoveryStarted",
    "Recovered": "Recovered",
    "QuorumReturned": "QuorumReturned",
}
"""Plans that are an Event of their own once their actions are done, by reason, and its reason."""

WARNINGS = frozenset({"CleanupGivenUp", "LabelsRestored", "QuorumLost", "RecoveryStarted", "Recovered"})
"""Reasons of Events that a person should see, though they tell of something done."""

CONDITIONS = frozenset({"Available", "Progressing", "Degraded", "DataLossPossible"})
"""The types of conditions that `conditions` can give; others in a status are somebody else's."""

QUIET_HOLDS = frozenset({"Paused", "Deleting"})
"""Holds that are the user's own wish: nothing is wrong."""

PEER_REFUSED = "PeerRefused"
"""Why nothing is done for an EtcdPeer that somebody has changed, also while its pod runs."""

OUT_OF_SPACE = (
    "OutOfSpace",
    (
        "etcd takes no writes: a quota is used up (alarm NOSPACE); reads and deletions work: "
        "delete keys, compact, defragment each member, then `etcdctl alarm disarm` (docs/operations.md)"
    ),
)
"""Reason and sentence for a full store."""


def data_corrupt(state: ClusterState) -> tuple[str, str]:
    """Reason and sentence for data that differs between members."""
    known = {member.id: member.name for member in state.members if member.id}
    names = sorted(known.get(named, f"a member that was removed, ID {named}") for named in state.corrupt)
    whose = "of some member" if ANYBODY in state.corrupt else f"of {', '.join(names)}"
    message = (
        f"etcd found the data {whose} to differ and takes no writes (alarm CORRUPT): a member that "
        "is named is replaced while a quorum of others agrees; otherwise compare "
        "`etcdctl endpoint hashkv --cluster`, remove who is wrong, then `etcdctl alarm disarm`"
    )
    return "DataCorrupt", message


def auth_enabled(state: ClusterState) -> tuple[str, str]:
    """Reason and sentence for members that answer only users."""
    names = ", ".join(member.name for member in state.members if member.refusal is not None)
    message = (
        f"authentication is switched on in etcd and the operator is no user ({names} refused it): "
        "no member is added, removed, replaced or upgraded until somebody runs `etcdctl auth disable` as root"
    )
    return "AuthEnabled", message


def conditions(state: ClusterState, plan: Plan) -> tuple[Condition, ...]:
    """The conditions, not yet stamped with times (see `api.meta.merge_conditions`).

    DataLossPossible is there only after a recovery, for as long as the cluster is: whoever
    used it may have to know.
    """
    verdicts = {
        "Available": _available(state),
        "Progressing": _progressing(plan),
        "Degraded": _degraded(state, plan),
    }
    loss = _loss(state)
    if loss is not None:
        verdicts["DataLossPossible"] = loss
    return tuple(
        Condition(
            type=kind,
            status="True" if holds else "False",
            reason=reason,
            message=message,
            observed_generation=state.desired.generation,
        )
        for kind, (holds, reason, message) in verdicts.items()
    )


Verdict = tuple[bool, str, str]

MISSING = "writes that only lost members had are missing"


def _available(state: ClusterState) -> Verdict:
    if state.persisted.is_recovering:
        return False, "QuorumLost", "recovering: neither writes nor consistent reads are possible"
    if state.has_quorum:
        return True, "QuorumHealthy", "a quorum answers"
    if not state.persisted.is_bootstrapped:
        return False, "Creating", "the cluster has not served yet"
    return False, "QuorumLost", "no quorum answers: neither writes nor consistent reads are possible"


def _loss(state: ClusterState) -> Verdict | None:
    recovery, bootstrap = state.persisted.recovery, state.persisted.bootstrap
    if recovery is None:
        return _first_loss(state)
    if not recovery.replaces:
        # Not needed in the end; but the cluster itself may have come out of an earlier one.
        if bootstrap is None or not bootstrap.token.startswith(f"{state.desired.uid}-"):
            return _first_loss(state)
        return True, "RecoveredFromSurvivor", f"recovered as {bootstrap.members[0]} once: {MISSING}"
    source = (
        f"recovery {recovery.generation} took what {recovery.survivor} had at revision {recovery.revision}"
    )
    return True, "RecoveredFromSurvivor", f"{source}: {MISSING}"


def _first_loss(state: ClusterState) -> Verdict | None:
    bootstrap = state.persisted.bootstrap
    if bootstrap is None or not is_repeated(bootstrap.token):
        return None
    return True, "BootstrapRepeated", f"all members failed before the cluster ID was recorded: {MISSING}"


def _progressing(plan: Plan) -> Verdict:
    return plan.stage is Stage.WORKING, plan.reason, plan.message


def _degraded(state: ClusterState, plan: Plan) -> Verdict:
    if plan.stage is Stage.HELD and plan.reason not in QUIET_HOLDS:
        return True, plan.reason, plan.message
    if state.persisted.is_recovering:
        return True, "Recovering", plan.message
    if state.corrupt:
        return True, *data_corrupt(state)
    upgrade = state.persisted.upgrade
    on_purpose = upgrade.member if upgrade is not None else ""
    unhealthy = [v.name for v in state.voters if not v.is_healthy and v.name != on_purpose]
    if unhealthy and plan.reason != "Creating":
        return True, "MemberUnhealthy", f"unhealthy or silent: {', '.join(unhealthy)}"
    if state.is_out_of_space:
        return True, *OUT_OF_SPACE
    for member in state.members:
        if member.problem is not None and member.problem.reason == PEER_REFUSED:
            return True, PEER_REFUSED, f"{member.name}: {member.problem.message}"
    return False, "AsExpected", "nothing is known to be wrong"


def member_names(state: ClusterState) -> tuple[str, ...]:
    """The members there are; while a bootstrap is under way, those that it is about to make."""
    bootstrap = state.persisted.bootstrap
    if bootstrap is not None and not state.persisted.is_bootstrapped:
        return bootstrap.members
    return tuple(
        member.name for member in state.members if member.pod is not None or member.entry is not None
    )


def current_version(state: ClusterState) -> str:
    """The lowest version that voters run: what the whole cluster can do; empty while none is known."""
    found = state.lowest_version
    return str(found) if found is not None else ""


def awaits_cluster_version(state: ClusterState) -> bool:
    """Whether etcd's cluster version is not yet what it will be: it follows the members within seconds.

    Where nobody reads it (a NetworkPolicy may keep the operator from the port) it is not asked for often.
    """
    if state.desired.cluster_version is None or not state.has_quorum or state.is_version_hidden:
        return False
    running = (voter.answer.version for voter in state.voters if voter.answer is not None)
    return not is_agreed(state.cluster_version, running)
