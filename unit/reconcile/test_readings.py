"""What is remembered of pods to which no reader could be added."""

from unittest.mock import Mock

from etcd_operator.keys import Key
from etcd_operator.reconcile.readings import PATIENCE, REFUSED_SECONDS, Readings
from etcd_operator.reconcile.waits import Waits
from unit.core.builders import pod
from unit.fakes.clock import FakeClock

KEY = Key("ns", "db")


def readings_of(clock: FakeClock) -> Readings:
    return Readings(inquiries=Mock(), clock=clock, waits=Waits(clock=clock))


def test_a_refusal_is_forgotten_when_another_one_comes_after_its_time() -> None:
    """Its pod may be gone: nobody asks for it again."""
    clock = FakeClock()
    readings = readings_of(clock)
    readings.refuse(pod("db-0", uid="first"), "a policy forbids it")
    clock.advance(REFUSED_SECONDS - 1.0)
    readings.refuse(pod("db-1", uid="second"), "a policy forbids it")
    assert set(readings._refused) == {"first", "second"}
    clock.advance(1.0)
    readings.refuse(pod("db-2", uid="third"), "a policy forbids it")
    assert set(readings._refused) == {"second", "third"}


def test_a_failure_counts_as_lasting_from_the_first_one_that_was_noted() -> None:
    clock = FakeClock()
    readings = readings_of(clock)
    assert not readings.note_failure(KEY, pod("db-0"))
    clock.advance(PATIENCE - 1.0)
    assert not readings.note_failure(KEY, pod("db-0"))
    clock.advance(1.0)
    assert readings.note_failure(KEY, pod("db-0"))
    assert not readings.note_failure(KEY, pod("db-1"))
