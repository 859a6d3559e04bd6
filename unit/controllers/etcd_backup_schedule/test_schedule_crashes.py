"""Crashes, lost replies and refusals at each write of a schedule, and two operators: one backup per time."""

import pytest

from etcd_operator.keys import Key
from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.disturbance import DISTURBANCES, Disturbance
from unit.passes.job_crashes import Errand
from unit.passes.jobs import Jobs, schedule
from unit.passes.schedule_steps import FIRST, SECOND, created, let_run, reported, status
from unit.passes.two_operators import applied, at_each_write, let_both_run, second_operator

KEEPS = pytest.mark.parametrize("kept", [3, 0])
"""With 0, the EtcdBackup is deleted as soon as it has ended."""


def is_completed(made: Bench) -> bool:
    found = status(made)
    return bool(found.get("lastSuccessfulURL")) and "active" not in found


def assert_completed(made: Bench, kept: int) -> None:
    """One EtcdBackup and one Job were made, the status reports it, and nothing is written any more."""
    made.wait(15.0)
    assert set(applied(made, "etcdbackups")) == {FIRST}
    assert len(set(applied(made, "jobs"))) == 1
    found = status(made)
    assert found["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert found["lastBackup"]["name"] == FIRST
    assert found["lastBackup"]["phase"] == "Completed"
    assert made.names(BACKUPS) == ([FIRST] if kept else [])
    assert set(reported(made, "BackupCompleted").values()) <= {1}
    made.rest()


def errand(kept: int) -> Errand:
    return Errand(
        lambda made: made.create(*schedule(successfulBackupsHistoryLimit=kept)),
        is_completed,
        lambda made: assert_completed(made, kept),
        writes=6,
    )


@KEEPS
@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_each_time_is_backed_up_once_whatever_happens_at_any_write(
    disturbance: Disturbance, kept: int
) -> None:
    errand(kept).disturbed_at_each_write(disturbance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("skips", [False, True])
def test_each_time_is_backed_up_once_on_caches_that_lag_behind(skips: bool) -> None:
    errand(kept=3).on_lagging_caches(skips=skips)


@KEEPS
def test_an_operator_with_an_outdated_cache_repeats_nothing(kept: int) -> None:
    """It sees the schedule as it was before its first time, which is over meanwhile."""
    with bench() as made:
        made.start()
        made.create(*schedule(successfulBackupsHistoryLimit=kept))
        made.wait(200.0)
        before = made.api.objects.store.revision
        Jobs(made).until(lambda: is_completed(made))
        made.wait(5.0)
        made.kill()
        made.api.freeze_views(before)
        made.start()
        made.wait(30.0)
        assert created(made) == [FIRST]
        made.api.thaw_views()
        made.wait(30.0)
        assert_completed(made, kept)


def test_two_operators_at_once_create_one_backup_for_each_time() -> None:
    with bench() as made:
        made.start()
        with second_operator(made) as second:
            made.create(*schedule())
            let_both_run(made, second, 700)
        assert set(applied(made, "etcdbackups")) == {FIRST, SECOND}
        assert len(applied(made, "etcdbackups")) == 2
        assert len(set(applied(made, "jobs"))) == 2
        assert sorted(made.names(BACKUPS)) == [FIRST, SECOND]
        assert status(made)["lastBackup"]["name"] == SECOND
        assert reported(made, "BackupCompleted") == {FIRST: 1, SECOND: 1}


def test_another_operator_that_acts_during_a_pass_changes_nothing() -> None:

    def begin(made: Bench) -> None:
        made.create(*schedule())

    def end(made: Bench) -> None:
        let_run((made, Jobs(made)), 400.0)
        assert set(applied(made, "etcdbackups")) == {FIRST}
        assert len(set(applied(made, "jobs"))) == 1
        assert status(made)["lastBackup"]["phase"] == "Completed"

    assert at_each_write(begin, end) > 5


def test_a_backup_that_only_the_api_server_shows_is_not_joined_by_another() -> None:
    """The cache of EtcdBackups is behind, and the write of the status after the first one has failed."""
    with bench() as made:
        made.start()
        made.create(*schedule())
        operator = made.operator
        assert operator is not None
        made.wait(250.0)
        stored = made.get(SCHEDULES, "s")["metadata"]
        owner = {"apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdBackupSchedule", "name": "s"}
        (controller,) = next(g for g in operator.groups if g.name == "backup-schedules").controllers
        backups = next(g for g in operator.groups if g.name == "backups").informers[0]
        backups.reflector.stop()
        assert backups.stop()
        labels = {"etcd.improbable.io/backup-schedule-name": "s"}
        made.create(
            BACKUPS,
            {
                "metadata": {
                    "name": "s-20260101-0000",
                    "labels": labels,
                    "annotations": {"etcd.improbable.io/scheduled-time": "2026-01-01T00:00:00Z"},
                    "ownerReferences": [{**owner, "uid": stored["uid"], "controller": True}],
                },
                "spec": schedule()[1]["spec"]["backupTemplate"],
            },
        )
        made.clock.advance(60.0)
        controller._process(Key("default", "s"))
        assert created(made) == []
        ended = {"phase": "Completed"}
        made.edit(BACKUPS, "s-20260101-0000", {"status": ended}, subresource="status")
        controller._process(Key("default", "s"))
        assert created(made) == [FIRST]


@pytest.mark.parametrize(
    "change",
    [{"spec": {"suspend": True}}, {"spec": {"schedule": "0 3 * * *"}}, {"metadata": {"finalizers": ["x/y"]}}],
    ids=["suspended", "edited", "deleted"],
)
def test_a_change_that_only_the_api_server_shows_is_respected(change: dict[str, object]) -> None:
    with bench() as made:
        made.start()
        made.create(*schedule())
        made.wait(250.0)
        made.api.freeze_views()
        made.edit(SCHEDULES, "s", change)
        if "metadata" in change:
            made.delete(SCHEDULES, "s")
        made.wait(120.0)
        assert created(made) == []
        assert made.names(JOBS) == []


def test_an_outdated_copy_of_a_schedule_does_not_overwrite_its_status() -> None:
    """The write has the resourceVersion of what was decided on."""
    with bench() as made:
        made.start()
        made.create(*schedule())
        made.wait(1.0)
        writes = [w for w in made.writes() if w.request.plural == "etcdbackupschedules"]
        assert {w.request.subresource for w in writes} == {"status"}
        versions = [each for w in writes for each in w.request.body if "resourceVersion" in each["path"]]
        assert len(versions) == len(writes) > 0
