"""What has changed since the corpus was recorded: what changes the classes of states or plans is said here.

Both halves of a pair are converted as nodes (see `text`; fields at their default are missing), from the
inside out: the state before it is loaded, the plan before it is compared. Nothing else of the oracle changes.
"""

from collections.abc import Callable

from etcd_operator.controllers.etcd_cluster.decide import plan as planner
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.oracle.text import Node, Object

RENAMED: dict[str, str] = {}
"""New names of classes, by the old one: `{"Recovery": "RecoveryRecord"}`."""

FIELDS: dict[str, dict[str, str | None]] = {}
"""New names of fields, by the old class; None drops one: `{"Recovery": {"seed": "first", "bump": None}}`."""

CONVERSIONS: dict[str, Callable[[Object, tuple[Object, ...]], Node]] = {}
"""By the old class, what else becomes of an object: a function of (`converted`, `recorded`).

`converted` is the object of which all that is in it is converted, and itself as `FIELDS` and `RENAMED` say;
what the function returns takes its place. `recorded` are the objects as the corpus has them, from the pair
(`{"state": ..., "plan": ...}`) over all that the object is in to the object itself: a field that moves to the
outer object is read there from `recorded[-1]`, one that moves to an inner one from `recorded[-2]`.
"""


def is_left_out(state: Object, plan: Object) -> bool:
    """Whether a pair, as recorded, concerns behaviour that was removed: it is counted and not compared."""
    return False


def decide(state: ClusterState) -> Plan:
    """Today's plan for a state: the only place of the oracle that knows how it is made."""
    return planner.plan(state)
