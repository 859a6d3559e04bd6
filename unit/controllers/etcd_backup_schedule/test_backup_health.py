"""Clusters that schedules back up: the condition BackupHealthy, and what metrics show."""

from collections.abc import Iterator
from typing import Any

import pytest

from etcd_operator.formats import instant
from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics
from unit.fakes.apiserver.faults import Answer, Fault, Request, no_fault
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS, COREOS, IMPROBABLE, SCHEDULES, ephemeral, persistent
from unit.passes.jobs import Jobs, Made, backup, schedule
from unit.passes.schedule_steps import fail_all, let_run, messages

TEMPLATE = {**backup()[1]["spec"], "source": {"clusterName": "c"}}


@pytest.fixture
def made() -> Iterator[Made]:
    """A cluster, and no schedule. Its schedules come at minutes that can be divided by five."""
    with bench() as world:
        world.start()
        world.create(*persistent(size=1))
        world.settle()
        yield world, Jobs(world)


def add(world: Bench, name: str = "s", **spec: Any) -> None:
    world.create(*schedule(name, **{"backupTemplate": TEMPLATE, **spec}))
    world.drain()


def health(world: Bench) -> tuple[str, str]:
    found = world.condition(IMPROBABLE, "BackupHealthy")
    return found.get("status", ""), found.get("reason", "")


def let_fail(made: Made, seconds: float) -> None:
    """Let time pass; each Job fails as soon as it exists."""
    for _ in range(round(seconds / 10)):
        made[0].wait(10.0)
        fail_all(made)


def metrics(world: Bench, name: str = "s", kind: str = "EtcdBackupSchedule") -> BackupMetrics | None:
    assert world.operator is not None
    return world.operator.backup_metrics.get((kind, Key("default", name)))


def test_a_cluster_from_its_first_backup_to_one_that_is_overdue(made: Made) -> None:
    world, _ = made
    assert health(world) == ("", "")
    add(world)
    assert health(world) == ("Unknown", "FirstBackupPending")
    let_run(made, 300.0)
    assert health(world) == ("True", "BackedUp")
    world.settle()
    transition = world.condition(IMPROBABLE, "BackupHealthy")["lastTransitionTime"]
    writes = [w.request.path for w in world.writes() if w.request.path.endswith("/c/status")]
    let_run(made, 900.0)
    assert health(world) == ("True", "BackedUp")
    assert [w.request.path for w in world.writes() if w.request.path.endswith("/c/status")] == writes
    assert world.condition(IMPROBABLE, "BackupHealthy")["lastTransitionTime"] == transition

    let_fail(made, 600.0)
    last = instant(world.status(SCHEDULES, "s")["lastSuccessfulTime"])
    assert health(world) == ("True", "BackedUp"), "one failure, and another one that was due just now"
    let_fail(made, 300.0)
    assert health(world) == ("False", "BucketMissing")
    found = world.condition(IMPROBABLE, "BackupHealthy")
    assert f"since {last:%Y-%m-%dT%H:%M:%SZ}: EtcdBackup s-" in found["message"]
    assert messages(world, "BackupUnhealthy") == [found["message"]]
    at = instant(found["lastTransitionTime"])
    assert (at.minute % 5, at.second) == (0, 0), "exactly when the third time came"
    assert (at - last).total_seconds() == 900

    let_run(made, 300.0)
    assert health(world) == ("True", "BackedUp")
    assert messages(world, "BackupHealthy")
    world.settle()


def test_the_reason_is_reported_although_the_next_backup_always_starts_at_once(made: Made) -> None:
    world, _ = made
    add(world)
    world.wait(310.0)
    for _ in range(3):
        world.wait(300.0)
        fail_all(made)
        assert world.condition(SCHEDULES, "Ready", "s")["reason"] == "BackingUp"
    assert health(world) == ("False", "BucketMissing")
    shown = metrics(world)
    assert shown is not None
    assert shown.failures == 3


def test_nothing_is_written_at_rest_before_and_after_it_is_overdue(made: Made) -> None:
    world, _ = made
    add(world, schedule="0 3 * * *")
    world.rest()
    world.clock.advance(2 * 86400.0)
    world.wait(60.0)
    fail_all(made)
    world.settle()
    assert health(world)[0] == "False"
    world.rest()


@pytest.mark.parametrize(
    "source",
    [{"clusterURL": "http://c:2379"}, {"clusterURL": "http://c.default.svc:2379"}],
)
def test_the_url_of_its_service_names_a_cluster_too(made: Made, source: dict[str, str]) -> None:
    world, _ = made
    add(world, backupTemplate={**TEMPLATE, "source": source})
    assert health(world) == ("Unknown", "FirstBackupPending")


