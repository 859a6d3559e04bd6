"""What is remembered of pods to which no reader could be added."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.recovery.readers import PATIENCE, REFUSED_SECONDS, Readings
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.keys import Key
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, changed, persistent, pod
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import lost
from unit.fakes.clock import FakeClock

KEY = Key("ns", "db")


class Leading:
    """A process that may lose its leadership, and its readings."""

    def __init__(self) -> None:
        self.clock, self.epoch = FakeClock(), 0
        self.readings = Readings(
            inquiries=Mock(),
            clock=self.clock,
            waits=self._waits(),
            tokens=Mock(),
            trust=Mock(),
            writes=Mock(),
        )

    def _waits(self) -> Waits:
        return Waits(clock=self.clock, epoch=lambda: self.epoch)


def test_a_refusal_is_forgotten_when_another_one_comes_after_its_time() -> None:
    """Its pod may be gone: nobody asks for it again."""
    made = Leading()
    clock, readings = made.clock, made.readings
    readings.refuse(pod("db-0", uid="first"), "a policy forbids it")
    clock.advance(REFUSED_SECONDS - 1.0)
    readings.refuse(pod("db-1", uid="second"), "a policy forbids it")
    assert set(readings._refused) == {"first", "second"}
    clock.advance(1.0)
    readings.refuse(pod("db-2", uid="third"), "a policy forbids it")
    assert set(readings._refused) == {"second", "third"}


def test_a_failure_counts_as_lasting_from_the_first_one_that_was_noted() -> None:
    made = Leading()
    clock, readings = made.clock, made.readings
    assert not readings.note_failure(KEY, pod("db-0"))
    clock.advance(PATIENCE - 1.0)
    assert not readings.note_failure(KEY, pod("db-0"))
    clock.advance(1.0)
    assert readings.note_failure(KEY, pod("db-0"))
    assert not readings.note_failure(KEY, pod("db-1"))


FOUND_A_LEADER = ReaderFacts(name="survivor-reader-1", has_ended=True, found_leader=True)


@pytest.mark.parametrize("is_seen", [True, False], ids=["the quorum was seen", "the Lease was lost"])
def test_what_a_reader_found_counts_until_the_quorum_is_seen_to_have_returned(is_seen: bool) -> None:
    """Not only until a Lease is lost: members that follow a leader would be given up."""
    made = Leading()

    def seen() -> bool:
        """Whether the member counts as one that follows a leader."""
        return made.readings(KEY, state).by_name["db-2"].followed_a_leader

    state = _read_by(ReaderFacts(name="survivor-reader-1"))
    assert not seen()
    state = _read_by(FOUND_A_LEADER)
    made.clock.advance(1e6)
    assert seen()
    if is_seen:
        made.readings(KEY, _with_reader(bootstrapped(persistent()), FOUND_A_LEADER))
    else:
        made.epoch += 1
    assert seen() is not is_seen


@pytest.mark.parametrize("jump", [-190.0, 0.0, 190.0])
def test_a_clock_that_is_wrong_changes_nothing_of_what_a_reader_found(jump: float) -> None:
    """Also of one that ended before this process saw it: it may have restarted within the loss."""
    made = Leading()
    state = _read_by(FOUND_A_LEADER)
    made.clock.jump(jump)
    assert made.readings(KEY, state).by_name["db-2"].followed_a_leader
    made.clock.jump(jump)
    assert made.readings(KEY, state).by_name["db-2"].followed_a_leader


def test_readers_of_pods_that_are_gone_are_forgotten() -> None:
    made = Leading()
    made.readings(KEY, _read_by(FOUND_A_LEADER))
    assert made.readings._ended
    made.readings(KEY, lost())
    assert not made.readings._ended


def _with_reader(state: ClusterState, reader: ReaderFacts) -> ClusterState:
    return changed(state, "db-2", pod=pod("db-2", is_running=True, reader=reader))


def _read_by(reader: ReaderFacts) -> ClusterState:
    """The quorum is lost, since when the status does not record, and the third member has this reader."""
    state = changed(_with_reader(lost(), reader), "db-2", answer=None)
    return replace(state, unavailable_for=0.0)
