"""What keeps EtcdBackupSchedules from creating EtcdBackups, and what becomes of those that ended."""

import pytest

from unit.fakes.apiserver import Answer, Json
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import Made, backup, schedule
from unit.passes.schedule_steps import (
    FIRST,
    SECOND,
    begun,
    created,
    fail_all,
    let_run,
    messages,
    ready,
    status,
)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"schedule": "every day"}, 'spec.schedule: "every day" must be a cron schedule with five fields'),
        ({"schedule": "20-10 * * * *"}, "is not a valid schedule: Bad minute"),
        ({"schedule": 7}, "spec: Expected `str`, got `int` - at `$.schedule`"),
        ({"timeZone": "Europe/Berln"}, 'spec.timeZone: "Europe/Berln" must be the name of a time zone'),
        (
            {"backupTemplate": {"source": {}, "destination": {"objectURLTemplate": "s3://b/{{ .Name }}"}}},
            "spec.backupTemplate.source: clusterURL and clusterName are alternatives",
        ),
    ],
)
def test_what_an_older_definition_let_pass_is_refused(made: Made, spec: Json, message: str) -> None:
    world, _ = made
    world.create(*schedule(**spec))
    world.wait(600.0)
    assert (ready(world)["status"], ready(world)["reason"]) == ("False", "InvalidSpec")
    assert message in ready(world)["message"]
    (event,) = world.events()
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "InvalidSpec", 1)
    assert event["message"] == ready(world)["message"]
    assert world.names(BACKUPS) == []
    world.rest()
    world.edit(SCHEDULES, "s", {"spec": {**schedule()[1]["spec"], "timeZone": None}})
    world.wait(1.0)
    assert (ready(world)["reason"], world.names(BACKUPS)) == ("Scheduled", [])


def test_only_the_last_etcd_backups_that_ended_are_kept(made: Made) -> None:
    world, _ = made
    foreign = backup("foreign")[1]
    foreign["metadata"]["labels"] = {"etcd.improbable.io/backup-schedule-name": "s"}
    world.create(BACKUPS, foreign)
    let_run(made, 10.0)
    world.create(*schedule(successfulBackupsHistoryLimit=2))
    for _ in range(4):
        world.run_until(lambda: bool(status(world).get("active")))
        world.drain()
        fail_all(made)
        let_run(made, 300.0)
    names = created(world)
    assert len(names) >= 7
    phases = {name: world.status(BACKUPS, name)["phase"] for name in world.names(BACKUPS)}
    assert sorted(phases.values()) == ["Completed", "Completed", "Completed", "Failed"]
    assert phases.pop("foreign") == "Completed"
    assert max(phases) == names[-1]
    world.edit(SCHEDULES, "s", {"spec": {"successfulBackupsHistoryLimit": 0, "suspend": True}})
    world.drain()
    assert sorted(world.status(BACKUPS, name)["phase"] for name in world.names(BACKUPS)) == [
        "Completed",
        "Failed",
    ]


def test_deleting_a_schedule_deletes_its_etcd_backups_and_waits_for_nothing(made: Made) -> None:
    world, _ = made
    begun(made)
    world.delete(SCHEDULES, "s")
    assert (world.names(SCHEDULES), world.names(BACKUPS), world.names(JOBS)) == ([], [], [])
    world.wait(900.0)
    assert created(world) == [FIRST]


def test_etcd_backups_are_kept_if_the_schedule_is_deleted_without_them(made: Made) -> None:
    world, _ = made
    begun(made)
    world.delete(SCHEDULES, "s", propagation="Orphan")
    let_run(made, 900.0)
    assert world.names(SCHEDULES) == []
    assert world.status(BACKUPS, FIRST)["phase"] == "Completed"
    assert created(world) == [FIRST]


def test_a_schedule_of_the_same_name_counts_from_its_own_creation(made: Made) -> None:
    world, _ = made
    begun(made)
    world.delete(SCHEDULES, "s")
    world.create(*schedule())
    world.wait(250.0)
    assert created(world) == [FIRST]
    let_run(made, 60.0)
    assert created(world) == [FIRST, SECOND]


def test_an_etcd_backup_that_somebody_deleted_is_not_created_again(made: Made) -> None:
    world, _ = made
    begun(made)
    world.delete(BACKUPS, FIRST)
    world.wait(200.0)
    assert world.names(BACKUPS) == []
    let_run(made, 120.0)
    assert created(world) == [FIRST, SECOND]


