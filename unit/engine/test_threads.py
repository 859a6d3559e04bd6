import threading
import time

import pytest
from structlog.testing import capture_logs

from etcd_operator.engine.threads import Loop, join_all
from unit.engine.support import Crashes


def test_a_loop_runs_its_body_in_a_named_thread_that_is_no_daemon() -> None:
    seen: list[threading.Thread] = []
    loop = Loop("t-loop", lambda: seen.append(threading.current_thread()), Crashes())
    loop.start()
    assert loop.join(30)
    assert seen[0].name == "t-loop"
    assert not seen[0].daemon


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit("left")], ids=["error", "exit"])
def test_a_crash_is_logged_with_its_traceback_and_reported(error: BaseException) -> None:
    def body() -> None:
        raise error

    crashes = Crashes()
    loop = Loop("t-loop", body, crashes)
    with capture_logs() as logs:
        loop.start()
        assert loop.join(30)
    assert crashes == [("t-loop", repr(error))]
    assert logs == [
        {"event": "thread_crashed", "log_level": "critical", "thread": "t-loop", "exc_info": error}
    ]


def test_a_loop_that_ends_by_itself_is_no_crash() -> None:
    crashes = Crashes()
    loop = Loop("t-loop", lambda: None, crashes)
    loop.start()
    assert loop.join(30)
    assert not crashes


def test_joining_reports_who_is_late_and_waits_no_longer_than_asked() -> None:
    release = threading.Event()
    loops = [Loop(f"t-{n}", release.wait, Crashes()) for n in range(10)]  # type: ignore[arg-type]
    for loop in loops:
        loop.start()
    began = time.monotonic()
    assert join_all(loops, 2.0) == tuple(f"t-{n}" for n in range(10))
    assert time.monotonic() - began < 12.0  # in total, not for each
    assert not loops[0].join(0)
    release.set()
    assert join_all(loops, 5) == ()


def test_a_loop_that_was_never_started_needs_no_joining() -> None:
    assert Loop("t-loop", lambda: None, Crashes()).join(0)
