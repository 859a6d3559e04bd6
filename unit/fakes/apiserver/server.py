"""A small Kubernetes API server over real HTTP, for tests.

Promises: everything that the modules beside it promise; objects survive `stop` and `start`, connections do
not; no thread is left after `stop`; what went wrong inside the fake itself is raised by `stop`.
Not modelled: authentication, admission beyond a few defaults, schemas, field ownership, other subresources
than status. `docs` of each behaviour are the contract tests in unit/kube/contract.
"""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from etcd_operator.clock import Clock
from unit.fakes.apiserver import faults, kinds
from unit.fakes.apiserver.http import Handler
from unit.fakes.apiserver.kinds import Json, Kind, Kinds
from unit.fakes.apiserver.objects import Objects
from unit.fakes.apiserver.store import Store
from unit.fakes.apiserver.watch import Stream


class Listener(ThreadingHTTPServer):
    """The listening socket and the threads of its connections."""

    daemon_threads = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, api: "ApiServer", port: int) -> None:
        self.api = api
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what the fake itself did wrong; a client that goes away is nothing wrong."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            self.api.crashes.append(error)

    def cut_connections(self) -> None:
        """End every connection at once."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class ApiServer:
    """The fake. Start it with `with ApiServer() as api`, point a client at `api.url`."""

    def __init__(self, *, clock: Clock | None = None, custom: Iterable[Kind] = kinds.OPERATOR_KINDS) -> None:
        self._clock = clock or Clock()
        self.objects = Objects(Store(), Kinds([*kinds.BUILT_IN, *custom]), self._clock)
        self.ahead: timedelta | None = timedelta()
        self.before: faults.Hook = faults.no_fault
        self.after: faults.Hook = faults.no_fault
        self.crashes: list[BaseException] = []
        self.is_stopping = False
        self.stale_revision: int | None = None
        self._lock = threading.Lock()
        self._log: list[faults.Exchange] = []
        self._streams: list[Stream] = []
        self._writes = 0
        self._port = 0
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None
        for name in ("default", "kube-system"):
            self.add_namespace(name)

    # life

    def start(self) -> None:
        """Listen: on a free port the first time, on the same one after a `stop`."""
        self.is_stopping = False
        self._listener = Listener(self, self._port)
        self._port = self._listener.server_address[1]
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.02,), name="fake-apiserver", daemon=False
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and cut every connection; raises the first crash of the fake, if there was one."""
        if self._listener is None or self._thread is None:
            return
        self.is_stopping = True
        for stream in self.watches:
            stream.drop()
        self._listener.shutdown()
        self._listener.cut_connections()
        self._listener.server_close()
        self._thread.join()
        self._listener = self._thread = None
        if self.crashes:
            raise AssertionError("the fake API server crashed") from self.crashes[0]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def date(self) -> datetime | None:
        """What its answers say: the time of the clock, and `ahead` more; nothing if that is None."""
        return None if self.ahead is None else self._clock.now().astimezone(UTC) + self.ahead

    @property
    def url(self) -> str:
        """Where it listens; the same over a restart."""
        return f"http://127.0.0.1:{self._port}"

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig file that leads here."""
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: fake\n"
            f"clusters: [{{name: fake, cluster: {{server: '{self.url}'}}}}]\n"
            "contexts: [{name: fake, context: {cluster: fake, user: fake, namespace: default}}]\n"
            "users: [{name: fake, user: {}}]\n"
        )
        return path

    # what was asked

    @property
    def log(self) -> list[faults.Exchange]:
        """Every request answered or cut so far, in order."""
        with self._lock:
            return list(self._log)

    @property
    def writes(self) -> list[faults.Exchange]:
        """The log without reads: `len` it before and after to see that nothing is written at rest."""
        return [exchange for exchange in self.log if exchange.request.is_write]

    def record(self, exchange: faults.Exchange) -> None:
        """Add to the log."""
        with self._lock:
            self._log.append(exchange)

    def next_write(self) -> int:
        """The number of the write that arrives now, from 1."""
        with self._lock:
            self._writes += 1
            return self._writes

    # watches and views

    def open_watch(self, kind: Kind, namespace: str, request: faults.Request) -> Stream:
        """A new stream, listed in `watches`."""
        stream = Stream(self.objects.store, kind, namespace, request.query)
        with self._lock:
            self._streams = [*(s for s in self._streams if s.is_open), stream]
        return stream

    @property
    def watches(self) -> list[Stream]:
        """The watches open now, oldest first."""
        with self._lock:
            return [stream for stream in self._streams if stream.is_open]

    def compact(self) -> None:
        """Forget the past: watches and list pages from before now get 410."""
        with self.objects.store.changed:
            self.objects.store.compact()

    def freeze_views(self, revision: int | None = None) -> None:
        """Serve LISTs and watches as of `revision` (default: now) while GETs and writes see the present."""
        with self.objects.store.changed:
            self.stale_revision = self.objects.store.revision if revision is None else revision

    def thaw_views(self) -> None:
        """Serve the present again; streams send what they have missed."""
        with self.objects.store.changed:
            self.stale_revision = None
            self.objects.store.changed.notify_all()

    # arranging

    def add_namespace(self, name: str) -> Json:
        """Create a namespace; objects can only be created in one that is there."""
        return self.objects.create(kinds.NAMESPACES, "", {"metadata": {"name": name}})
