"""SIGINT, SIGTERM and SIGHUP as an exception in the main thread, so that a command cleans up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal ended the command. Not an `Exception`: nothing that handles failures may hold it back."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def as_exception() -> Iterator[None]:
    """Raise `Interrupted` at the first of these signals; later ones do not disturb the cleaning up.

    A signal that is ignored remains ignored: `nohup` and shells do that for commands in the background.
    """
    has_come = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal has_come
        if not has_come:
            has_come = True
            raise Interrupted(number)

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