def test_no_other_schedule_counts(made: Made) -> None:
    world, _ = made
    add(world, "other", backupTemplate={**TEMPLATE, "source": {"clusterName": "other"}})
    add(world, "elsewhere", backupTemplate={**TEMPLATE, "source": {"clusterURL": "http://c.team.svc"}})
    world.create(SCHEDULES, {"metadata": {"name": "strange"}, "spec": {"schedule": 7}})
    world.create(*ephemeral("e", size=1))
    add(world, "coreos", backupTemplate={**TEMPLATE, "source": {"clusterName": "e"}})
    world.settle()
    assert health(world) == ("", "")
    assert world.condition(COREOS, "BackupHealthy", "e") == {}


def test_the_condition_goes_with_the_last_schedule_that_names_the_cluster(made: Made) -> None:
    world, _ = made
    add(world, "a")
    add(world, "b")
    world.edit(SCHEDULES, "a", {"spec": {"backupTemplate": {"source": {"clusterName": "other"}}}})
    world.drain()
    assert health(world) == ("Unknown", "FirstBackupPending")
    world.delete(SCHEDULES, "b")
    world.drain()
    assert health(world) == ("", "")
    world.settle()
    world.rest()


@pytest.mark.exhaustive
def test_a_suspended_schedule_is_reported_and_not_overdue(made: Made) -> None:
    world, _ = made
    add(world)
    let_run(made, 310.0)
    world.edit(SCHEDULES, "s", {"spec": {"suspend": True}})
    world.drain()
    assert health(world) == ("Unknown", "Suspended")
    found = metrics(world)
    assert found is not None
    assert (found.is_healthy, found.size) == (None, 20512)
    world.wait(7200.0)
    assert health(world) == ("Unknown", "Suspended")
    world.rest()
    world.edit(SCHEDULES, "s", {"spec": {"suspend": False}})
    let_run(made, 30.0)
    assert health(world) == ("True", "BackedUp")


def test_what_somebody_removes_from_the_status_is_written_again(made: Made) -> None:
    world, _ = made
    add(world)
    others = [c for c in world.status(IMPROBABLE)["conditions"] if c["type"] != "BackupHealthy"]
    world.edit(IMPROBABLE, "c", {"status": {"conditions": others}}, subresource="status")
    world.drain()
    assert health(world) == ("Unknown", "FirstBackupPending")


def test_a_status_that_may_not_be_written_is_tried_again(made: Made) -> None:
    world, _ = made

    def refuse(request: Request) -> Fault | None:
        is_ours = request.method == "PATCH" and "BackupHealthy" in str(request.body)
        return Answer(code=403, reason="Forbidden") if is_ours else None

    world.api.before = refuse
    add(world)
    world.wait(30.0)
    assert health(world) == ("", "")
    world.api.before = no_fault
    world.wait(11.0)
    assert health(world) == ("Unknown", "FirstBackupPending")


def test_an_operator_that_was_killed_goes_on(made: Made) -> None:
    world, _ = made
    add(world)
    let_run(made, 310.0)
    world.kill()
    world.clock.advance(3600.0)
    world.start()
    world.drain()
    assert health(world)[0] == "False", "until the backup that was missed is made up for"
    let_run(made, 60.0)
    assert health(world) == ("True", "BackedUp")


def test_a_schedule_is_shown_in_metrics_as_long_as_it_exists(made: Made) -> None:
    world, _ = made
    add(world, successfulBackupsHistoryLimit=0)
    assert metrics(world) == BackupMetrics(cluster="c", failures=0)
    let_run(made, 310.0)
    assert world.names(BACKUPS) == []
    success = instant(world.status(SCHEDULES, "s")["lastSuccessfulTime"]).timestamp()
    found = metrics(world)
    assert found is not None
    assert (found.last_success, found.size, found.is_healthy) == (success, 20512, True)
    assert found.took is not None
    assert found.took >= 0
    let_fail(made, 900.0)
    found = metrics(world)
    assert found is not None
    assert (found.last_success, found.failures, found.size, found.is_healthy) == (success, 3, 20512, False)
    world.edit(SCHEDULES, "s", {"metadata": {"finalizers": ["example.com/hangs"]}})
    world.delete(SCHEDULES, "s")
    world.drain()
    assert metrics(world) is None
    assert health(world) == ("", "")
    world.edit(SCHEDULES, "s", {"metadata": {"finalizers": []}})
    world.drain()
    assert (metrics(world), world.names(SCHEDULES)) == (None, [])


def test_a_schedule_whose_backups_are_never_verified_shows_that(made: Made) -> None:
    world, _ = made
    add(world, backupTemplate={**TEMPLATE, "verify": "Hash"})
    found = metrics(world)
    assert found is not None
    assert found.last_verified == 0
