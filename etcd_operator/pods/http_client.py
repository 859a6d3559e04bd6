"""One HTTP request within a deadline for all of it.

HTTP/1.0 by hand, whose bodies end with the connection: `http.client` limits each read of the socket, but not
all of them together.
"""

import http.client
import re
import socket
import ssl
import time
from dataclasses import dataclass, field

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How a server is verified before it is sent anything: its CAs, as PEM, and its name."""

    ca: bytes
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in a pod: (host, port), and the token that it requires. trust: None for plain HTTP."""

    address: tuple[str, int]
    token: str = field(default="", repr=False)
    trust: Trust | None = None


def call(what: str, server: Server, *, end: float, largest: int) -> tuple[int, bytes]:
    """The status and the body of the answer to `what`, such as `GET /metrics`.

    end: by `time.monotonic`. largest: bytes of an answer. Raises OSError, also when that is too late, too
    much, or no HTTP.
    """
    host, port = server.address
    authorization = f"Authorization: Bearer {server.token}\r\n" if server.token else ""
    plain = socket.create_connection((host.strip("[]"), port), timeout=_left(end))
    with plain, _verified(plain, server.trust) as connection:
        connection.sendall(f"{what} HTTP/1.0\r\nHost: {host}\r\n{authorization}\r\n".encode())
        reply = _all_of(connection, end, largest)
    head, _, body = reply.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise OSError(0, "it does not answer with HTTP")
    return int(status[1]), body


class Download(http.client.HTTPConnection):
    """A connection for a long answer. timeout: seconds without a byte."""

    def __init__(self, server: Server, *, timeout: float) -> None:
        host, port = server.address
        super().__init__(host, port, timeout=timeout)
        self._trust = server.trust

    def connect(self) -> None:
        """Connect, and verify the server. Raises OSError."""
        super().connect()
        self.sock = _verified(self.sock, self._trust)


def _verified(connection: socket.socket, trust: Trust | None) -> socket.socket:
    """The handshake takes no longer than the timeout of the connection, in all."""
    if trust is None:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=trust.ca.decode())
    return context.wrap_socket(connection, server_hostname=trust.name)


def _all_of(connection: socket.socket, end: float, largest: int) -> bytes:
    """What comes until the other side closes."""
    reply = bytearray()
    while len(reply) <= largest:
        connection.settimeout(_left(end))
        chunk = connection.recv(_CHUNK)
        if not chunk:
            return bytes(reply)
        reply += chunk
    raise OSError(0, "the report is too long")


def _left(end: float) -> float:
    """Seconds until `end`."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
