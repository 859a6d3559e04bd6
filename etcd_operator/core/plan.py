"""The ordered rules: the first with an opinion wins.

A rule is a function from the observed state to a `Plan` or None. A new behaviour is one
function, one line in `RULES` and one row in a table test. `plan` is total and
deterministic; it repeats nothing once it has been applied, because every rule looks at
the world and not at what was meant.
"""

from collections.abc import Callable

from etcd_operator.core.actions import Plan
from etcd_operator.core.rules import (
    bootstrap,
    claims,
    data_corrupt,
    guard,
    labels,
    manual_recovery,
    objects,
    protect,
    quorum_lost,
    replace,
    resume,
    scale,
    upkeep,
)
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade import state_machine

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
    bootstrap.bootstrap,
    claims.set_existing_only,
    guard.unknown_members,
    quorum_lost.recover,
    manual_recovery.recover,
    replace.remount,
    scale.outdated_learner,
    replace.lost_member,
    protect.budget,
    scale.orphaned_objects,
    data_corrupt.replace,
    scale.finish_learner,
    scale.down,
    state_machine.roll,
    scale.up,
    manual_recovery.offer,
    upkeep.watch,
    state_machine.refused,
    manual_recovery.refused,
)


def plan(state: ClusterState) -> Plan:
    """What to do about `state`: total, deterministic, without side effects."""
    return next((opinion for rule in RULES if (opinion := rule(state))), Plan.settled())
