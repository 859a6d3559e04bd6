"""What pods report over HTTP. They are asked on threads of their own: no worker ever waits for one.

The pods are those of backup tools, of restores, of survivors whose data is read, and of members with TLS. At
most one question for each key is under way, and each ends within its deadline. The last report is kept while
a pod does not answer, with the moment it came.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.etcd.handshake import Handshake
from etcd_operator.keys import Key
from etcd_operator.pods.client import NoReport, TokenRefused
from etcd_operator.pods.http_client import Server
from etcd_operator.pods.reports import Progress, RestorableBackups, SurvivorReport, ToolReport

THREADS = 8

PodReport = TypeVar("PodReport", ToolReport, RestorableBackups, Progress, SurvivorReport, Handshake)

Ask = Callable[[Server], ToolReport]
"""Asks a tool. Raises `NoReport`."""

AskRestorable = Callable[[Server, str], RestorableBackups]
"""Asks a tool what can be restored, backups of the etcd cluster with this ID first. Raises `NoReport`."""

AskProgress = Callable[[tuple[str, int]], Progress]
"""Asks the pod of a restore at (host, port). Raises `NoReport`."""

AskSurvivor = Callable[[Server], SurvivorReport]
"""Asks what the reader of a survivor has read. Raises `NoReport`."""

Submit = Callable[[Callable[[], None]], None]
"""Runs something on another thread. Raises RuntimeError if it cannot."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodServer:
    """A server in a pod, which is asked for reports."""

    uid: str  # of the pod, or of a container in it
    owner: str  # UID of the object whose pod it is
    server: Server
    cluster_id: str = ""  # etcd's, where backups of that cluster are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAnswer(Generic[PodReport]):
    """What is known of one server."""

    report: PodReport | None = None  # the last one
    uid: str = ""  # of the pod that reported
    age: float = 0.0  # seconds since the report came
    server_age: float = 0.0  # seconds since this pod was first asked
    problem: str = ""  # why the last question was not answered
    is_token_refused: bool = False  # it was not answered because of the token


@dataclass(slots=True)
class _Slot(Generic[PodReport]):
    owner: str
    epoch: int
    uid: str = ""
    since: float = 0.0
    asked_at: float = 0.0
    is_under_way: bool = False
    report: PodReport | None = None
    answered_by: str = ""
    answered_at: float = 0.0
    problem: str = ""
    is_token_refused: bool = False


class Inquiries(Generic[PodReport]):
    """One slot for each key, of a cluster, a member or a pod of a restore.

    name: of its threads. on_answer: called with the key when an answer, or none, has come. ask: may raise
    `NoReport`. What was answered in another epoch is forgotten: it is outdated, and nobody asked meanwhile.
    """

    def __init__(
        self,
        name: str,
        *,
        on_answer: Callable[[Key], None],
        clock: Clock,
        epoch: Epoch,
        ask: Callable[[PodServer], PodReport],
        submit: Submit | None = None,
    ) -> None:
        self._on_answer = on_answer
        self._clock = clock
        self._ask: Callable[[PodServer], PodReport] = ask
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=name)
        self._submit = submit or self._in_thread
        self._epoch = epoch
        self._lock = threading.Lock()
        self._slots: dict[Key, _Slot[PodReport]] = {}

    def last_answer(self, key: Key, owner: str) -> LastAnswer[PodReport]:
        """What is known now of the server under this key, of the object with the UID `owner`."""
        with self._lock:
            slot = self._current(key, owner)
            if slot is None:
                return LastAnswer()
            now = self._clock.monotonic()
            return LastAnswer(
                report=slot.report,
                uid=slot.answered_by,
                age=now - slot.answered_at,
                server_age=now - slot.since,
                problem=slot.problem,
                is_token_refused=slot.is_token_refused,
            )

    def renew(self, key: Key, server: PodServer, every: float) -> float:
        """Ask, unless this server was asked in the last `every` seconds; seconds until it is due again."""
        with self._lock:
            slot = self._current(key, server.owner)
            if slot is None:
                slot = self._slots[key] = _Slot(server.owner, self._epoch())
            now = self._clock.monotonic()
            is_other = slot.uid != server.uid
            left = slot.asked_at + every - now
            if slot.is_under_way or (left > 0 and not is_other):
                return max(left, 1.0)
            if is_other:
                slot.uid, slot.since = server.uid, now
            slot.asked_at, slot.is_under_way = now, True
        self._begin(key, slot, server)
        return every

    def forget(self, key: Key) -> None:
        """Nothing is asked for this key any more."""
        with self._lock:
            self._slots.pop(key, None)

    def stop(self) -> None:
        """End; questions under way end within their deadline."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _current(self, key: Key, owner: str) -> _Slot[PodReport] | None:
        slot = self._slots.get(key)
        return slot if slot is not None and (slot.owner, slot.epoch) == (owner, self._epoch()) else None

    def _begin(self, key: Key, slot: _Slot[PodReport], server: PodServer) -> None:
        try:
            self._submit(lambda: self._inquire(key, slot, server))
        except RuntimeError as error:
            self._finish(slot, None, f"no thread can be started: {error}")

    def _in_thread(self, work: Callable[[], None]) -> None:
        self._threads.submit(work)

    def _inquire(self, key: Key, slot: _Slot[PodReport], server: PodServer) -> None:
        try:
            self._finish(slot, self._ask(server), "", uid=server.uid)
        except NoReport as error:
            self._finish(slot, None, str(error), is_token_refused=isinstance(error, TokenRefused))
        except Exception as error:  # the slot must become free
            log.exception("inquiry_crashed", key=str(key))
            self._finish(slot, None, f"{type(error).__name__}: {error}")
        self._on_answer(key)

    def _finish(
        self,
        slot: _Slot[PodReport],
        report: PodReport | None,
        problem: str,
        *,
        uid: str = "",
        is_token_refused: bool = False,
    ) -> None:
        with self._lock:
            slot.is_under_way = False
            slot.problem, slot.is_token_refused = problem, is_token_refused
            if report is not None:
                slot.report, slot.answered_by, slot.answered_at = report, uid, self._clock.monotonic()
