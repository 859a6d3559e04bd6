"""One port for clients with TLS and without, as etcd has it: the first byte of a connection tells."""

import socket
import threading
from contextlib import suppress

HANDSHAKE = b"\x16"
"""The first byte of a TLS connection."""


class DualPort:
    """Passes connections on to one of two ports."""

    def __init__(self, address: str, *, plain: str, tls: str) -> None:
        host, _, port = address.rpartition(":")
        self._targets = {True: tls, False: plain}
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, int(port)), reuse_port=False)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Close it, and all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            first = client.recv(1, socket.MSG_PEEK)
            host, _, port = self._targets[first == HANDSHAKE].rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                with self._lock:
                    self._open |= {client, server}
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()
                with self._lock:
                    self._open -= {client, server}


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
