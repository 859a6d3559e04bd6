"""The time limit that only progress extends, without a network."""

from collections.abc import Callable

import pytest

from etcd_operator.storage.errors import AccessDenied, Stalled, Transient
from etcd_operator.storage.parts import Body
from etcd_operator.storage.retries import Attempts, reason


class Time:
    """A clock that moves by sleeping, and by what requests take."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def attempts(self, stall: float) -> Attempts:
        return Attempts(stall, clock=lambda: self.now, sleep=self.sleep)


def failing(time: Time, took: float, then: Callable[[], None] = lambda: None) -> Callable[[], None]:
    def request() -> None:
        time.now += took
        then()
        raise Transient(Stalled("busy"))

    return request


def test_a_request_is_repeated_until_the_limit() -> None:
    time = Time()
    with pytest.raises(Stalled, match="busy"):
        time.attempts(60.0).run(failing(time, 1.0))
    assert 140 < time.now <= 161
    assert len(time.slept) > 5
    assert max(time.slept) <= 10


def test_the_last_delay_never_exceeds_the_limit() -> None:
    for _ in range(50):
        time = Time()
        with pytest.raises(Stalled):
            time.attempts(6.0).run(failing(time, 0.0))
        assert time.now < 106


def test_progress_extends_the_limit() -> None:
    time = Time()
    attempts = time.attempts(10.0)
    moves = [attempts.moved] * 30

    def move() -> None:
        if moves:
            moves.pop()()

    with pytest.raises(Stalled):
        attempts.run(failing(time, 8.0, move))
    assert time.now > 100 + 30 * 8


def test_each_request_has_the_whole_limit() -> None:
    time = Time()
    attempts = time.attempts(10.0)
    attempts.run(lambda: None)
    time.now += 1000
    calls: list[float] = []

    def request() -> str:
        calls.append(time.now)
        if len(calls) < 3:
            raise Transient(Stalled("busy"))
        return "done"

    assert attempts.run(request) == "done"


def test_what_cannot_succeed_is_not_repeated() -> None:
    calls: list[bool] = []

    def request() -> None:
        calls.append(True)
        raise AccessDenied("no")

    with pytest.raises(AccessDenied):
        Time().attempts(60.0).run(request)
    assert len(calls) == 1


def test_an_error_has_no_cause_that_a_traceback_would_print() -> None:
    time = Time()
    with pytest.raises(Stalled) as caught:
        time.attempts(1.0).run(failing(time, 2.0))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_body_counts_each_byte_once() -> None:
    moved: list[bool] = []
    body = Body(b"0123456789", lambda: moved.append(True))
    body.read()
    assert len(moved) == 0
    body.rewind(sending=False)
    body.begin_sending()
    assert body.read(4) == b"0123"
    assert len(moved) == 1
    body.rewind(sending=True)
    body.read(4)
    assert len(moved) == 1
    assert body.read(4) == b"4567"
    assert len(moved) == 2
    body.read()
    assert body.read() == b""
    assert len(moved) == 3


def test_the_reason_is_the_innermost_one_without_a_url() -> None:
    outer = RuntimeError("http://host/?sig=planted")
    outer.__cause__ = ConnectionRefusedError(111, "Connection refused")
    assert reason(outer) == "Connection refused"
    assert reason(RuntimeError("http://host/?sig=planted")) == "RuntimeError"
    assert reason(TimeoutError("http://host/?sig=planted")) == "timed out"
