"""Asks a backup tool, or a pod that restores, for its report, within a deadline for all of it.

HTTP/1.0 by hand: `http.client` limits each read of the socket, but not all of them together.
"""

import re
import socket
import time
from typing import TypeVar

import msgspec

from etcd_operator.core.backup_tool.report import Stock, ToolReport
from etcd_operator.core.restores.result import Progress
from etcd_operator.core.survivor_report import SurvivorReport
from etcd_operator.decoding import decoder

Document = TypeVar("Document", ToolReport, Stock, Progress, SurvivorReport)

DEADLINE = 5.0
CLEANUP_DEADLINE = 30.0
SURVIVOR_DEADLINE = 2.0
"""Seconds for all of an answer."""

LONGEST_QUOTE = 300
_LARGEST = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")


class NoReport(Exception):
    """The tool gave no report; the message says why."""


class TokenRefused(NoReport):
    """The tool requires another token."""


def ask(address: tuple[str, int], token: str) -> ToolReport:
    """The report of the tool at (host, port). Raises `NoReport`."""
    return _call("GET /v1/status", address, token, DEADLINE, ToolReport)


def restorable(address: tuple[str, int], token: str, cluster_id: str) -> Stock:
    """What the tool can restore, backups of the etcd cluster with this ID first. Raises `NoReport`."""
    path = f"GET /v1/restorable?clusterID={cluster_id}"
    return _call(path, address, token, DEADLINE, Stock)


def progress(address: tuple[str, int]) -> Progress:
    """How far a pod that restores is; it requires no token. Raises `NoReport`."""
    return _call("GET /v1/progress", address, "", DEADLINE, Progress)


def survivor(address: tuple[str, int], token: str) -> SurvivorReport:
    """What the reader of a survivor at (host, port) has read. Raises `NoReport`."""
    return _call("GET /v1/survivor", address, token, SURVIVOR_DEADLINE, SurvivorReport)


def clean_up(address: tuple[str, int], token: str) -> ToolReport:
    """Have the tool delete all backups of its cluster; its report then. Raises `NoReport`."""
    return _call("DELETE /v1/backups", address, token, CLEANUP_DEADLINE, ToolReport)


def _call(what: str, address: tuple[str, int], token: str, deadline: float, kind: type[Document]) -> Document:
    end = time.monotonic() + deadline
    host, port = address
    request = f"{what} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    try:
        with socket.create_connection((host, port), timeout=_left(end)) as connection:
            connection.sendall(request.encode())
            reply = _all_of(connection, end)
    except OSError as error:
        raise NoReport(error.strerror or "no answer in time") from error
    return _report(reply, kind)


def _report(reply: bytes, kind: type[Document]) -> Document:
    head, _, body = reply.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise NoReport("it does not answer with HTTP")
    if status[1] == b"401":
        raise TokenRefused("it refuses the token of its Secret")
    if status[1] != b"200":
        said = body[:LONGEST_QUOTE].decode("utf-8", "replace").strip()
        raise NoReport(f"it answered with {status[1].decode()}" + f" ({said})" * bool(said))
    try:
        return decoder(kind).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoReport("its report cannot be read") from error


def _all_of(connection: socket.socket, end: float) -> bytes:
    """What comes until the other side closes. Raises OSError when that is too late or too much."""
    reply = bytearray()
    while len(reply) <= _LARGEST:
        connection.settimeout(_left(end))
        chunk = connection.recv(_LARGEST)
        if not chunk:
            return bytes(reply)
        reply += chunk
    raise OSError(0, "the report is too long")


def _left(end: float) -> float:
    """Seconds until `end`. Raises TimeoutError when that has passed."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
