"""A crash, a lost reply or an outdated cache while a backup is verified: one Job, and the truth."""

import pytest

from unit.fakes.apiserver.kinds import JOBS
from unit.passes.bench import Bench
from unit.passes.disturbance import DISTURBANCES, Disturbance
from unit.passes.job_crashes import Errand
from unit.passes.jobs import PROVEN, STORED, Jobs, Made, backup
from unit.passes.verification_steps import assert_stored, stored, verdict, verifying


def is_proven(world: Bench) -> bool:
    return verdict(world) == ("True", "Restored")


def assert_proven_once(world: Bench, jobs: Jobs) -> None:
    """Each of both Jobs was made once, and nothing is written any more."""
    assert is_proven(world)
    assert_stored(world)
    created = [w for w in world.writes() if w.request.plural == "jobs" and w.applied and w.code != 409]
    assert len({w.request.body["metadata"]["name"] for w in created}) == 2
    assert len(jobs.pods()) == 2
    world.rest()


def test_an_operator_with_an_outdated_cache_makes_no_second_job(made: Made) -> None:
    """It sees the EtcdBackup as it was right before the Job was made; meanwhile all is over."""
    world, jobs = made
    world.create(*backup(verify="Restore"))
    world.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one(), STORED)
    world.run_until(lambda: verdict(world) == ("Unknown", "Pending"))
    assert verifying(jobs) == []
    before = world.api.objects.store.revision
    jobs.until(lambda: is_proven(world))
    (job,) = verifying(jobs)
    world.delete(JOBS, job["metadata"]["name"])
    world.kill()
    world.api.freeze_views(before)
    world.start()
    world.wait(30.0)
    assert verifying(jobs) == []
    world.api.thaw_views()
    world.wait(30.0)
    assert (verdict(world), verifying(jobs)) == (("True", "Restored"), [])


def test_a_job_that_lost_its_label_is_still_known(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    world.edit(
        JOBS, job["metadata"]["name"], {"metadata": {"labels": {"etcd.improbable.io/backup-uid": None}}}
    )
    world.drain()
    assert verdict(world) == ("Unknown", "PodPending")
    jobs.run(job, PROVEN)
    world.run_until(lambda: is_proven(world))


ERRAND = Errand(
    lambda world: world.create(*backup(verify="Restore")),
    is_proven,
    lambda world: assert_proven_once(world, Jobs(world)),
    writes=6,
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_backup_is_verified_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    ERRAND.disturbed_at_each_write(disturbance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("skips", [False, True])
def test_a_backup_is_verified_once_on_caches_that_lag_behind(skips: bool) -> None:
    ERRAND.on_lagging_caches(skips=skips)
