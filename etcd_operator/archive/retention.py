"""Which of several backups is the newest, and which of a series are more than are kept.

Neither names, revisions nor times alone are an order: names are chosen by users, revisions begin again in
another etcd cluster (after a recovery, or if a cluster is created again), and clocks jump. So:

- within one etcd cluster the revision decides, as a number: it only grows, whatever clocks do;
- backups of different etcd clusters are ordered by time. The time of a backup is the latest one of those in
  its etcd cluster up to its own revision, so that it never contradicts the first rule. Times that lie in the
  future are mistakes of a clock, and count only where there are no others.

A backup is surplus if there are `max_count` newer ones, or if it is more than `max_age` older than the newest
one. The newest is never surplus, and neither is one that is named.

An empty cluster that is created again, or a restore of the wrong backup, has another ID, and `max_count`
backups of it would displace all from before. So the newest backup of a former etcd cluster is kept for a
while.

A backup that was taken while an alarm CORRUPT was raised may have the wrong data. It does not count as a
newer one, and while it is the newest itself, nothing is surplus.

Where a person restores a member in place, with the same URLs and token, revisions go back and the ID of the
etcd cluster stays the same; and clocks of nodes are wrong. Then the order is wrong, and would make each new
backup surplus. So the `max_count` backups that were written last are never surplus by count, and the last one
not by age: by the clock of the store, which has nothing to do with either.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Protocol, TypeVar

from etcd_operator.archive.manifest import Manifest

Backup = TypeVar("Backup")

_ANY_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the order of a backup rests on: its etcd cluster, its revision, and when it was taken (aware)."""

    cluster_id: str
    revision: int
    time: datetime


def newest_first(
    backups: Iterable[Backup],
    stamp: Callable[[Backup], Stamp],
    *,
    running: str = "",
    latest: datetime = _ANY_TIME,
) -> tuple[tuple[datetime, Backup], ...]:
    """The backups in order, and the times at which it places them. The same set always has the same order.

    running: the ID of the etcd cluster that is known to be the newest; its backups come first. latest: later
    times are mistakes.
    """
    clusters: dict[str, list[Backup]] = {}
    for backup in backups:
        clusters.setdefault(stamp(backup).cluster_id, []).append(backup)
    placed: list[tuple[tuple[object, ...], tuple[datetime, Backup]]] = []
    for cluster, members in clusters.items():
        members.sort(key=lambda backup: (stamp(backup).revision, stamp(backup).time))
        times = [stamp(backup).time for backup in members]
        for number, (time, backup) in enumerate(zip(_growing(times, latest), members, strict=True)):
            placed.append(((cluster == running, time, cluster, number), (time, backup)))
    placed.sort(key=lambda each: each[0], reverse=True)
    return tuple(each for _, each in placed)


def _growing(times: Sequence[datetime], latest: datetime) -> Iterator[datetime]:
    """For each time the latest one up to it; those after `latest` count only if there are no others."""
    counted = [time for time in times if time <= latest] or times
    high = counted[0]
    for time in times:
        if time <= latest or counted is times:
            high = max(high, time)
        yield high


AHEAD = timedelta(hours=2)
"""By so much clocks may differ; a backup that is further in the future has a wrong time."""


FORMER_KEPT = timedelta(days=30)
"""For so long after a change, the newest backup from before it is kept, by the clock of the store."""

MOST_FORMER = 3
"""Of so many changes, the last ones: a cluster that is recovered every day must not fill its store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How many backups are kept, and how old they may be in seconds; None for any."""

    max_count: int | None = None
    max_age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBackup:
    """A complete backup."""

    name: str
    manifest: Manifest
    modified: datetime  # when its object was written, by the clock of the store


class Complete(Protocol):
    """A complete backup of any kind."""

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""

    @property
    def modified(self) -> datetime:
        """When its object was written, by the clock of the store."""


Kept = TypeVar("Kept", bound=Complete)


def newer(ordered: Sequence[Complete]) -> tuple[int, ...]:
    """For each backup, the newest being the first, how many newer ones count."""
    counts = accumulate((not backup.manifest.corrupt_alarm for backup in ordered[:-1]), initial=0)
    return tuple(counts)[: len(ordered)]


def former(ordered: Sequence[Kept]) -> tuple[Kept, ...]:
    """What is kept for a while although it is surplus, of backups of which the first is the newest.

    Behind the newest backup of a former etcd cluster, or the last one before an alarm CORRUPT, is the first
    one after that change. The time is counted from it, so it is kept as well.
    """
    kept: list[Kept] = []
    seen: set[str] = set()
    for after, last in pairwise(ordered):
        seen.add(after.manifest.cluster_id)
        is_doubtful = after.manifest.corrupt_alarm and not last.manifest.corrupt_alarm
        has_changed = is_doubtful or last.manifest.cluster_id not in seen
        if has_changed and ordered[0].modified - after.modified <= FORMER_KEPT:
            kept += (after, last)
    return tuple(kept[: 2 * MOST_FORMER])


def surplus(
    backups: Iterable[StoredBackup], policy: Policy, *, keep: Collection[str], now: datetime
) -> tuple[StoredBackup, ...]:
    """What is to be removed, the oldest first. keep: names of those that are not, whatever the policy is.

    The age is counted from the newest backup: a clock that is ahead only here must not make all of them old.
    For the same reason it is not counted from a time after `now`, or after the newest was written.
    """

    def stamp(backup: StoredBackup) -> Stamp:
        return Stamp(backup.manifest.cluster_id, backup.manifest.revision, backup.manifest.time)

    placed = newest_first(backups, stamp, latest=now + AHEAD)
    ordered = [backup for _, backup in placed]
    written = sorted(ordered, key=lambda backup: backup.modified, reverse=True)
    if not ordered or ordered[0].manifest.corrupt_alarm or written[0].manifest.corrupt_alarm:
        return ()
    newest = ordered[0]
    places = dict(zip((backup.name for backup in written), newer(written), strict=True))
    reference = min(now, newest.manifest.time, newest.modified)
    spared = {*keep, *(backup.name for backup in former(ordered))}
    numbered = zip(placed, newer(ordered), strict=True)
    old = [
        backup
        for (time, backup), number in numbered
        if backup.name not in spared
        and _is_surplus(policy, min(number, places[backup.name]), reference - time)
    ]
    return tuple(reversed(old))


def _is_surplus(policy: Policy, newer: int, age: timedelta) -> bool:
    """newer: the number of backups that are newer without any doubt; 0 for the newest."""
    if newer == 0:
        return False
    if policy.max_count is not None and newer >= policy.max_count:
        return True
    return policy.max_age is not None and age.total_seconds() > policy.max_age
