"""A retention that cannot be applied, or not at once: it is reported, and delays no backup."""

import pytest

from unit.fakes.apiserver.faults import no_fault
from unit.fakes.apiserver.kinds import JOBS, PODS
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import Made, schedule
from unit.passes.prune_steps import KEEP_TWO, pruned, prunes, stored
from unit.passes.schedule_steps import FIRST, SECOND, created, let_run, messages, status


def test_a_job_of_somebody_else_is_in_the_way_and_delays_no_backup(made: Made) -> None:
    world, _ = made
    job = stored(made)
    world.delete(JOBS, job["metadata"]["name"])
    world.create(JOBS, {"metadata": {"name": job["metadata"]["name"]}, "spec": job["spec"]})
    world.wait(15.0)
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("False", "NameConflict")
    let_run(made, 360.0)
    assert world.status(BACKUPS, SECOND)["phase"] == "Completed"


@pytest.mark.parametrize(("code", "cause"), [(403, "Forbidden"), (422, "Invalid"), (500, "InternalError")])
def test_a_job_that_cannot_be_created_delays_no_backup(made: Made, code: int, cause: str) -> None:
    world, jobs = made
    jobs.refuse(code, cause, "exceeded quota", named="-prune-")
    world.create(*schedule(**KEEP_TWO))
    let_run(made, 700.0)
    assert created(world) == [FIRST, SECOND]
    assert world.status(BACKUPS, SECOND)["phase"] == "Completed"
    assert pruned(world)["status"] == "False"
    assert "exceeded quota" in pruned(world)["message"]
    assert len({*messages(world, "PruneFailed")}) == 1
    world.api.before = no_fault
    let_run(made, 60.0)
    assert pruned(world)["status"] == "True"


def test_a_failure_is_reported_and_delays_no_backup(made: Made) -> None:
    world, jobs = made
    jobs.run(stored(made), {"error": "the bucket is gone", "reason": "BucketMissing"}, exit_code=1)
    world.drain()
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("False", "BucketMissing")
    text = "the bucket is gone; old backups remain until their removal is tried again, after the next backup"
    assert pruned(world)["message"] == text
    assert messages(world, "PruneFailed") == [text]
    assert world.condition(SCHEDULES, "Ready", "s")["status"] == "True"
    world.wait(100.0)
    assert len(prunes(made)) == 1, "it is not repeated before the next backup"
    let_run(made, 200.0)
    assert world.status(BACKUPS, SECOND)["phase"] == "Completed"
    assert pruned(world)["status"] == "True"


def test_a_job_that_hangs_delays_no_backup_and_there_is_never_a_second(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    pod = jobs.start(job)
    let_run(made, 960.0)
    assert [each["metadata"]["uid"] for each in prunes(made)] == [job["metadata"]["uid"]]
    assert len(created(world)) == 4
    assert world.status(BACKUPS, created(world)[-1])["phase"] == "Completed"
    world.delete(PODS, pod, grace=0)
    jobs.end(job, "Failed", "Job was active longer than specified deadline")
    world.drain()
    newest = created(world)[-1]
    assert any("longer than specified deadline" in each for each in messages(world, "PruneFailed"))
    let_run(made, 20.0)
    assert status(world)["lastPrune"]["request"].endswith(f"{newest}.db")


def test_a_pod_that_does_not_start_reports_why_also_after_it_was_given_up(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
    containers = [{"name": "backup", "state": {"waiting": waiting}}]
    pod = jobs.start(job, phase="Pending", containerStatuses=containers)
    world.drain()
    assert pruned(world)["reason"] == "PodPending"
    assert 'secret "s" not found' in pruned(world)["message"]
    world.delete(PODS, pod, grace=0)
    jobs.end(job, "Failed", "Job was active longer than specified deadline")
    world.drain()
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("False", "NotStarted")
    assert 'secret "s" not found' in pruned(world)["message"]
