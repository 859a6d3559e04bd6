"""What EtcdBackupSchedules report of EtcdBackups that have ended: each one once, whatever comes next."""

from functools import partial

import pytest

from etcd_operator.keys import Key
from unit.fakes.apiserver import Answer
from unit.fakes.apiserver.faults import Request, no_fault
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import STORED, Made
from unit.passes.schedule_steps import FIRST, SECOND, begun, created, fail_all, reported, status

THIRD = "s-20260101-0015"
FAILURE = {"error": "no bucket", "reason": "BucketMissing"}


def failures(world: Bench) -> float | None:
    """How many failures the metrics show; those of this process."""
    assert world.operator is not None
    return world.operator.backup_metrics["EtcdBackupSchedule", Key("default", "s")].failures


def verdict(world: Bench) -> tuple[str, str]:
    """Status and message of the condition LastBackupSucceeded."""
    found = world.condition(SCHEDULES, "LastBackupSucceeded", "s")
    return found["status"], found["message"]


def is_created(world: Bench, name: str) -> bool:
    return name in created(world)


def end_late(made: Made, *, succeeds: bool = False) -> None:
    """The backup under way ends after the next one has become due, so that one pass sees both."""
    world, jobs = made
    before = len(created(world))
    job = next(job for job in jobs.all() if not job.get("status"))
    world.wait(300.0)
    assert len(created(world)) == before, "the next one waits"
    jobs.run(job, STORED if succeeds else FAILURE, exit_code=0 if succeeds else 1)
    world.drain()
    assert len(created(world)) == before + 1, "it does not wait any more"


def test_failures_are_reported_although_the_next_backup_starts_at_once(made: Made) -> None:
    world, _ = made
    begun(made)
    end_late(made)
    assert verdict(world) == ("False", f"EtcdBackup {FIRST}: no bucket")
    assert status(world)["lastBackup"] == {"name": SECOND, "phase": "BackingUp"}
    assert (reported(world), failures(world)) == ({FIRST: 1}, 1)
    end_late(made)
    assert verdict(world) == ("False", f"EtcdBackup {SECOND}: no bucket")
    assert (reported(world), failures(world)) == ({FIRST: 1, SECOND: 1}, 2)
    assert world.names(BACKUPS) == [SECOND, THIRD], "of those that have failed the last one is kept"
    end_late(made, succeeds=True)
    assert verdict(world)[0] == "True"
    assert (reported(world, "BackupCompleted"), failures(world)) == ({THIRD: 1}, 2)


def test_another_operator_reports_what_ended_before_it_started_once(made: Made) -> None:
    world, _ = made
    begun(made)
    world.kill()
    conditions = [{"type": "Complete", "status": "False", "reason": "BucketMissing", "message": "no bucket"}]
    ended = {"phase": "Failed", "conditions": conditions}
    world.edit(BACKUPS, FIRST, {"status": ended}, subresource="status")
    world.clock.advance(300.0)
    world.start()
    world.drain()
    assert created(world) == [FIRST, SECOND]
    assert verdict(world) == ("False", f"EtcdBackup {FIRST}: no bucket")
    assert (reported(world), failures(world)) == ({FIRST: 1}, 1)
    world.restart()
    world.drain()
    assert (reported(world), failures(world)) == ({FIRST: 1}, 0)


def test_all_that_ended_while_the_status_could_not_be_written_are_reported(made: Made) -> None:
    world, _ = made

    def refuse(request: Request) -> Answer | None:
        is_status = request.plural == "etcdbackupschedules" and request.is_write
        return Answer(code=403, reason="Forbidden") if is_status else None

    begun(made)
    world.api.before = refuse
    fail_all(made)
    for name in (SECOND, THIRD):
        world.run_until(partial(is_created, world, name))
        world.drain()
        fail_all(made)
    assert (reported(world), failures(world)) == ({}, 3)
    world.api.before = no_fault
    world.wait(60.0)
    assert (reported(world), failures(world)) == ({FIRST: 1, SECOND: 1, THIRD: 1}, 3)
    assert verdict(world) == ("False", f"EtcdBackup {THIRD}: no bucket")
    assert world.names(BACKUPS) == [THIRD]
    world.restart()
    world.wait(60.0)
    assert (reported(world), failures(world)) == ({FIRST: 1, SECOND: 1, THIRD: 1}, 0)


@pytest.mark.parametrize("kept", [1, 0])
def test_what_is_kept_of_failures_changes_no_report(made: Made, kept: int) -> None:
    world, _ = made
    begun(made, failedBackupsHistoryLimit=kept)
    end_late(made)
    end_late(made)
    assert reported(world) == {FIRST: 1, SECOND: 1}
    world.wait(200.0)
    assert reported(world) == {FIRST: 1, SECOND: 1}
    assert verdict(world) == ("False", f"EtcdBackup {SECOND}: no bucket")
