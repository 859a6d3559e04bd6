"""Reads the data directory of an etcd that runs without a leader. Nothing is written, and no file is locked.

An etcd that starts applies its log as far as it knows it to be committed, and writes the result to its
database within 100 ms; after that it writes nothing until it follows a leader. So the database is whole if

    the process reports that it follows no leader and has applied all that its log knows to be committed, and
    neither database nor log has changed for `QUIET` seconds, nor while the database was read.

A learner never campaigns, so it reports its last leader for ever, also one that is gone. It follows one only
while raft messages arrive: a leader with a quorum sends heartbeats, and nobody else sends a learner anything.

Whoever copies the database later compares its SHA-256 (docs/decisions/031).
"""

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from etcd_operator.archive.database import DatabaseScan
from etcd_operator.archive.errors import Damaged
from etcd_operator.formats import hex_id
from etcd_operator.pods.http_client import Server, call
from etcd_operator.pods.reports import SurvivorReport
from etcd_operator.programs.survivor_reader.files import newest_log, read_database, read_log

QUIET = 1.0
"""Ten times as long as etcd waits at most before it writes what it has applied."""

HEARTBEAT = 15.0
"""Seconds in which a learner hears from a leader that has a quorum; etcd accepts intervals of up to 10."""

PAGE_SECONDS = 2.0
_FOLLOWS = "it follows a leader"
_BLOCK = 1 << 20
_LARGEST_PAGE = 4 << 20

_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{1,20})?(?:e\+[0-9]{2})?)"
_HAS_LEADER = re.compile(rf"^etcd_server_has_leader {_NUMBER}$", re.MULTILINE)
_IS_LEARNER = re.compile(rf"^etcd_server_is_learner {_NUMBER}$", re.MULTILINE)
_APPLIED = re.compile(rf"^etcd_server_proposals_applied_total {_NUMBER}$", re.MULTILINE)
_RECEIVED = re.compile(
    rf'^etcd_network_peer_received_bytes_total\{{From="([0-9a-f]{{1,16}})"\}} {_NUMBER}$', re.MULTILINE
)
_KEEPALIVE = "0"
"""What sends the messages by which connections are kept open, also between members without a leader."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a reading rests on."""

    files: tuple[tuple[int, int, int], ...]  # inode, size and time of the last change of each
    # Bytes of raft messages that a learner has received since it runs; 0 for a voter, which reports by itself
    # whether it follows a leader.
    received: float = 0.0


@dataclass(frozen=True, slots=True)
class _Page:
    has_leader: bool
    applied: int  # the raft index up to which etcd has applied its log
    received: float  # as in `Signature`
    is_learner: bool


class NotReadable(Exception):
    """Why the data cannot be used now.

    is_passing: that goes away by itself. has_leader: it is not needed.
    """

    def __init__(self, message: str, *, is_passing: bool = False, has_leader: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing
        self.has_leader = has_leader


@dataclass(frozen=True, kw_only=True)
class DataReader:
    """Of one data directory. page: the metrics page of its etcd; raises OSError. wait: so many seconds."""

    data_dir: Path
    page: Callable[[], str]
    wait: Callable[[float], None]

    @property
    def database(self) -> Path:
        """The file."""
        return self.data_dir / "member" / "snap" / "db"

    def read(self) -> tuple[SurvivorReport, Signature]:
        """What it has, and the files as they were meanwhile. Raises `NotReadable`."""
        try:
            return self._read()
        except Damaged as error:
            raise NotReadable(str(error)) from error
        except OSError as error:
            raise NotReadable(f"its data cannot be read: {error.strerror or error}") from error

    def check(self, signature: Signature) -> None:
        """Raises `NotReadable` if what was read may be outdated."""
        try:
            page = self._page_now()
            if page.received != signature.received:
                raise NotReadable("it has heard from another member", is_passing=True)
            if self._files() != signature.files:
                raise NotReadable("its data has changed", is_passing=True)
        except (OSError, Damaged) as error:
            raise NotReadable(f"its data cannot be read: {error}") from error

    def _files(self) -> tuple[tuple[int, int, int], ...]:
        """Raises OSError, `Damaged`."""
        found = (file.stat() for file in (self.database, newest_log(self.data_dir / "member" / "wal")))
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def _read(self) -> tuple[SurvivorReport, Signature]:
        self._await_heartbeat()
        files = self._files()
        log = read_log(newest_log(self.data_dir / "member" / "wal"))
        page = self._page_now()
        if page.applied < log.committed:
            message = f"it still applies its log: {page.applied} of {log.committed}"
            raise NotReadable(message, is_passing=True)
        self.wait(QUIET)
        if self._files() != files:
            raise NotReadable("its data has just changed", is_passing=True)
        before = Signature(files, page.received)
        revision, sha256 = self._scan()
        stored = read_database(self.database)
        if stored.requires_user:
            raise NotReadable("etcd's authentication is enabled, and the operator has no user")
        self.check(before)
        report = SurvivorReport(
            cluster_id=hex_id(log.cluster_id),
            member_id=hex_id(log.member_id),
            committed=log.committed,
            revision=revision,
            sha256=sha256,
            members=stored.members,
            corrupt=stored.corrupt,
        )
        return report, before

    def _await_heartbeat(self) -> None:
        """Raises `NotReadable` if a learner hears from the leader that it reports."""
        before = self._page_now()
        if not before.has_leader:
            return
        self.wait(HEARTBEAT)
        if self._page_now().received > before.received:
            raise NotReadable(_FOLLOWS, has_leader=True)

    def _page_now(self) -> _Page:
        """Raises `NotReadable` also for a voter that follows a leader."""
        try:
            text = self.page()
        except OSError as error:
            raise NotReadable(f"its etcd does not run: {error}") from error
        page = _parsed(text)
        if page.has_leader and not page.is_learner:
            raise NotReadable(_FOLLOWS, has_leader=True)
        return page

    def _scan(self) -> tuple[int, str]:
        """Revision, and SHA-256 of the database followed by its own SHA-256, as etcd sends a snapshot."""
        scan, plain = DatabaseScan(), hashlib.sha256()
        with self.database.open("rb") as source:
            while block := source.read(_BLOCK):
                scan.feed(block)
                plain.update(block)
        whole = plain.copy()
        whole.update(plain.digest())
        summary = scan.finish()
        return summary.last_revision, whole.hexdigest()


def _parsed(text: str) -> _Page:
    leader, applied, learner = _HAS_LEADER.search(text), _APPLIED.search(text), _IS_LEARNER.search(text)
    if leader is None or applied is None:
        raise NotReadable("its etcd does not report how much it has applied")
    is_learner = learner is not None and bool(float(learner[1]))
    received = sum(float(found) for sender, found in _RECEIVED.findall(text) if sender != _KEEPALIVE)
    return _Page(
        has_leader=bool(float(leader[1])),
        applied=int(float(applied[1])),
        received=received if is_learner else 0.0,
        is_learner=is_learner,
    )


def metrics_page(port: int) -> str:
    """Of the etcd in the same pod. Raises OSError."""
    end = time.monotonic() + PAGE_SECONDS
    own = Server(address=("127.0.0.1", port))
    status, page = call("GET /metrics", own, end=end, largest=_LARGEST_PAGE)
    if status != HTTPStatus.OK:
        raise OSError(f"it answers with {status}")
    return page.decode("utf-8", "replace")
