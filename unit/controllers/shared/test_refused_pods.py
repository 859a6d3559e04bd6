"""Jobs whose pod Kubernetes may not create: only their Events have the reason."""

import pytest

from unit.fakes.apiserver.kinds import EVENTS, JOBS
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import Made, backup
from unit.passes.prune_steps import pruned, stored

QUOTA = (
    "exceeded quota: small, requested: limits.memory=512Mi, used: limits.memory=0, limited: limits.memory=1Mi"
)


def refuse(made: Made, tries: int = 1) -> None:
    """What the Job controller writes about the newest Job, at each try."""
    world, jobs = made
    job = jobs.all()[-1]
    for number in range(tries):
        world.create(
            EVENTS,
            {
                "metadata": {"generateName": "refused-"},
                "involvedObject": {"kind": "Job", "uid": job["metadata"]["uid"]},
                "reason": "FailedCreate",
                "message": f'Error creating: pods "one-{number}" is forbidden: {QUOTA}',
                "lastTimestamp": f"2026-01-01T00:00:0{number}Z",
            },
        )


def test_a_quota_that_refuses_the_pod_of_a_backup_is_named_and_stays_in_the_status(made: Made) -> None:
    world, jobs = made
    world.create(*backup())
    world.run_until(lambda: bool(jobs.all()))
    refuse(made)
    world.wait(30.0)
    message = world.condition(BACKUPS, "Complete", "one")["message"]
    assert message == f"waiting for the pod to start: its pod cannot be created (FailedCreate): {QUOTA}"
    writes = len(world.writes())
    refuse(made, tries=3)
    world.wait(60.0)
    assert len(world.writes()) == writes, "the name of the pod is another one at each try"
    world.wait(600.0)
    assert world.names(JOBS) == []
    assert world.status(BACKUPS, "one")["phase"] == "Failed"
    assert QUOTA in world.condition(BACKUPS, "Complete", "one")["message"]
    world.rest()


def test_so_is_one_that_refuses_the_pod_of_a_removal(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    refuse(made)
    world.wait(70.0)
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("Unknown", "PodPending")
    assert QUOTA in pruned(world)["message"]
    jobs.end(job, "Failed", "Job was active longer than specified deadline")
    world.drain()
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("False", "NotStarted")
    assert QUOTA in pruned(world)["message"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_without_events_the_job_is_named(made: Made, seconds: float) -> None:
    world, jobs = made
    world.create(*backup())
    world.run_until(lambda: bool(jobs.all()))
    world.wait(seconds)
    assert "see `kubectl describe job" in world.condition(BACKUPS, "Complete", "one")["message"]
