"""A crash, a lost reply or a refusal at each write of an EtcdBackup: one Job, and the truth at the end."""

from collections.abc import Callable

import pytest

from etcd_operator.keys import Key
from unit.reconcile.bench import Bench, bench
from unit.reconcile.bodies import BACKUPS
from unit.reconcile.disturbance import DISTURBANCES, Disturbance, run_or_die, survives_lag
from unit.reconcile.jobs import Jobs, backup

Play = Callable[[Bench, Jobs], None]


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


@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_backup_is_taken_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            jobs = Jobs(made)
            has_come = disturbance.arrange(made, write)
            made.create(*backup())

            def complete(made: Bench = made, jobs: Jobs = jobs) -> None:
                jobs.until(lambda: is_completed(made))

            if not run_or_die(made, complete):
                if disturbance.world_goes_on:
                    jobs.run_all()
                made.start()
                complete()
            made.wait(5.0)
            goes_on = has_come()
            assert_completed(made, jobs)
            write += 1
    assert write > 3


@pytest.mark.parametrize("skips", [False, True])
def test_a_backup_is_taken_once_on_caches_that_lag_behind(skips: bool) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            jobs = Jobs(made)
            made.create(*backup())

            def is_done(made: Bench = made, jobs: Jobs = jobs) -> bool:
                jobs.run_all()
                return is_completed(made)

            goes_on = survives_lag(made, write, is_done, skips=skips)
            jobs.until(lambda made=made: is_completed(made))  # type: ignore[misc]
            assert_completed(made, jobs)
            write += 1
    assert write > 3


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
