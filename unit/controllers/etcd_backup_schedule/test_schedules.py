"""EtcdBackupSchedules at work: what they create, when, and what their status reports."""

import pytest

from unit.fakes.apiserver import Json
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import STORED, Made, container_of, ended, schedule
from unit.passes.schedule_steps import FIRST, SECOND, begun, created, let_run, messages, ready, status


def test_each_time_creates_an_etcd_backup_and_reports_what_came_of_it(made: Made) -> None:
    world, jobs = made
    world.create(*schedule())
    world.wait(299.0)
    assert world.names(BACKUPS) == []
    assert status(world)["nextScheduleTime"] == "2026-01-01T00:05:00Z"
    assert ready(world)["reason"] == "Scheduled"
    world.wait(1.5)
    one = world.get(BACKUPS, FIRST)
    uid = world.get(SCHEDULES, "s")["metadata"]["uid"]
    assert one["spec"] == world.get(SCHEDULES, "s")["spec"]["backupTemplate"]
    assert one["metadata"]["labels"] == {"etcd.improbable.io/backup-schedule-name": "s"}
    assert one["metadata"]["annotations"] == {"etcd.improbable.io/scheduled-time": "2026-01-01T00:05:00Z"}
    (owner,) = one["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("EtcdBackupSchedule", "s", uid)
    assert owner["controller"]
    assert (status(world)["active"], ready(world)["reason"]) == ([FIRST], "BackingUp")
    jobs.run_all()
    world.drain()
    found = status(world)
    assert "active" not in found
    assert found["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert found["nextScheduleTime"] == "2026-01-01T00:10:00Z"
    url = f"s3://bucket/default/{FIRST}.db"
    assert found["lastBackup"] == {"name": FIRST, "phase": "Completed", "url": url}
    assert found["lastSuccessfulURL"] == url
    assert found["lastSuccessfulTime"] == world.status(BACKUPS, FIRST)["completionTime"]
    assert world.condition(SCHEDULES, "LastBackupSucceeded", "s")["status"] == "True"
    about = [event for event in world.events() if event["involvedObject"]["kind"] == "EtcdBackupSchedule"]
    assert sorted(event["reason"] for event in about) == ["BackupCompleted", "BackupStarted"]
    world.rest()
    let_run(made, 600.0)
    assert created(world) == [FIRST, SECOND, "s-20260101-0015"]


def test_two_backups_never_run_at_once(made: Made) -> None:
    world, jobs = made
    begun(made)
    jobs.start(jobs.one())
    world.wait(595.0)
    assert world.names(BACKUPS) == [FIRST]
    assert (ready(world)["status"], ready(world)["reason"]) == ("True", "Waiting")
    assert FIRST in ready(world)["message"]
    world.wait(6.0)
    assert (ready(world)["status"], ready(world)["reason"]) == ("False", "Waiting"), "it may hang"
    writes = len(world.writes())
    world.wait(400.0)
    assert len(world.writes()) == writes, "waiting writes nothing, however many times pass"
    jobs.report(jobs.pods()[0]["metadata"]["name"], **ended(STORED))
    world.drain()
    assert created(world) == [FIRST, "s-20260101-0020"], "the latest is made up for at once"
    assert messages(world, "BackupsMissed")


def test_a_backup_that_cannot_start_before_its_deadline_is_skipped(made: Made) -> None:
    world, jobs = made
    begun(made, startingDeadlineSeconds=60)
    world.wait(355.0)
    assert ready(world)["reason"] == "Waiting"
    world.wait(10.0)
    (message,) = messages(world, "BackupSkipped")
    assert message.startswith(
        "skipped the backup due at 2026-01-01T00:10:00Z: EtcdBackup s-20260101-0005 had"
    )
    assert status(world)["nextScheduleTime"] == "2026-01-01T00:15:00Z"
    jobs.run_all()
    world.drain()
    assert created(world) == [FIRST], "it is not made up for"
    let_run(made, 300.0)
    assert created(world) == [FIRST, "s-20260101-0015"]


@pytest.mark.parametrize("deadline", [None, 240, 59])
def test_an_operator_that_was_away_makes_up_for_the_latest(made: Made, deadline: int | None) -> None:
    world, _ = made
    limit: Json = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    world.create(*schedule(**limit))
    world.drain()
    world.kill()
    world.clock.advance(3660.0)
    world.start()
    world.drain()
    expected = [] if deadline == 59 else ["s-20260101-0100"]
    assert created(world) == expected
    assert len(messages(world, "BackupSkipped" if deadline == 59 else "BackupsMissed")) == 1
    let_run(made, 300.0)
    assert created(world) == [*expected, "s-20260101-0105"]


def test_a_suspended_schedule_starts_nothing_and_one_when_it_goes_on(made: Made) -> None:
    world, _ = made
    world.create(*schedule(suspend=True))
    world.wait(1500.0)
    assert world.names(BACKUPS) == []
    assert ready(world)["reason"] == "Suspended"
    assert "nextScheduleTime" not in status(world)
    world.rest()
    world.edit(SCHEDULES, "s", {"spec": {"suspend": False}})
    world.drain()
    assert created(world) == ["s-20260101-0025"]


def test_suspending_does_not_stop_what_runs(made: Made) -> None:
    world, _ = made
    begun(made)
    world.edit(SCHEDULES, "s", {"spec": {"suspend": True}})
    let_run(made, 30.0)
    assert status(world)["lastBackup"]["phase"] == "Completed"
    let_run(made, 900.0)
    assert created(world) == [FIRST]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schedule": "2 * * * *"}, "s-20260101-0002"),
        ({"schedule": "@hourly", "timeZone": "Asia/Kolkata"}, "s-20260101-0030"),
        ({"backupTemplate": {"compression": "zstd"}}, FIRST),
    ],
)
def test_an_edit_takes_effect_at_once(made: Made, change: Json, expected: str) -> None:
    world, _ = made
    world.create(*schedule())
    world.wait(30.0)
    world.edit(SCHEDULES, "s", {"spec": change})
    world.run_until(lambda: bool(world.names(BACKUPS)))
    assert created(world) == [expected]
    template = world.get(SCHEDULES, "s")["spec"]["backupTemplate"]
    assert world.get(BACKUPS, expected)["spec"] == template


