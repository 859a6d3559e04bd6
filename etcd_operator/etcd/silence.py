"""A time limit for streams that only progress extends.

A deadline for a whole snapshot would have to know the size of the database and the speed of the network.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import grpc

Message = TypeVar("Message")


class StreamStalled(grpc.RpcError):
    """Nothing arrived for the time limit; translated like an error of gRPC."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def code(self) -> grpc.StatusCode:
        """The code of a passed deadline."""
        return grpc.StatusCode.DEADLINE_EXCEEDED

    def details(self) -> str:
        """What happened, for people."""
        return f"no data for {self._seconds:g} s"


def limit_silence(
    replies: Iterator[Message], seconds: float, cancel: Callable[[], object]
) -> Iterator[Message]:
    """Yield the replies; `cancel` the stream and raise `StreamStalled` if none arrives for `seconds`.

    Only the time spent waiting for a reply counts, not the time that the caller takes to process one.
    `cancel` is called from another thread and must make a blocked `next(replies)` raise `grpc.RpcError`.
    """
    watchdog = _Watchdog(seconds, cancel)
    watchdog.start()
    try:
        while True:
            watchdog.waiting_since = time.monotonic()
            reply = next(replies, None)
            watchdog.waiting_since = None
            if reply is None:
                return
            yield reply
    except grpc.RpcError as error:
        if watchdog.has_cancelled:
            raise StreamStalled(seconds) from error
        raise
    finally:
        watchdog.ended.set()


class _Watchdog(threading.Thread):
    """Cancels once. Reads `waiting_since` without a lock: a stale value delays the cancellation, no more."""

    def __init__(self, seconds: float, cancel: Callable[[], object]) -> None:
        super().__init__(name="stream-watchdog", daemon=True)
        self._seconds = seconds
        self._cancel = cancel
        self.waiting_since: float | None = None
        self.has_cancelled = False
        self.ended = threading.Event()

    def run(self) -> None:
        left = self._seconds
        while not self.ended.wait(left):
            since = self.waiting_since
            left = self._seconds if since is None else since + self._seconds - time.monotonic()
            if left <= 0:
                self.has_cancelled = True
                self._cancel()
                return
