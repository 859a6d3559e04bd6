"""Which EtcdBackups of a schedule are kept, and for which of them the next one waits."""

import pytest

from etcd_operator.controllers.etcd_backup_schedule.decide.state import due_of
from etcd_operator.formats import timestamp
from unit.controllers.etcd_backup_schedule.decide.schedules import at, planned, state, taken


@pytest.mark.parametrize(
    ("successful", "failed", "expected"),
    [
        (3, 1, ["11 01:00", "8 01:00"]),
        (0, 0, ["11 01:00", "13 01:00", "14 01:00", "15 01:00", "8 01:00", "12 01:00"]),
        (1, 9, ["11 01:00", "13 01:00", "14 01:00"]),
        (9, 9, []),
    ],
)
def test_only_the_last_that_ended_are_kept(successful: int, failed: int, expected: list[str]) -> None:
    backups = (
        taken("15 01:00"),
        taken("14 01:00"),
        taken("13 01:00"),
        taken("12 01:00", "Failed"),
        taken("11 01:00"),
        taken("10 01:00", is_deleting=True),
        taken("9 01:00", ""),
        taken("8 01:00", "Failed"),
        taken("7 01:00", "BackingUp"),
    )
    made = planned(state(backups=backups, successful_kept=successful, failed_kept=failed))
    assert [due_of(backup) for backup in made.surplus] == [at(each) for each in expected]


def test_the_oldest_is_the_one_that_was_created_first() -> None:
    """Not the one with the earliest time of the schedule: the operator's clock may have been wrong."""
    mistaken = taken("29 01:00", created=timestamp(at("20 01:00")))
    made = planned(state(backups=(taken("21 01:00"), taken("22 01:00"), mistaken), successful_kept=2))
    assert made.surplus == (mistaken,)
