"""The Events of a cluster: for plans that were carried out, and for a quorum that answers again."""

from collections.abc import Sequence

from etcd_operator.api.meta import Condition, condition_of
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.first_start import CREATING, is_resumed
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import available

MILESTONES = {
    "ClusterCreated": "ClusterCreated",
    "Recovering": "RecoveryStarted",
    "Recovered": "Recovered",
    "Adopting": "AdoptionStarted",
    "Adopted": "Adopted",
    "QuorumReturned": "QuorumReturned",
    "Restoring": "RestoreStarted",
    "Restored": "Restored",
    "RestoreCancelled": "RestoreCancelled",
}
"""Plans that are reported by an Event once they are carried out: the plan's reason, the Event's reason."""

RESUMED = "Resumed"
"""The Event for a cluster that serves for the first time since it resumed on claims."""

QUORUM_RETURNED = "QuorumReturned"
"""The Event for a quorum that answers again; also of a recovery that is not needed any more."""

_LOST = "QuorumLost"

_OWN_EVENTS = frozenset({"Recovering", "Restoring"})
"""Reasons of Degraded of a recovery or restore, whose end has an Event of its own."""


def quorum_event(before: Sequence[Condition], state: ClusterState, plan: Plan) -> tuple[str, str] | None:
    """Reason and message of the Event, if there is one: a milestone of this pass reports a quorum itself.

    before: the conditions of a cluster that had been bootstrapped, as its status has them until now.
    """
    serves, reason, _ = available(state)
    if not state.has_quorum or _LOST in (reason, plan.reason) or plan.reason in MILESTONES:
        return None
    if _was_lost(before):
        if _is_ending(state):
            return None
        return QUORUM_RETURNED, "a quorum answers again"
    if serves and is_resumed(state) and _reason_of("Available", "False", before) == CREATING:
        return RESUMED, f"a quorum serves on the data of the claims, cluster ID {state.persisted.cluster_id}"
    return None


def _is_ending(state: ClusterState) -> bool:
    """Whether most voters have no pod any more: after a deletion by force they run on for a moment."""
    gone = [voter for voter in state.all_voters if voter.pod is None and not voter.endpoint]
    return bool(gone) and 2 * len(gone) >= len(state.all_voters)


def _was_lost(before: Sequence[Condition]) -> bool:
    """Whether a loss was reported: not where a member is restarted on purpose, and nothing is wrong."""
    degraded = _reason_of("Degraded", "True", before)
    if not degraded or degraded in _OWN_EVENTS:
        return False
    return _LOST in (degraded, _reason_of("Available", "False", before))


def _reason_of(kind: str, status: str, conditions: Sequence[Condition]) -> str:
    """The reason of a condition that has this status; empty where it has another one."""
    found = condition_of(conditions, kind)
    return found.reason if found is not None and found.status == status else ""
