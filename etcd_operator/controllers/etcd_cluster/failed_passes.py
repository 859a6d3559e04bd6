"""What status reports of a pass of a cluster that failed, and which failures the pass itself waits for."""

from collections.abc import Mapping

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD
from etcd_operator.controllers.shared.failures import is_waited_for, reason_of
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Overridden
from etcd_operator.errors import Invalid, NamespaceTerminating
from etcd_operator.etcd.errors import Corrupt, NotInSync, UnhealthyCluster

_HELD: Mapping[type[Exception], str] = {
    Invalid: "Refused",
    Corrupt: "DataCorrupt",
    Overridden: "Overridden",
}
"""The reasons that a cluster has for a failure; for all others see `reason_of`."""

_LIMITS: Mapping[type[Exception], str] = {
    UnhealthyCluster: "etcd refuses to change its members until they have been connected for 5 seconds",
    NotInSync: "etcd refuses to promote a learner until it has caught up with the leader",
}
"""What etcd's own rules about time mean, in words."""

_WAITED_FOR = (Overridden, UnhealthyCluster, NotInSync, Corrupt)
"""What the pass of a cluster waits for as well, see `is_waited_for`."""

ETCD_RETRY = 0.25
"""Seconds until a change that etcd does not allow yet is requested again."""


def is_awaited(error: Exception) -> bool:
    """Whether the pass tries again at a pace of its own; all other failures the engine repeats."""
    return is_waited_for(error) or isinstance(error, _WAITED_FOR)


def limited(plan: Plan, error: Exception) -> Plan | None:
    """Wait for what etcd's own rules about time do not allow yet (5 s of connection, 90 % of the log)."""
    if not isinstance(error, (UnhealthyCluster, NotInSync)):
        return None
    return Plan.wait(plan.reason, f"{plan.message}; {_LIMITS[type(error)]}", requeue_after=ETCD_RETRY)


def held_by(error: Exception, message: str) -> Plan:
    """What status reports of a failure."""
    if isinstance(error, NameConflict) and error.is_passing:
        return Plan.wait("PredecessorTerminating", message, requeue_after=0.5)
    if isinstance(error, NamespaceTerminating):
        return Plan.hold("Deleting", "the namespace is being deleted", requeue_after=RETRY_HELD)
    held = next((reason for kind, reason in _HELD.items() if isinstance(error, kind)), "")
    if held:
        return Plan.hold(held, message, requeue_after=RETRY_HELD)
    return Plan.hold(reason_of(error), message, requeue_after=RETRY_HELD if is_waited_for(error) else None)
