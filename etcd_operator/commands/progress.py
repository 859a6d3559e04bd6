"""How far a command is: on stderr for people, and over HTTP for the operator of a command in a pod.

On a terminal a line is rewritten, elsewhere there is a plain line every few seconds. `GET /v1/progress`
answers with numbers of bytes, which need no protection; a slow client delays neither others nor the command.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TextIO

from etcd_operator.commands.outcome import report
from etcd_operator.formats import bytes_text
from etcd_operator.pods.http_server import JSON, Handler, ListeningServer, listening_socket

BAR_SECONDS = 0.1
LINE_SECONDS = 5.0
_BAR_WIDTH = 24


def countdown_text(seconds: float) -> str:
    """A duration for people: 0:05, 1:02:03."""
    whole = max(round(seconds), 0)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class ProgressBar:
    """Called with the bytes processed so far (`done`); `total` is what is expected, or 0 if that is unknown.

    A context manager: the end removes the bar, so that the result stands alone.
    """

    def __init__(
        self,
        verb: str,
        total: int,
        *,
        is_quiet: bool,
        output: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.verb = verb
        self.total = total
        self.done = 0
        self._output = output if output is not None else sys.stderr
        self._clock = clock
        self._begin = clock()
        self._is_quiet = is_quiet
        self._is_terminal = self._output.isatty()
        self._every = BAR_SECONDS if self._is_terminal else LINE_SECONDS
        self._next = self._begin + self._every
        self._width = 0

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")

    def __call__(self, done: int) -> None:
        """Show it, if it is time to."""
        self.done = done
        now = self._clock()
        if self._is_quiet or now < self._next:
            return
        self._next = now + self._every
        line = self._line(done, now - self._begin)
        if not self._is_terminal:
            self._write(line + "\n")
            return
        self._write("\r" + line.ljust(self._width))
        self._width = max(self._width, len(line))

    def restart(self, verb: str) -> None:
        """Count from the beginning again, for the next step with the same total."""
        self.done = 0
        self.verb = verb
        self._begin = self._clock()
        self._next = self._begin + self._every

    def stage(self, text: str) -> None:
        """What is done now, where bytes cannot be counted; shown on a terminal only."""
        if self._is_terminal and not self._is_quiet:
            self._write("\r" + text.ljust(self._width))
            self._width = max(self._width, len(text))

    def _line(self, done: int, elapsed: float) -> str:
        rate = done / elapsed if elapsed > 0 else 0.0
        parts = [bytes_text(done), f"{bytes_text(rate)}/s"]
        if self.total:
            # The database may grow between the question for its size and the snapshot.
            share = min(done / self.total, 1.0)
            parts[0] += f" of {bytes_text(max(self.total, done))}"
            parts.append(f"{share:.0%}")
            if rate > 0:
                parts.append(f"{countdown_text(max(self.total - done, 0) / rate)} left")
            if self._is_terminal:
                filled = round(share * _BAR_WIDTH)
                parts.insert(0, f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]")
        return f"{self.verb}: " + ", ".join(parts) if not self._is_terminal else "  ".join(parts)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads it anymore, which is no reason to fail
            self._output.write(text)
            self._output.flush()


def of(options: argparse.Namespace, verb: str, total: int) -> ProgressBar:
    """The progress that the flags ask for."""
    return ProgressBar(verb, total, is_quiet=options.quiet)


CLIENT_SECONDS = 2.0


@contextmanager
def served(port: int, progress: ProgressBar) -> Iterator[ProgressBar]:
    """Enter `progress`, and serve it at a port of all addresses (0: nowhere).

    If it cannot be served, that is only reported: what the command does is more important.
    """
    with progress as shown, contextlib.ExitStack() as ended:
        try:
            if port:
                server = _Server(listening_socket(port), ProgressHandler)
                server.progress = shown
                server.start()
                ended.callback(server.stop)
        except OSError as error:
            report(f"warning: progress is not served at port {port}: {error.strerror}")
        yield shown


class _Server(ListeningServer):
    daemon_threads = True
    poll_seconds = 0.01  # a restore, and whoever waits for it, would wait for the end of this server
    most_clients = 8
    header_seconds = client_seconds = CLIENT_SECONDS
    progress: ProgressBar


class ProgressHandler(Handler):
    """Answers one request."""

    server: _Server

    def do_GET(self) -> None:
        """Answer, whatever is asked."""
        import msgspec

        shown = self.server.progress
        body = {"step": shown.verb, "bytes": shown.done, "totalBytes": shown.total}
        self.respond(HTTPStatus.OK, JSON, msgspec.json.encode(body))
