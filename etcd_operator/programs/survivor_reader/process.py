"""The process that reads a survivor, and the HTTP API by which its data is fetched.

    GET  /v1/survivor             what it has (`pods.reports`), or why that is not known now
    GET  /v1/backup?name=survivor the database, followed by etcd's hash, as `etcdctl snapshot save` writes it

Both require `Authorization: Bearer TOKEN`, and are served over TLS where clients of etcd use it. The database
is sent as it is on the disk; whoever fetches it compares the SHA-256 that was reported. The process ends when
the survivor follows a leader, and after `IDLE` seconds without a request.
"""

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog

from etcd_operator.pods.http_server import BYTES, JSON, Handler, ListeningServer, listening_socket
from etcd_operator.pods.reports import FOLLOWED_A_LEADER, SURVIVOR, SurvivorReport
from etcd_operator.process.signals import set_on_signal
from etcd_operator.programs.survivor_reader.reading import DataReader, NotReadable, Signature

IDLE = 300.0
AGAIN = 1.0
"""Seconds until what could not be read is read again."""

_BLOCK = 1 << 18
_BEGINNING = SurvivorReport(problem="it is being read", is_passing=True)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Read:
    report: SurvivorReport
    signature: Signature


class Keeper:
    """Reads the survivor on a thread of its own, again whenever it has changed, until it follows a leader."""

    def __init__(self, reader: DataReader) -> None:
        self.reader = reader
        self.ended = threading.Event()
        self.has_found_leader = False
        self._read: _Read | None = None
        self._problem = _BEGINNING
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def report(self) -> SurvivorReport:
        """What is known, confirmed now."""
        read = self._read
        if read is None:
            return self._problem
        try:
            self.reader.check(read.signature)
        except NotReadable as error:
            self._note(error)
            return self._problem
        return read.report

    def _run(self) -> None:
        while not self.ended.is_set():
            if self._read is None:
                try:
                    self._read = _Read(*self.reader.read())
                    log.info("read", revision=self._read.report.revision)
                except NotReadable as error:
                    self._note(error)
            else:
                self.report()
            self.ended.wait(AGAIN)

    def _note(self, error: NotReadable) -> None:
        self._read = None
        self._problem = SurvivorReport(
            problem=str(error), is_passing=error.is_passing, has_leader=error.has_leader
        )
        if error.has_leader:
            log.info("not_needed", reason=str(error))
            self.has_found_leader = True
            self.ended.set()


class Server(ListeningServer):
    """Serves the API at `:port` of all addresses."""

    daemon_threads = True  # a download under way ends with the process
    most_clients = 8

    def __init__(
        self,
        keeper: Keeper,
        token: str,
        *,
        port: int,
        clock: Callable[[], float],
        tls: Path | None = None,
    ) -> None:
        super().__init__(listening_socket(port), _Handler, tls=tls)
        self.keeper, self.token, self.clock = keeper, token, clock
        self.asked_at = clock()

    @property
    def idle(self) -> float:
        """Seconds since the last request."""
        return self.clock() - self.asked_at


class _Handler(Handler):
    server: Server

    def do_GET(self) -> None:
        """Answer."""
        expected = f"Bearer {self.server.token}".encode()
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        url = urlsplit(self.path)
        if not hmac.compare_digest(expected, given):
            self.text(HTTPStatus.UNAUTHORIZED, "the token of this reader is required")
            return
        self.server.asked_at = self.server.clock()
        if url.path == "/v1/survivor":
            self.respond(HTTPStatus.OK, JSON, msgspec.json.encode(self.server.keeper.report()) + b"\n")
        elif url.path == "/v1/backup" and parse_qs(url.query).get("name") == [SURVIVOR]:
            self._send()
        else:
            self.text(HTTPStatus.NOT_FOUND, "not found")

    def _send(self) -> None:
        report = self.server.keeper.report()
        if report.problem:
            self.text(HTTPStatus.SERVICE_UNAVAILABLE, report.problem)
            return
        digest = hashlib.sha256()
        with self.server.keeper.reader.database.open("rb") as source, suppress(ConnectionError, TimeoutError):
            left = os.fstat(source.fileno()).st_size
            self.head(HTTPStatus.OK, BYTES, left + digest.digest_size)
            while left and (block := source.read(min(_BLOCK, left))):
                left -= len(block)
                digest.update(block)
                self.wfile.write(block)
                self.server.asked_at = self.server.clock()
            self.wfile.write(digest.digest())


def serve(reader: DataReader, token: str, *, port: int, tls: Path | None = None) -> int:
    """Run until nobody needs it any more, or SIGTERM; the exit code. Raises OSError if it cannot listen.

    tls: see `ListeningServer`.
    """
    keeper = Keeper(reader)
    set_on_signal(keeper.ended)
    server = Server(keeper, token, port=port, clock=time.monotonic, tls=tls)
    keeper.start()
    server.start()
    log.info("started", data_dir=str(reader.data_dir), port=server.port)
    try:
        while not keeper.ended.wait(1.0) and server.idle < IDLE:
            pass  # a signal handler runs only while this thread does
    finally:
        keeper.ended.set()
        server.stop()
    log.info("stopping", idle=round(server.idle))
    return FOLLOWED_A_LEADER if keeper.has_found_leader else 0
