"""Pods of Jobs in which a webhook has put a container that never ends."""

from unit.fakes.apiserver.kinds import PODS
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import PROVEN, PRUNED, STORED, Made, backup, beside_proxy, container_of, ended
from unit.passes.prune_steps import pruned, prunes, stored
from unit.passes.schedule_steps import let_run

MISSING = {"error": "no bucket", "reason": "BucketMissing"}


def stop_containers(made: Made) -> None:
    """The kubelet ends what is left of pods that are being deleted."""
    world, _ = made
    for pod in world.api.objects.select(PODS):
        if pod["metadata"].get("deletionTimestamp"):
            world.delete(PODS, pod["metadata"]["name"], grace=0)
    world.drain()


def test_a_removal_of_old_backups_ends_with_its_command(made: Made) -> None:
    world, jobs = made
    pod = jobs.start(stored(made))
    jobs.report(pod, **beside_proxy(ended(PRUNED)))
    world.drain()
    assert (pruned(world)["status"], pruned(world)["message"]) == ("True", "removed 2 backups, 3 left")
    assert len(prunes(made)) == 1, "its pod may be about to end"
    world.wait(130.0)
    assert pruned(world)["status"] == "True"
    stop_containers(made)
    assert prunes(made) == []
    assert pruned(world)["message"] == "removed 2 backups, 3 left"


def test_so_does_one_that_fails(made: Made) -> None:
    world, jobs = made
    pod = jobs.start(stored(made))
    jobs.report(pod, **beside_proxy(ended(MISSING, 1)))
    world.wait(30.0)
    assert pruned(world)["status"] == "Unknown", "Kubernetes may repeat it"
    world.wait(100.0)
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("False", "BucketMissing")
    world.wait(100.0)
    stop_containers(made)
    assert prunes(made) == []
    let_run(made, 300.0)
    assert pruned(world)["status"] == "True"


def test_the_jobs_of_a_backup_that_has_ended_are_removed(made: Made) -> None:
    world, jobs = made
    world.create(*backup(verify="Hash"))
    world.run_until(lambda: bool(jobs.all()))
    storing = jobs.one()
    jobs.report(jobs.start(storing), **beside_proxy(ended(STORED)))
    world.run_until(lambda: len(jobs.all()) == 2)
    world.wait(130.0)
    stop_containers(made)
    (verifying,) = jobs.all()
    assert container_of(verifying) == "verify", "the other one may keep the claim in use"
    jobs.report(jobs.start(verifying), **beside_proxy(ended(PROVEN, name="verify")))
    world.wait(30.0)
    assert world.condition(BACKUPS, "Verified", "one")["status"] == "True"
    assert len(jobs.all()) == 1
    world.wait(130.0)
    stop_containers(made)
    assert jobs.all() == []
    assert [pod["metadata"]["name"] for pod in world.api.objects.select(PODS)] == []
    world.rest()


def test_a_job_whose_pod_has_ended_is_kept_for_its_log(made: Made) -> None:
    world, jobs = made
    world.create(*backup())
    world.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one(), STORED)
    world.wait(200.0)
    assert len(jobs.all()) == 1
