"""Which of several backups is the newest.

Neither names, revisions nor times alone are an order: names are chosen by users, revisions begin again in
another etcd cluster (after a recovery, or if a cluster is created again), and clocks jump. So:

- within one etcd cluster the revision decides, as a number: it only grows, whatever clocks do;
- backups of different etcd clusters are ordered by time. The time of a backup is the latest one of those in
  its etcd cluster up to its own revision, so that it never contradicts the first rule. Times that lie in the
  future are mistakes of a clock, and count only where there are no others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

Backup = TypeVar("Backup")

_ANY_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the order of a backup rests on: its etcd cluster, its revision, and when it was taken (aware)."""

    cluster_id: str
    revision: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Placed(Generic[Backup]):
    """A backup, and the time at which the order places it."""

    time: datetime
    backup: Backup


def newest_first(
    backups: Iterable[Backup],
    stamp: Callable[[Backup], Stamp],
    *,
    running: str = "",
    latest: datetime = _ANY_TIME,
) -> tuple[Placed[Backup], ...]:
    """The backups in order. The same set always has the same order.

    running: the ID of the etcd cluster that is known to be the newest; its backups come first. latest: later
    times are mistakes.
    """
    clusters: dict[str, list[Backup]] = {}
    for backup in backups:
        clusters.setdefault(stamp(backup).cluster_id, []).append(backup)
    placed: list[tuple[tuple[object, ...], Placed[Backup]]] = []
    for cluster, members in clusters.items():
        members.sort(key=lambda backup: (stamp(backup).revision, stamp(backup).time))
        times = [stamp(backup).time for backup in members]
        for number, (time, backup) in enumerate(zip(_growing(times, latest), members, strict=True)):
            placed.append(((cluster == running, time, cluster, number), Placed(time, backup)))
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
