"""The condition BackupHealthy of a cluster, as it is merged into its status and compared with the last one.

What it reports is judged for the backup tool of a cluster in `decide.health`, and for the schedules
that name a cluster in `decide.health`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from etcd_operator.api.meta import Condition, condition_of, merge_conditions, without_numbers

HEALTHY = "BackupHealthy"
"""The condition. True: the last success is not older than two intervals. Unknown: there was none yet."""

UNHEALTHY = "BackupUnhealthy"
"""The Event when it becomes false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupHealth:
    """What a controller reports of the backups of a cluster."""

    condition: Condition | None  # not yet stamped with its time; None: the cluster is not backed up
    fields: Mapping[str, object] = field(default_factory=dict)  # of the status; the others stay as recorded


def merged(previous: tuple[Condition, ...], wanted: Condition | None, now: str) -> tuple[Condition, ...]:
    """The conditions of the cluster with this one last, as the pass over its members leaves them."""
    others = tuple(each for each in previous if each.type != HEALTHY)
    if wanted is None:
        return others
    before = tuple(each for each in previous if each.type == HEALTHY)
    return others + merge_conditions(before, [_without_flapping(before, wanted)], now, own={HEALTHY})


def change(previous: tuple[Condition, ...], wanted: tuple[Condition, ...]) -> tuple[str, str] | None:
    """Reason and message of the Event for a change of the condition; None for no Event."""
    before, now = condition_of(previous, HEALTHY), condition_of(wanted, HEALTHY)
    was = before.status if before is not None else ""
    if now is None:
        return None
    if now.status == "False" and was != "False":
        return UNHEALTHY, now.message
    return (HEALTHY, now.message) if (was, now.status) == ("False", "True") else None


def _without_flapping(before: tuple[Condition, ...], wanted: Condition) -> Condition:
    """Without a new message that differs from the last one in numbers only: each would be a write."""
    for old in before:
        is_same = (old.status, old.reason) == (wanted.status, wanted.reason)
        if is_same and without_numbers(old.message) == without_numbers(wanted.message):
            return msgspec.structs.replace(wanted, message=old.message)
    return wanted
