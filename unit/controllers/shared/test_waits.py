"""For how long passes have waited: only what one process has seen while it led."""

from etcd_operator.controllers.shared.failures import PATIENCE, Failures
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.errors import Forbidden, Unavailable
from etcd_operator.keys import Key
from unit.fakes.clock import FakeClock

KEY = Key("ns", "db")


class Leading:
    """A process that may lose its leadership."""

    def __init__(self) -> None:
        self.clock, self.epoch = FakeClock(), 0
        self.waits = Waits(clock=self.clock, epoch=lambda: self.epoch)
        self.failures = Failures(self.clock, lambda: self.epoch)


def test_a_wait_counts_from_when_it_was_first_asked_for_until_it_ends() -> None:
    made = Leading()
    assert made.waits.seconds(KEY, "a pod") == 0.0
    made.clock.advance(5.0)
    assert made.waits.seconds(KEY, "a pod") == 5.0
    assert made.waits.seconds(KEY, "a volume") == 0.0
    made.waits.end(KEY, "a pod")
    assert made.waits.seconds(KEY, "a pod") == 0.0


def test_a_wait_begins_anew_after_leadership_was_lost() -> None:
    made = Leading()
    made.waits.seconds(KEY, "a pod")
    made.epoch += 1
    made.clock.advance(660.0)
    assert made.waits.seconds(KEY, "a pod") == 0.0
    made.clock.advance(5.0)
    assert made.waits.seconds(KEY, "a pod") == 5.0


def test_tries_in_a_row_are_counted_anew_after_leadership_was_lost() -> None:
    made, error = Leading(), Unavailable("no answer")
    for _ in range(PATIENCE - 1):
        assert made.failures.failed(KEY, error) == ""
    made.epoch += 1
    for _ in range(PATIENCE - 1):
        assert made.failures.failed(KEY, error) == ""
    assert made.failures.failed(KEY, error) == "no answer"


def test_the_message_of_a_failure_is_not_kept_after_leadership_was_lost() -> None:
    made = Leading()
    assert made.failures.failed(KEY, Forbidden("no right")) == "no right"
    assert made.failures.failed(KEY, Forbidden("no other right")) == "no right"
    made.epoch += 1
    assert made.failures.failed(KEY, Forbidden("no other right")) == "no other right"