def test_a_jump_of_the_clock_is_noticed_within_a_minute(made: Made) -> None:
    world, _ = made
    world.create(*schedule(schedule="0 3 * * *"))
    world.wait(30.0)
    world.clock.jump(4 * 3600.0)
    world.wait(60.0)
    assert created(world) == ["s-20260101-0300"]


def test_the_last_verified_backup_is_not_the_one_that_is_damaged(made: Made) -> None:
    world, jobs = made
    template = {**schedule()[1]["spec"]["backupTemplate"], "verify": "Restore"}
    world.create(*schedule(backupTemplate=template, successfulBackupsHistoryLimit=0))
    let_run(made, 320.0)
    found = status(world)
    url = f"s3://bucket/default/{FIRST}.db"
    assert (found["lastVerifiedURL"], found["lastVerifiedTime"]) == (url, found["lastSuccessfulTime"])
    assert world.names(BACKUPS) == [], "it is deleted once it is verified"
    assert world.condition(SCHEDULES, "LastBackupVerified", "s")["status"] == "True"

    world.wait(300.0)
    jobs.run(next(job for job in jobs.all() if container_of(job) == "backup"), STORED)
    world.drain()
    assert status(world)["lastSuccessfulURL"] == f"s3://bucket/default/{SECOND}.db"
    assert status(world)["active"] == [SECOND]
    (job,) = (job for job in jobs.all() if container_of(job) == "verify")
    jobs.run(job, {"error": "the object has 7 bytes", "reason": "Damaged"}, exit_code=3)
    world.drain()
    found = status(world)
    assert found["lastVerifiedURL"] == url
    assert found["lastVerifiedTime"] < found["lastSuccessfulTime"]
    verdict = world.condition(SCHEDULES, "LastBackupVerified", "s")
    assert (verdict["status"], verdict["reason"]) == ("False", "Damaged")
    text = "the object has 7 bytes"
    assert messages(world, "VerificationFailed") == [text, f"EtcdBackup {SECOND}: {text}"]
    assert len(messages(world, "BackupVerified")) == 2
    world.rest()
