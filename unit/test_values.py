"""Keys, errors and the clock: the words that all layers share."""

import threading
from datetime import UTC

import pytest

from etcd_operator import errors
from etcd_operator.clock import SystemClock
from etcd_operator.errors import OperatorError, RetryableError, TerminalError
from etcd_operator.keys import Key


def test_a_key_reads_as_namespace_and_name() -> None:
    assert str(Key("ns", "db")) == "ns/db"
    assert str(Key("", "node-1")) == "node-1"


@pytest.mark.parametrize(
    "error", [errors.Conflict, errors.AlreadyExists, errors.Unavailable, errors.Throttled]
)
def test_what_may_pass_later_is_retryable(error: type[OperatorError]) -> None:
    assert issubclass(error, RetryableError)
    assert not issubclass(error, TerminalError)


@pytest.mark.parametrize("error", [errors.Invalid, errors.InvalidSpec, errors.Forbidden])
def test_what_no_repetition_helps_is_terminal(error: type[OperatorError]) -> None:
    assert issubclass(error, TerminalError)
    assert not issubclass(error, RetryableError)


@pytest.mark.parametrize("error", [errors.NotFound, errors.Gone])
def test_what_is_not_there_is_neither(error: type[OperatorError]) -> None:
    assert issubclass(error, OperatorError)
    assert not issubclass(error, (RetryableError, TerminalError))


def test_an_unanswered_write_may_have_been_applied_only_if_stated() -> None:
    assert not errors.Unavailable("x").maybe_applied
    assert errors.Unavailable("x", maybe_applied=True).maybe_applied


def test_a_throttled_call_waits_a_second_by_default() -> None:
    assert errors.Throttled("x").retry_after == 1.0
    assert errors.Throttled("x", retry_after=7).retry_after == 7


def test_the_system_clock_is_aware_and_never_goes_back() -> None:
    clock = SystemClock()

    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


def test_the_system_clock_waits_on_the_condition_it_is_given() -> None:
    condition = threading.Condition()
    woken: list[bool] = []

    def notify() -> None:
        with condition:  # free only while the clock waits
            woken.append(True)
            condition.notify_all()

    thread = threading.Thread(target=notify)
    with condition:
        thread.start()
        SystemClock().wait(condition, 60)
        assert woken
        SystemClock().wait(condition, 0)  # nobody notifies: the timeout ends it
    thread.join()
