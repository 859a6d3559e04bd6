"""Crashes, lost replies and refusals at each write while old backups are removed: done once, never two."""

import pytest

from unit.fakes.apiserver import Json
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.disturbance import DISTURBANCES, Disturbance
from unit.passes.job_crashes import Errand
from unit.passes.jobs import Jobs, is_prune, schedule
from unit.passes.schedule_steps import FIRST, created, status
from unit.passes.two_operators import let_both_run, second_operator

RETENTION: Json = {"maxCount": 2}


def is_pruned(made: Bench) -> bool:
    return "lastPrune" in status(made)


def assert_pruned(made: Bench) -> None:
    """One backup and one Job after it, the status reports both, and nothing is written any more."""
    made.wait(15.0)
    assert set(created(made)) <= {FIRST}
    assert made.status(BACKUPS, FIRST)["phase"] == "Completed"
    last = status(made)["lastPrune"]
    assert last["request"] == f"maxCount 2 after s3://bucket/default/{FIRST}.db"
    assert (last["removed"], last["stored"]) == (2, 3)
    assert len([job for job in Jobs(made).all() if is_prune(job)]) == 1
    assert prunes_begun(made) == 1
    made.rest()


def prunes_begun(made: Bench) -> int:
    """How many Jobs that remove backups were ever let begin: one that stays suspended is replaced."""
    jobs = [w for w in made.writes() if (w.request.method, w.request.plural) == ("PATCH", "jobs")]
    return len([w for w in jobs if w.applied and w.code != 409])


ERRAND = Errand(lambda made: made.create(*schedule(retention=RETENTION)), is_pruned, assert_pruned, writes=9)


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_each_backup_is_followed_by_one_prune_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    ERRAND.disturbed_at_each_write(disturbance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("skips", [False, True])
def test_each_backup_is_followed_by_one_prune_on_caches_that_lag_behind(skips: bool) -> None:
    ERRAND.on_lagging_caches(skips=skips)


def test_two_operators_at_once_never_run_two() -> None:
    with bench() as made:

        def at_most_one() -> None:
            assert len([job for job in Jobs(made).all() if is_prune(job)]) <= 1

        made.start()
        with second_operator(made) as second:
            made.create(*schedule(retention=RETENTION))
            let_both_run(made, second, 400, at_most_one)
        assert_pruned(made)


def test_an_edit_that_only_the_api_server_shows_is_respected() -> None:
    """The cache still has a retention that would remove more."""
    with bench() as made:
        made.start()
        jobs = Jobs(made)
        made.create(*schedule(retention={"maxCount": 1}))
        made.run_until(lambda: bool(jobs.all()))
        made.drain()
        jobs.run_all()
        made.run_until(lambda: "lastSuccessfulURL" in status(made))
        made.api.freeze_views()
        made.edit(SCHEDULES, "s", {"spec": {"retention": {"maxCount": 7}}})
        made.wait(30.0)
        assert prunes_begun(made) == 0
        made.api.thaw_views()
        made.wait(5.0)
        (job,) = (each for each in jobs.all() if is_prune(each))
        assert "--max-count=7" in job["spec"]["template"]["spec"]["containers"][0]["args"]
