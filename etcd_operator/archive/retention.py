"""Which backups of a series are more than are kept: the rules, without a store.

A backup is surplus if there are `max_count` newer ones, or if it is more than `max_age` older than the newest
one. The newest is never surplus, and neither is one that is named.

Where a person restores a member in place, with the same URLs and token, revisions go back and the ID of the
etcd cluster stays the same; and clocks of nodes are wrong. Then the order is wrong, and would make each new
backup surplus. So the `max_count` backups that were written last are never surplus by count, and the last one
not by age: by the clock of the store, which has nothing to do with either.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.order import Stamp, newest_first

AHEAD = timedelta(hours=2)
"""By so much clocks may differ; a backup that is further in the future has a wrong time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How many backups are kept, and how old they may be in seconds; None for any."""

    max_count: int | None = None
    max_age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBackup:
    """A complete backup. modified: when its object was written, by the clock of the store."""

    name: str
    manifest: Manifest
    modified: datetime


def surplus(
    backups: Iterable[StoredBackup], policy: Policy, *, keep: Collection[str], now: datetime
) -> tuple[StoredBackup, ...]:
    """What is to be removed, the oldest first. keep: names of those that are not, whatever the policy is.

    The age is counted from the newest backup: a clock that is ahead only here must not make all of them old.
    For the same reason it is not counted from a time after `now`, or after the newest was written.
    """
    placed = newest_first(backups, _stamp, latest=now + AHEAD)
    if not placed:
        return ()
    newest = placed[0].backup
    written = sorted(placed, key=lambda each: each.backup.modified, reverse=True)
    places = {each.backup.name: number for number, each in enumerate(written)}
    reference = min(now, newest.manifest.time, newest.modified)
    old = [
        each.backup
        for number, each in enumerate(placed)
        if each.backup.name not in keep
        and _is_surplus(policy, min(number, places[each.backup.name]), reference - each.time)
    ]
    return tuple(reversed(old))


def _is_surplus(policy: Policy, newer: int, age: timedelta) -> bool:
    """newer: the number of backups that are newer without any doubt; 0 for the newest."""
    if newer == 0:
        return False
    if policy.max_count is not None and newer >= policy.max_count:
        return True
    return policy.max_age is not None and age.total_seconds() > policy.max_age


def _stamp(backup: StoredBackup) -> Stamp:
    manifest = backup.manifest
    return Stamp(manifest.cluster_id, manifest.revision, manifest.time)