def test_an_etcd_backup_of_somebody_else_is_in_the_way(made: Made) -> None:
    world, _ = made
    world.create(*backup(FIRST))
    world.create(*schedule())
    world.run_until(lambda: ready(world).get("reason") == "NameConflict")
    assert "belongs to somebody else" in ready(world)["message"]
    assert messages(world, "NameConflict") == [ready(world)["message"]]
    world.delete(BACKUPS, FIRST)
    let_run(made, 30.0)
    assert created(world) == [FIRST]
    assert ready(world)["reason"] == "Scheduled"


@pytest.mark.parametrize(
    ("code", "cause", "reason"),
    [(403, "Forbidden", "Forbidden"), (422, "Invalid", "Invalid"), (500, "InternalError", "RequestFailed")],
)
def test_what_keeps_a_backup_from_being_created_is_reported(
    made: Made, code: int, cause: str, reason: str
) -> None:
    world, _ = made

    def refuse(request: Request) -> Answer | None:
        is_create = request.plural == "etcdbackups" and request.method == "POST"
        return Answer(code=code, reason=cause, message="exceeded quota: 7") if is_create else None

    world.api.before = refuse
    world.create(*schedule())
    world.run_until(lambda: ready(world).get("reason") == reason)
    assert "exceeded quota" in ready(world)["message"]
    assert "lastBackup" not in status(world)
    status_writes = len([w for w in world.writes() if w.request.subresource])
    world.wait(35.0)
    assert len([w for w in world.writes() if w.request.subresource]) == status_writes
    world.api.before = no_fault
    let_run(made, 60.0)
    assert created(world) == [FIRST]
    assert ready(world)["reason"] == "Scheduled"


def test_a_schedule_goes_on_where_old_etcd_backups_cannot_be_deleted(made: Made) -> None:
    world, _ = made

    def refuse(request: Request) -> Answer | None:
        return Answer(code=403, reason="Forbidden") if request.method == "DELETE" else None

    world.api.before = refuse
    world.create(*schedule(successfulBackupsHistoryLimit=0))
    let_run(made, 960.0)
    assert created(world) == [FIRST, SECOND, "s-20260101-0015"]
    world.api.before = no_fault
    world.wait(30.0)
    assert world.names(BACKUPS) == []


def test_a_schedule_goes_on_after_its_status_could_not_be_written(made: Made) -> None:
    world, _ = made

    def refuse(request: Request) -> Answer | None:
        is_status = request.plural == "etcdbackupschedules" and request.is_write
        return Answer(code=403, reason="Forbidden") if is_status else None

    world.api.before = refuse
    world.create(*schedule())
    let_run(made, 660.0)
    assert created(world) == [FIRST, SECOND]
    world.api.before = no_fault
    let_run(made, 60.0)
    assert status(world)["lastBackup"]["name"] == SECOND
    assert created(world) == [FIRST, SECOND]


def test_an_etcd_backup_that_hangs_in_deletion_holds_nothing_up(made: Made) -> None:
    world, _ = made
    begun(made)
    world.edit(BACKUPS, FIRST, {"metadata": {"finalizers": ["example.com/somebody"]}})
    world.delete(BACKUPS, FIRST)
    let_run(made, 360.0)
    assert created(world) == [FIRST, SECOND]
    assert world.status(BACKUPS, SECOND)["phase"] == "Completed"


def test_two_schedules_do_not_wait_for_each_other(made: Made) -> None:
    world, _ = made
    begun(made)
    world.create(*schedule("other"))
    world.run_until(lambda: "other-20260101-0010" in world.names(BACKUPS))
    assert ready(world)["reason"] in ("BackingUp", "Waiting")


def test_a_time_that_somebody_wrote_onto_an_etcd_backup_breaks_nothing(made: Made) -> None:
    world, _ = made
    begun(made)
    change = {"metadata": {"annotations": {"etcd.improbable.io/scheduled-time": "yesterday"}}}
    world.edit(BACKUPS, FIRST, change)
    let_run(made, 360.0)
    assert created(world) == [FIRST, SECOND]


@pytest.mark.parametrize("since", ["yesterday", "2026-01-01T00:05:00"])
def test_a_time_that_somebody_wrote_into_the_status_breaks_nothing(made: Made, since: str) -> None:
    world, _ = made
    begun(made)
    world.edit(SCHEDULES, "s", {"status": {"since": since}}, subresource="status")
    let_run(made, 360.0)
    assert created(world) == [FIRST, SECOND]
