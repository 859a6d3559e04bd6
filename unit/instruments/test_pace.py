import threading

import pytest

from e2e.support.pace import Paced


def test_steps_follow_one_another_until_it_is_stopped() -> None:
    count, enough = 0, threading.Event()

    def step() -> None:
        nonlocal count
        count += 1
        if count == 5:
            enough.set()

    paced = Paced(step, interval=0.001, name="five")
    paced.start()
    assert enough.wait(30)
    paced.stop()
    after = count
    assert after >= 5
    assert not [thread for thread in threading.enumerate() if thread.name == "five"]
    assert count == after


def test_a_step_that_does_not_end_is_reported() -> None:
    go_on, begun = threading.Event(), threading.Event()

    def step() -> None:
        begun.set()
        go_on.wait(30)

    paced = Paced(step, interval=0.001, name="blocked")
    paced.start()
    assert begun.wait(30)
    with pytest.raises(AssertionError, match="blocked does not end"):
        paced.stop(within=0.01)
    go_on.set()
    paced.stop()
