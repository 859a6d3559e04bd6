"""`GET /v1/progress` of a command that runs in a pod: how far it is, for the operator.

It answers with numbers of bytes, which need no protection, one client after the other. A client that is slow
delays others for `CLIENT_SECONDS`, and the command never.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from etcd_operator.commands.outcome import report
from etcd_operator.commands.progress import Progress
from etcd_operator.sockets import listening_socket

CLIENT_SECONDS = 2.0
_LARGEST = 4096


@contextmanager
def served(port: int, progress: Progress) -> Iterator[Progress]:
    """Enter `progress`, and serve it at a port of all addresses (0: nowhere)."""
    with progress as shown:
        listener = _listener(port) if port else None
        if listener is None:
            yield shown
            return
        threading.Thread(target=_serve, args=(listener, shown), name="progress", daemon=True).start()
        try:
            yield shown
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends the thread
            listener.close()


def _listener(port: int) -> socket.socket | None:
    """None if there cannot be one: what the command does is more important."""
    try:
        return listening_socket(port)
    except OSError as error:
        report(f"warning: progress is not served at port {port}: {error.strerror}")
        return None


def _serve(listener: socket.socket, progress: Progress) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:  # closed
            return
        with client, contextlib.suppress(OSError):
            client.settimeout(CLIENT_SECONDS)
            client.recv(_LARGEST)
            client.sendall(_answer(progress))


def _answer(progress: Progress) -> bytes:
    import msgspec

    body = msgspec.json.encode({"step": progress.verb, "bytes": progress.done, "totalBytes": progress.total})
    head = f"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
