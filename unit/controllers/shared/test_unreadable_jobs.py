"""EtcdBackups, schedules and EtcdRestores that exist and cannot be read: they are not deleted."""

from unit.passes.bench import bench
from unit.passes.bodies import BACKUPS, IMPROBABLE, RESTORES, SCHEDULES, persistent
from unit.passes.jobs import Made, backup, schedule
from unit.passes.restoring import Restoring
from unit.passes.restoring import restore as restored
from unit.passes.schedule_steps import let_run
from unit.passes.unreadable import KNOWN_OR_NOT, WHY, events, mend, spoil


@KNOWN_OR_NOT
def test_a_schedule_that_cannot_be_read_makes_no_backup_and_stays_shown(made: Made, *, is_new: bool) -> None:
    world, _ = made
    world.create(*schedule())
    let_run(made, 600.0)
    assert world.operator is not None
    shown = dict(world.operator.backup_metrics)
    assert shown
    good = spoil(world, SCHEDULES, "s", "conditions")
    before = world.names(BACKUPS)
    if is_new:
        world.restart()
    world.wait(900.0)
    assert world.names(BACKUPS) == before
    assert len(events(world, SCHEDULES)) == 1
    assert world.operator.backup_metrics == ({} if is_new else shown)
    mend(world, SCHEDULES, good, "s")
    let_run(made, 600.0)
    assert world.names(BACKUPS) != before


@KNOWN_OR_NOT
def test_a_restore_that_cannot_be_read_goes_on_once_it_is(*, is_new: bool) -> None:
    with bench() as world:
        world.start()
        made = Restoring(world)
        world.create(*restored())
        world.run_until(lambda: made.phase == "Pending")
        good = spoil(world, RESTORES, "r", "conditions")
        assert world.operator is not None
        shown = dict(world.operator.restore_metrics)
        assert shown
        if is_new:
            world.restart()
        world.wait(120.0)
        assert len(events(world, RESTORES)) == 1
        assert world.operator.restore_metrics == ({} if is_new else shown)
        mend(world, RESTORES, good, "r")
        made.until_ended()


def test_the_health_of_backups_is_written_once_their_cluster_is_read(made: Made) -> None:
    world, _ = made
    world.create(*persistent(size=1))
    world.settle()
    good = spoil(world, IMPROBABLE)
    template = {**schedule()[1]["spec"]["backupTemplate"], "source": {"clusterName": "c"}}
    before = len(world.api.writes)
    world.create(*schedule(backupTemplate=template))
    world.wait(60.0)
    tried = [write for write in world.api.writes[before:] if "etcdclusters" in write.request.path]
    assert tried == []
    mend(world, IMPROBABLE, good)
    world.run_until(lambda: world.condition(IMPROBABLE, "BackupHealthy") != {})


@KNOWN_OR_NOT
def test_an_etcd_backup_that_cannot_be_read_is_completed_once_it_is(made: Made, *, is_new: bool) -> None:
    world, jobs = made
    world.create(*backup())
    jobs.until(lambda: bool(jobs.all()))
    good = spoil(world, BACKUPS, "one", "conditions")
    if is_new:
        world.restart()
    world.drain()
    jobs.run_all()
    writes = world.count_writes()
    world.wait(120.0)
    assert world.count_writes() == writes
    assert [count for *_, count in events(world, BACKUPS)] == [1]
    mend(world, BACKUPS, good, "one")
    world.run_until(lambda: world.status(BACKUPS, "one")["phase"] == "Completed")


def test_the_source_of_a_backup_that_cannot_be_read_is_not_an_unknown_one(made: Made) -> None:
    world, _ = made
    world.create(*persistent(size=1))
    world.settle()
    spoil(world, IMPROBABLE)
    world.create(*backup(source={"clusterName": "c"}))
    world.wait(30.0)
    found = world.condition(BACKUPS, "Complete", "one")
    assert (found["status"], found["reason"]) == ("False", "SourceNotReady")
    assert WHY in found["message"]
