"""EtcdBackups that somebody else made in the name of a schedule: they have its UID as their owner."""

from typing import Any

import pytest

from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import Made
from unit.passes.schedule_steps import FIRST, SECOND, begun, created, let_run, messages, ready, status

FORGED = "s-20251231-2355"
TIME = "2025-12-31T23:55:00Z"


def forge(made: Made, name: str, due: str, **changes: Any) -> None:
    """An EtcdBackup with that name and time, owned by the schedule; changes: of its spec."""
    world, _ = made
    schedule = world.get(SCHEDULES, "s")
    owner = {
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "name": "s",
        "uid": schedule["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": name,
        "labels": {"etcd.improbable.io/backup-schedule-name": "s"},
        "annotations": {"etcd.improbable.io/scheduled-time": due},
        "ownerReferences": [owner],
    }
    world.create(BACKUPS, {"metadata": metadata, "spec": {**schedule["spec"]["backupTemplate"], **changes}})


ELSEWHERE = {"destination": {"objectURLTemplate": "s3://elsewhere/{{.Name}}.db"}}


@pytest.mark.parametrize(
    ("name", "due", "changes"),
    [
        pytest.param("mine", TIME, {}, id="name"),
        pytest.param(FORGED, "2025-12-31T23:50:00Z", {}, id="time"),
        pytest.param(FORGED, "9999-12-31T23:59:59-14:00", {}, id="no time"),
        pytest.param(FORGED, "0001-01-01T00:00:00+14:00", {}, id="before all times"),
        pytest.param(FORGED, TIME, ELSEWHERE, id="spec"),
    ],
)
def test_a_forged_backup_neither_holds_the_schedule_nor_counts(
    made: Made, name: str, due: str, changes: dict[str, Any]
) -> None:
    world, _ = made
    begun(made)
    forge(made, name, due, **changes)
    world.drain()
    assert status(world)["active"] == [FIRST]
    let_run(made, 310.0)
    assert created(world) == [FIRST, SECOND]
    assert status(world)["lastBackup"]["name"] == SECOND
    assert name not in status(world).get("active", [])


def test_a_forged_backup_displaces_no_other(made: Made) -> None:
    world, _ = made
    begun(made, successfulBackupsHistoryLimit=1)
    world.wait(5.0)
    forge(made, "s-20260101-0004", "2026-01-01T00:04:00Z", **ELSEWHERE)
    let_run(made, 60.0)
    assert world.names(BACKUPS) == [FIRST], "what does not count is removed first"


def test_a_name_that_is_taken_by_another_spec_is_reported_until_the_next_time(made: Made) -> None:
    world, _ = made
    begun(made)
    let_run(made, 30.0)
    forge(made, SECOND, "2026-01-01T00:10:00Z", **ELSEWHERE)
    let_run(made, 310.0)
    assert (ready(world)["status"], ready(world)["reason"]) == ("False", "NameConflict")
    assert f"EtcdBackup {SECOND} exists" in ready(world)["message"]
    let_run(made, 300.0)
    assert created(world) == [FIRST, "s-20260101-0015"]
    assert messages(world, "NameConflict")


def test_backups_of_an_earlier_template_still_go_in_their_turn(made: Made) -> None:
    world, _ = made
    begun(made, successfulBackupsHistoryLimit=1)
    let_run(made, 30.0)
    spec = {"spec": {"backupTemplate": ELSEWHERE}}
    world.edit(SCHEDULES, "s", spec)
    let_run(made, 310.0)
    assert created(world) == [FIRST, SECOND]
    assert world.names(BACKUPS) == [SECOND]
