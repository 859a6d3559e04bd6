"""What metrics show of a cluster: whether it serves, and what holds it."""

from etcd_operator.core.actions import Plan, Stage
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import available
from etcd_operator.figures import ClusterFigures

_LEAVING = frozenset({"Deleting", "TurnedBack"})
"""Holds of a cluster that is about to be deleted."""


def figures(state: ClusterState, plan: Plan) -> ClusterFigures:
    """What a pass that observed `state`, and reports `plan`, has found.

    A pause is a hold here, although nothing is wrong: it also holds the recovery of a lost quorum.
    """
    serves, reason, _ = available(state)
    is_known = serves or reason == "QuorumLost"
    is_held = plan.stage is Stage.HELD and plan.reason not in _LEAVING
    return ClusterFigures(is_available=serves if is_known else None, held=plan.reason if is_held else "")
