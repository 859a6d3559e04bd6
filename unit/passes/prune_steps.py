"""A schedule with a retention, and what its Jobs and its status show."""

from unit.fakes.apiserver import Json
from unit.passes.bench import Bench
from unit.passes.bodies import SCHEDULES
from unit.passes.jobs import Made, is_prune, schedule
from unit.passes.schedule_steps import FIRST

KEEP_TWO: Json = {"retention": {"maxCount": 2}}
URL = f"s3://bucket/default/{FIRST}.db"


def prunes(made: Made) -> list[Json]:
    """The Jobs that remove old backups."""
    return [job for job in made[1].all() if is_prune(job)]


def arguments(job: Json) -> list[str]:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return [str(each) for each in container["args"]]


def pruned(world: Bench) -> Json:
    return world.condition(SCHEDULES, "Pruned", "s")


def stored(made: Made, **spec: object) -> Json:
    """A schedule whose first backup is stored; the Job that was made then."""
    world, jobs = made
    world.create(*schedule(**spec or KEEP_TWO))
    world.run_until(lambda: bool(jobs.all()))
    world.drain()
    jobs.run(jobs.one(), {"name": "x", "source": "c:2379", "seconds": 1.0, "manifest": None})
    world.drain()
    world.run_until(lambda: bool(prunes(made)))
    world.drain()
    (job,) = prunes(made)
    return job
