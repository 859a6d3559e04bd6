import logging
import threading
import time

import pytest

from etcd_operator.clock import SystemClock
from etcd_operator.engine.threads import Loop, Stopper, join_all
from unit.engine.support import Crashes, eventually
from unit.fakes.clock import FakeClock


def test_a_loop_runs_its_body_in_a_named_thread_that_is_no_daemon() -> None:
    seen: list[threading.Thread] = []
    loop = Loop("t-loop", lambda: seen.append(threading.current_thread()), Crashes())
    loop.start()
    assert loop.join(5)
    assert seen[0].name == "t-loop"
    assert not seen[0].daemon
    assert not loop.is_alive


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit("left")], ids=["error", "exit"])
def test_a_crash_is_logged_with_its_traceback_and_reported(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def body() -> None:
        raise error

    crashes = Crashes()
    loop = Loop("t-loop", body, crashes)
    loop.start()
    assert loop.join(5)
    assert crashes == [("t-loop", repr(error))]
    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    assert record.exc_info


def test_a_loop_that_ends_by_itself_is_no_crash() -> None:
    crashes = Crashes()
    loop = Loop("t-loop", lambda: None, crashes)
    loop.start()
    assert loop.join(5)
    assert not crashes


def test_joining_reports_who_is_late_and_waits_no_longer_than_asked() -> None:
    release = threading.Event()
    loops = [Loop(f"t-{n}", release.wait, Crashes()) for n in range(10)]  # type: ignore[arg-type]
    for loop in loops:
        loop.start()
    began = time.monotonic()
    assert join_all(loops, 0.5) == tuple(f"t-{n}" for n in range(10))
    assert time.monotonic() - began < 3.0  # in total, not for each
    assert loops[0].is_alive
    release.set()
    assert join_all(loops, 5) == ()


def test_a_loop_that_was_never_started_needs_no_joining() -> None:
    assert Loop("t-loop", lambda: None, Crashes()).join(0)


def test_a_stopper_wakes_all_who_wait() -> None:
    clock = FakeClock()
    stopper = Stopper(clock)
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(stopper.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(clock._waiting) == 3)
    stopper.stop()
    for thread in threads:
        thread.join(2)
    assert answers == [True] * 3
    assert stopper.is_stopped
    assert stopper.wait()


def test_a_stopper_that_nobody_stops_ends_the_wait_in_time() -> None:
    clock = FakeClock()
    stopper = Stopper(clock)
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(stopper.wait(60)))
    thread.start()
    eventually(lambda: len(clock._waiting) == 1)
    clock.advance(59)
    assert not answers
    clock.advance(1)
    eventually(lambda: answers == [False], clock)
    thread.join()


def test_a_stopper_may_be_stopped_from_a_thread_that_a_signal_handler_starts() -> None:
    stopper = Stopper(SystemClock())
    threading.Thread(target=stopper.stop).start()
    assert stopper.wait(5)
