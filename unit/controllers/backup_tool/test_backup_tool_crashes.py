"""A crash, a lost reply or a refusal at each write for a cluster's backups."""

import pytest

from unit.controllers.backup_tool.test_backup_tool import BACKUP, CLAIM, TOOL, ask, health, runs
from unit.fakes.apiserver.kinds import CLAIMS, REPLICA_SETS, SECRETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disturbance import DISTURBANCES, Disturbance, run_or_die, survives_lag

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


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_backups_begin_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench(only=GROUPS) as made:
            begun(made)
            has_come = disturbance.arrange(made, write)
            if not run_or_die(made, lambda made=made: made.run_until(lambda: is_done(made))):  # type: ignore[misc]
                if disturbance.world_goes_on:
                    while made.step():
                        pass
                made.start()
                made.run_until(lambda made=made: is_done(made))  # type: ignore[misc]
            goes_on = has_come()
            assert_as_wanted(made)
            write += 1
    assert write > 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("skips", [False, True])
def test_backups_begin_on_caches_that_lag_behind(skips: bool) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench(only=GROUPS) as made:
            begun(made)
            goes_on = survives_lag(made, write, lambda made=made: is_done(made), skips=skips)  # type: ignore[misc]
            made.run_until(lambda made=made: is_done(made))  # type: ignore[misc]
            assert_as_wanted(made)
            write += 1
    assert write > 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_backups_are_deleted_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench(only=GROUPS) as made:
            begun(made)
            made.start()
            made.run_until(lambda made=made: is_done(made))  # type: ignore[misc]
            made.settle()
            made.kill()
            made.delete(COREOS, "c")
            has_come = disturbance.arrange(made, write)

            def gone(made: Bench = made) -> bool:
                return made.names(COREOS) == [] and made.names(CLAIMS) == []

            if not run_or_die(made, lambda made=made, gone=gone: made.run_until(gone)):  # type: ignore[misc]
                made.start()
                made.run_until(gone)
            goes_on = has_come()
            write += 1
    assert write > 2
