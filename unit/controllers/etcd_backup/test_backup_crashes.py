"""A crash, a lost reply or a refusal at each write of an EtcdBackup: one Job, and the truth at the end."""

import pytest

from etcd_operator.keys import Key
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS
from unit.passes.disturbance import DISTURBANCES, Disturbance
from unit.passes.job_crashes import Errand
from unit.passes.jobs import Jobs, backup


def is_completed(made: Bench) -> bool:
    return bool(made.status(BACKUPS, "one").get("phase") == "Completed")


def assert_completed(made: Bench, jobs: Jobs) -> None:
    """One Job was ever made, its report is in the status, and nothing is written any more."""
    status = made.status(BACKUPS, "one")
    assert (status["phase"], status["revision"]) == ("Completed", 7)
    assert status["jobName"] == jobs.one()["metadata"]["name"]
    created = [w for w in made.writes() if w.request.plural == "jobs" and w.applied and w.code != 409]
    assert len({w.request.body["metadata"]["name"] for w in created}) == 1
    assert len(jobs.pods()) == 1
    made.rest()


ERRAND = Errand(
    lambda made: made.create(*backup()),
    is_completed,
    lambda made: assert_completed(made, Jobs(made)),
    writes=3,
)


@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_backup_is_taken_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    ERRAND.disturbed_at_each_write(disturbance)


@pytest.mark.parametrize("skips", [False, True])
def test_a_backup_is_taken_once_on_caches_that_lag_behind(skips: bool) -> None:
    ERRAND.on_lagging_caches(skips=skips)


def test_a_pass_waits_until_the_cache_shows_the_status_it_wrote() -> None:
    with bench() as made:
        made.start()
        made.api.freeze_views()
        made.create(*backup())
        made.api.freeze_views()  # now they show the EtcdBackup, and nothing after it
        made.run_until(lambda: made.status(BACKUPS, "one") != {})
        operator = made.operator
        assert operator is not None
        (controller,) = next(group for group in operator.groups if group.name == "backups").controllers
        controller.enqueue(Key("default", "one"))
        made.wait(1.0)
        assert [w.code for w in made.writes()] == [200], "a second write would be refused with 409"
        made.api.thaw_views()
        jobs = Jobs(made)
        jobs.until(lambda: is_completed(made))
        assert_completed(made, jobs)
