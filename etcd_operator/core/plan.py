"""The ordered rules: the first with an opinion wins.

A rule is a function from the observed state to a `Plan` or None. A new behaviour is one
function, one line in `RULES` and one row in a table test. `plan` is total and
deterministic; it repeats nothing once it has been applied, because every rule looks at
the world and not at what was meant.
"""

from collections.abc import Callable

from etcd_operator.core import upgrade
from etcd_operator.core.actions import Plan
from etcd_operator.core.rules import (
    asked_recovery,
    bootstrap,
    claims,
    data_corrupt,
    guard,
    labels,
    objects,
    protect,
    quorum_lost,
    recover,
    resume,
    scale,
    upkeep,
)
from etcd_operator.core.state import ClusterState

Rule = Callable[[ClusterState], Plan | None]

RULES: tuple[Rule, ...] = (
    guard.deleting,
    guard.paused,
    guard.invalid,
    guard.stale,
    guard.conflicting,
    labels.restore,
    guard.split,
    objects.repair,
    guard.locked,
    resume.resume,
    bootstrap.found,
    claims.seal,
    guard.strange,
    quorum_lost.recover,
    asked_recovery.recover,
    recover.remount,
    scale.outdated_learner,
    recover.lost_member,
    protect.budget,
    scale.strays,
    data_corrupt.replace,
    scale.finish_learner,
    scale.down,
    upgrade.roll,
    scale.up,
    asked_recovery.offer,
    upkeep.watch,
    upgrade.refused,
    asked_recovery.refused,
)


def plan(state: ClusterState) -> Plan:
    """What to do about `state`: total, deterministic, without side effects."""
    return next((opinion for rule in RULES if (opinion := rule(state))), Plan.settled())
