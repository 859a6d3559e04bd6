"""Steps of scenarios with an EtcdBackupSchedule, whose name is `s`."""

from collections import Counter
from typing import Any

from unit.fakes.apiserver import Json
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import Made, schedule

FIRST, SECOND = "s-20260101-0005", "s-20260101-0010"
"""The clock of a bench begins at 2026-01-01T00:00:00Z."""


def status(world: Bench) -> Json:
    """The status of the schedule; empty before the first."""
    return world.status(SCHEDULES, "s")


def ready(world: Bench) -> Json:
    """Its condition Ready."""
    return world.condition(SCHEDULES, "Ready", "s")


def begun(made: Made, **spec: Any) -> None:
    """A schedule whose first EtcdBackup exists, and has a Job."""
    world, jobs = made
    world.create(*schedule(**spec))
    world.run_until(lambda: bool(jobs.all()))
    world.drain()
    assert world.names(BACKUPS) == [FIRST]


def let_run(made: Made, seconds: float) -> None:
    """Let time pass; each Job succeeds as soon as it exists."""
    world, jobs = made
    for _ in range(round(seconds / 10)):
        world.wait(10.0)
        while jobs.run_all():
            world.drain()


def fail_all(made: Made) -> None:
    """End every Job that has not begun with a failure."""
    world, jobs = made
    for job in jobs.waiting():
        jobs.run(job, {"error": "no bucket", "reason": "BucketMissing"}, exit_code=1)
    world.drain()


def created(world: Bench) -> list[str]:
    """The names of all EtcdBackups that the operator has created, in order."""
    return [
        str(w.request.body["metadata"]["name"])
        for w in world.writes()
        if (w.request.method, w.request.plural) == ("POST", "etcdbackups") and w.code == 201
    ]


def messages(world: Bench, reason: str) -> list[str]:
    """The messages of all Events with this reason."""
    return [str(each["message"]) for each in world.events() if each["reason"] == reason]


def reported(world: Bench, reason: str = "BackupFailed") -> dict[str, int]:
    """How often Events of the schedule report each EtcdBackup, by name."""
    found: Counter[str] = Counter()
    for each in world.events():
        if each["reason"] == reason and each["involvedObject"]["kind"] == "EtcdBackupSchedule":
            found[each["message"].removeprefix("EtcdBackup ").partition(":")[0]] += each["count"]
    return dict(found)
