"""Requests, servers and times for the tests of the transport."""

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import Request, Stream, Timeouts, Transport
from unit.kube.server import BRISK, Asked, Line

READ = Request(method="GET", target="/x", label="get x")
WRITE = Request(method="POST", target="/x", label="create x", body=b"{}")
needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")


def hello(_asked: Asked, line: Line) -> None:
    line.answer(200, b"hello")


def took(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def open_stream(transport: Transport, abort: Abort, timeouts: Timeouts = BRISK) -> Stream:
    opened = transport.stream(READ, timeouts, abort)
    assert isinstance(opened, Stream)
    return opened
