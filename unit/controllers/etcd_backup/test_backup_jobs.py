"""The one Job of an EtcdBackup: it is found whatever others did to it, and never made a second time."""

from unit.controllers.etcd_backup.test_backups import begun, complete, phase
from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import STORED, Made, backup


def test_a_job_that_somebody_deleted_is_not_made_again(made: Made) -> None:
    world, jobs = made
    begun(made)
    world.delete(JOBS, jobs.one()["metadata"]["name"])
    world.drain()
    assert (phase(world), complete(world)["reason"]) == ("Failed", "JobDeleted")
    world.wait(60.0)
    assert jobs.all() == []


def test_a_job_that_lost_its_label_is_still_known(made: Made) -> None:
    world, jobs = made
    job = begun(made)
    world.edit(
        JOBS, job["metadata"]["name"], {"metadata": {"labels": {"etcd.improbable.io/backup-uid": None}}}
    )
    world.drain()
    assert phase(world) == "BackingUp"
    jobs.run(job, STORED)
    world.run_until(lambda: phase(world) == "Completed")


def test_an_operator_with_an_outdated_cache_makes_no_second_job(made: Made) -> None:
    """It sees the EtcdBackup as it was right before the Job was made; meanwhile all is over."""
    world, jobs = made
    world.create(*backup())
    world.run_until(lambda: phase(world) == "BackingUp")
    assert jobs.all() == []
    before = world.api.objects.store.revision
    jobs.until(lambda: phase(world) == "Completed")
    world.delete(JOBS, jobs.one()["metadata"]["name"])
    world.kill()
    world.api.freeze_views(before)
    world.start()
    reads = len(world.api.log)
    world.wait(30.0)
    assert jobs.all() == []
    assert len(world.api.log) - reads < 100, "it does not ask for the same again and again"
    world.api.thaw_views()
    world.wait(30.0)
    assert (phase(world), jobs.all()) == ("Completed", [])


def test_a_job_of_somebody_else_is_not_ours(made: Made) -> None:
    world, jobs = made
    world.kill()
    world.create(*backup())
    world.start()
    world.run_until(lambda: phase(world) == "BackingUp")
    assert jobs.all() == []
    from etcd_operator.api.meta import ObjectMeta
    from etcd_operator.controllers.etcd_backup.manifests.backup_job import job_name

    uid = world.get(BACKUPS, "one")["metadata"]["uid"]
    name = job_name(ObjectMeta(name="one", uid=uid))
    world.create(
        JOBS, {"metadata": {"name": name, "labels": {"etcd.improbable.io/backup-uid": uid}}, "spec": {}}
    )
    jobs.end(jobs.one(), "Complete")
    world.run_until(lambda: complete(world)["reason"] == "NameConflict")
    assert "belongs to somebody else" in complete(world)["message"]
    assert phase(world) == "BackingUp"
    world.delete(JOBS, name)
    jobs.until(lambda: phase(world) == "Completed")


def test_another_object_of_the_same_name_has_a_job_of_its_own(made: Made) -> None:
    world, jobs = made
    first = begun(made)
    world.delete(BACKUPS, "one")
    world.create(*backup())
    world.run_until(lambda: any(job["metadata"]["uid"] != first["metadata"]["uid"] for job in jobs.all()))
    assert jobs.one()["metadata"]["name"] != first["metadata"]["name"]
