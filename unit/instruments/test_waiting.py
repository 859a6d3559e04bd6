from typing import Any

import pytest

from e2e.support import waiting
from e2e.support.waiting import NotInTimeError, answered, hold_for, wait_until
from etcd_operator.errors import Forbidden, OperatorError, Unavailable
from localcluster.commands import CommandError


class Script:
    """A condition that raises, or returns, one after the other."""

    def __init__(self, *results: object) -> None:
        self.results = list(results)

    def __call__(self) -> Any:
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result


def test_a_state_is_waited_for_though_the_machine_cannot_be_asked_for_a_moment() -> None:
    slow = (Unavailable("silent"), OSError("reset"), CommandError("kubectl did not end"), AssertionError())
    assert wait_until(Script(*slow, 0, "reached"), "it is reached", within=30, every=0.0) == "reached"


@pytest.mark.parametrize("last", [Forbidden("no right"), AssertionError("it is 3")])
def test_what_was_raised_last_is_named_when_it_is_too_late(last: Exception) -> None:
    with pytest.raises(NotInTimeError, match=rf"^not within 0 s: it is reached \({last}\)$"):
        wait_until(Script(last), "it is reached", within=0, every=0.0)


def test_a_description_that_cannot_be_read_does_not_hide_what_it_describes() -> None:
    with pytest.raises(NotInTimeError, match="its state is unknown: silent"):
        wait_until(Script(False), lambda: str(Script(Unavailable("silent"))()), within=0, every=0.0)


def test_other_errors_end_the_wait_at_once() -> None:
    with pytest.raises(KeyError):
        wait_until(Script(KeyError("status")), "it is reached", within=30, every=0.0)


@pytest.mark.parametrize("value", [None, 0, "found"])
def test_an_answer_may_be_false(value: object) -> None:
    assert answered(Script(Unavailable("elects"), value), "it answers") == value


def test_what_must_hold_is_not_shown_by_a_read_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_for(0.0, Script(Unavailable("silent"), True), "it holds", every=0.0)
    with pytest.raises(AssertionError, match="did not hold for 0 s: it holds"):
        hold_for(0.0, Script(Unavailable("silent"), False), "it holds", every=0.0)
    monkeypatch.setattr(waiting, "LONG", 0.0)
    with pytest.raises(AssertionError, match="could not be checked in 0 s: it holds"):
        hold_for(0.0, Script(Unavailable("silent")), "it holds", every=0.0)


def test_what_must_hold_fails_at_once_when_it_does_not_and_when_it_may_not_be_read() -> None:
    with pytest.raises(AssertionError, match="did not hold for 30 s: it holds"):
        hold_for(30.0, Script(False), "it holds")
    with pytest.raises(OperatorError, match="no right"):
        hold_for(30.0, Script(Forbidden("no right")), "it holds")
