"""Requests, servers and times for the tests of the transport."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trustme
import urllib3

from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import Request, Stream, Timeouts, Transport
from unit.kube.server import BRISK, Asked, Line, Script, Server

READ = Request(verb="get", resource="x", target="/x", label="get x")
WRITE = Request(verb="create", resource="x", target="/x", label="create x", body=b"{}")
needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")


def hello(_asked: Asked, line: Line) -> None:
    line.answer(200, b"hello")


def took(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def open_stream(
    transport: Transport, abort: Abort, timeouts: Timeouts = BRISK, *, life: float = 600.0
) -> Stream:
    opened = transport.stream(READ, timeouts, abort, life=life)
    assert isinstance(opened, Stream)
    return opened


@contextmanager
def encrypted(script: Script, host: str = "127.0.0.1", **options: Any) -> Iterator[tuple[Server, Transport]]:
    """The same server behind TLS: one connection at a time is enough here."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    server = Server(script, wrap=lambda sock: context.wrap_socket(sock, server_side=True), host=host)
    server.start()
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    pool = urllib3.PoolManager(ssl_context=trusted)
    try:
        yield server, Transport(pool=pool, base_url=server.url.replace("http:", "https:"), **options)
    finally:
        pool.clear()
        server.stop()
