"""A crash, a lost reply or a refusal at each write of an EtcdRestore: it goes on, or leaves nothing."""

import pytest

from unit.fakes.apiserver import Json
from unit.passes.bench import Bench, bench
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, run_or_die
from unit.passes.restoring import SNAPSHOT, TEMPLATE, Restoring, restore

ONE = {**TEMPLATE, "replicas": 1}
DAMAGED: tuple[Json, int] = ({"error": "it is damaged", "reason": "Damaged"}, 3)


def carried_out(made: Bench, disturbance: Disturbance, write: int, *, fails: bool) -> bool:
    """One restore with a disturbance at one write; whether it has so many writes."""
    restoring = Restoring(made)
    if fails:
        restoring.answers["-0-"] = DAMAGED
    has_come = disturbance.arrange(made, write)
    made.create(*restore(template=ONE))

    def end() -> None:
        restoring.until(lambda: restoring.phase in ("Completed", "Failed"))

    if not run_or_die(made, end):
        if disturbance.world_goes_on:
            restoring.run_all()
        made.start()
        end()
    if fails:
        assert (restoring.phase, restoring.reason) == ("Failed", "BackupDamaged")
        restoring.assert_nothing_left()
    else:
        assert restoring.phase == "Completed", restoring.status
        assert (restoring.claims, restoring.clusters) == (["c-0"], ["c"])
        assert restoring.status["snapshot"] == SNAPSHOT
    return has_come()


def at_each_write(disturbance: Disturbance, *, fails: bool) -> None:
    writes = EachWrite()
    for write in writes:
        with bench() as made:
            writes.goes_on = carried_out(made, disturbance, write, fails=fails) and write < 25
    assert writes.runs >= 10


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_restore_is_completed_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    at_each_write(disturbance, fails=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_restore_that_fails_leaves_nothing_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    at_each_write(disturbance, fails=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fails", [False, True])
def test_it_goes_on_after_a_crash_at_any_write(fails: bool) -> None:
    at_each_write(DISTURBANCES["it dies after the reply"], fails=fails)
