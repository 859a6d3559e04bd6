"""EtcdBackups with spec.verify, brought to the Job that verifies them."""

from typing import Any

from unit.fakes.apiserver import Json
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import STORED, Jobs, Made, backup, container_of


def verdict(world: Bench) -> tuple[str, str]:
    """Status and reason of the condition Verified."""
    found = world.condition(BACKUPS, "Verified", "one")
    return str(found.get("status", "")), str(found.get("reason", ""))


def message(world: Bench) -> str:
    return str(world.condition(BACKUPS, "Verified", "one").get("message", ""))


def verifying(jobs: Jobs) -> list[Json]:
    """The Jobs that verify."""
    return [job for job in jobs.all() if container_of(job) == "verify"]


def stored(made: Made, level: str = "Restore", **spec: Any) -> Json:
    """An EtcdBackup that is stored; the Job that verifies it."""
    world, jobs = made
    world.create(*backup(verify=level, **spec))
    world.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one(), STORED)
    world.run_until(lambda: bool(verifying(jobs)))
    world.drain()
    (job,) = verifying(jobs)
    return job


def assert_stored(world: Bench) -> None:
    """Whatever came of its verification."""
    status = world.status(BACKUPS, "one")
    assert (status["phase"], status["revision"]) == ("Completed", 7)
    assert world.condition(BACKUPS, "Complete", "one")["status"] == "True"
    assert world.condition(BACKUPS, "Failed", "one")["status"] == "False"
