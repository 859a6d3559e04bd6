"""A crash, a lost reply or a refusal at each write for a cluster's backups."""

from collections.abc import Callable

import pytest

from unit.controllers.backup_tool.test_backup_tool import BACKUP, CLAIM, TOOL, ask, health, runs
from unit.fakes.apiserver.kinds import CLAIMS, REPLICA_SETS, SECRETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, run_or_die, survives_lag

GROUPS = (COREOS.group, "backup-tools")


def begun(made: Bench) -> None:
    """A cluster of one member that serves; the operator is away."""
    made.start()
    made.create(*ephemeral(size=1))
    made.settle()
    made.kill()
    ask(made, {**BACKUP, "cleanupBackupsOnClusterDelete": True})


def is_done(made: Bench) -> bool:
    return health(made)[0] == "True" and runs(made)


def assert_as_wanted(made: Bench) -> None:
    """One of each, and nothing is written any more."""
    made.settle()
    for kind, name in ((REPLICA_SETS, TOOL), (SECRETS, TOOL), (CLAIMS, CLAIM)):
        assert made.names(kind) == [name]
    assert TOOL in made.names(SERVICES)
    assert made.status(COREOS)["backup"]["revision"] == 7
    assert made.status(COREOS)["clusterID"]
    made.rest()


def at_each_write(survives: Callable[[Bench, int], bool], more_than: int) -> None:
    """A cluster that is about to be backed up, for each write; survives: false if there is no such write."""
    writes = EachWrite()
    for write in writes:
        with bench(only=GROUPS) as made:
            begun(made)
            writes.goes_on = survives(made, write)
    assert writes.runs >= more_than


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_backups_begin_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    def begin(made: Bench, write: int) -> bool:
        has_come = disturbance.arrange(made, write)
        if not run_or_die(made, lambda: made.run_until(lambda: is_done(made))):
            if disturbance.world_goes_on:
                while made.step():
                    pass
            made.start()
            made.run_until(lambda: is_done(made))
        goes_on = has_come()
        assert_as_wanted(made)
        return goes_on

    at_each_write(begin, 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("skips", [False, True])
def test_backups_begin_on_caches_that_lag_behind(skips: bool) -> None:
    def begin(made: Bench, write: int) -> bool:
        goes_on = survives_lag(made, write, lambda: is_done(made), skips=skips)
        made.run_until(lambda: is_done(made))
        assert_as_wanted(made)
        return goes_on

    at_each_write(begin, 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_backups_are_deleted_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    def delete(made: Bench, write: int) -> bool:
        def is_gone() -> bool:
            return made.names(COREOS) == [] and made.names(CLAIMS) == []

        made.start()
        made.run_until(lambda: is_done(made))
        made.settle()
        made.kill()
        made.delete(COREOS, "c")
        has_come = disturbance.arrange(made, write)
        if not run_or_die(made, lambda: made.run_until(is_gone)):
            made.start()
            made.run_until(is_gone)
        return has_come()

    at_each_write(delete, 2)
