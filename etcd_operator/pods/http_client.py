"""One HTTP request within a deadline for all of it.

HTTP/1.0 by hand, whose bodies end with the connection: `http.client` limits each read of the socket, but not
all of them together.
"""

import re
import socket
import time

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
_CHUNK = 1 << 16


def call(
    what: str, address: tuple[str, int], *, end: float, largest: int, token: str = ""
) -> tuple[int, bytes]:
    """The status and the body of the answer to `what`, such as `GET /metrics`.

    end: by `time.monotonic`. largest: bytes of an answer. Raises OSError, also when that is too late, too
    much, or no HTTP.
    """
    host, port = address
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    with socket.create_connection((host.strip("[]"), port), timeout=_left(end)) as connection:
        connection.sendall(f"{what} HTTP/1.0\r\nHost: {host}\r\n{authorization}\r\n".encode())
        reply = _all_of(connection, end, largest)
    head, _, body = reply.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise OSError(0, "it does not answer with HTTP")
    return int(status[1]), body


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
