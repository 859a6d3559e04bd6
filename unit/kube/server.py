"""An HTTP server on a real socket that misbehaves when a test requests it.

A test gives a script: a function that is called for every request with the request and the
connection, and answers, stalls, drips or cuts as it likes. The server records the requests.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

from etcd_operator.kube.transport import Timeouts, Transport

BRISK = Timeouts(connect=10.0, read=20.0, total=40.0, silence=20.0)
"""Short enough for a test that fails, and long enough for a machine that stalls for seconds."""

AT_ONCE = 10.0
"""Seconds: less than any of these, more than a stall."""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Line:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.open = True

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def answer(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(code, {"Content-Length": str(len(data)), **(headers or {})})
        self.send(data)

    def fail(self, code: int, reason: str, message: str = "no", **headers: str) -> None:
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        self.answer(code, status, {name.replace("_", "-"): value for name, value in headers.items()})

    def head(self, code: int, headers: dict[str, str] | None = None) -> None:
        fields = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self.send(f"HTTP/1.1 {code} Because\r\n{fields}\r\n".encode())

    def begin(self) -> None:
        """Begin a chunked stream, which the request declared as the connection's last."""
        self.head(200, {"Transfer-Encoding": "chunked", "Connection": "close"})

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, kind: str, obj: Any) -> None:
        self.chunk(json.dumps({"type": kind, "object": obj}).encode() + b"\n")

    def end(self) -> None:
        """End a chunked stream as it should end."""
        self.chunk(b"")

    def cut(self) -> None:
        """Close without another word."""
        self.open = False
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        """Say nothing until the other side goes away."""
        self.open = False
        with suppress(OSError):
            while self.sock.recv(4096):
                pass


Script = Callable[[Asked, Line], None]


@dataclass
class Server:
    """Listens on a free port of the loopback until stopped."""

    script: Script
    port: int = 0
    wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock
    host: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def start(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family, backlog=32)
        self.port = self._listener.getsockname()[1]
        self._lines: list[Line] = []
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, args=(self._listener,), name="server-accept")
        self._acceptor.start()

    def stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(30)
        self._listener.close()
        for line in self._lines:
            line.cut()
        for thread in self._threads:
            thread.join(30)

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def asked_for(self, *, watch: bool) -> list[Asked]:
        return [asked for asked in self.asked if ("watch" in asked.query) == watch]

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            with suppress(OSError):
                sock = self.wrap(sock)
            line = Line(sock)
            thread = threading.Thread(target=self._serve, args=(line,), name="server-connection")
            self._lines.append(line)
            self._threads.append(thread)
            thread.start()

    def _serve(self, line: Line) -> None:
        with line.sock, suppress(OSError), line.sock.makefile("rb") as reader:
            while line.open and (asked := _read(reader)) is not None:
                self.asked.append(asked)
                self.script(asked, line)
                if asked.headers.get("connection") == "close":
                    line.cut()  # without an announcement: another use of the connection must cope


def _read(reader: Any) -> Asked | None:
    first = reader.readline().decode()
    if not first:
        return None
    method, target, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    while (text := reader.readline().decode().strip()) != "":
        name, value = text.split(":", 1)
        headers[name.strip().lower()] = value.strip()
    body = reader.read(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return Asked(method, parts.path, query, headers, body)


def first_then(first: Script, then: Script) -> Script:
    """One script for the first request, another for the rest."""
    seen: list[Asked] = []

    def script(asked: Asked, line: Line) -> None:
        seen.append(asked)
        (first if len(seen) == 1 else then)(asked, line)

    return script


@contextmanager
def serving(script: Script, port: int = 0) -> Iterator[Server]:
    server = Server(script, port)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def connected(server: Server, **options: Any) -> Iterator[Transport]:
    """A transport to the server, whose pool is emptied at the end."""
    pool = urllib3.PoolManager(maxsize=16)
    try:
        yield Transport(pool=pool, base_url=server.url, **options)
    finally:
        pool.clear()


def pod(
    name: str, version: int, *, uid: str = "", namespace: str = "default", **labels: str
) -> dict[str, Any]:
    """A pod as the API server writes it, as far as these tests need it."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": labels,
        }
    }


def bookmark(version: int) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}


def listing(*items: dict[str, Any], version: int = 10, more: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version), "continue": more}
    return {"kind": "PodList", "metadata": metadata, "items": list(items)}
