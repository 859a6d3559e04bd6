"""What the name of a headless Service gives to a client, for one outside of the cluster's DNS."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from e2e.support.space import Space
from localcluster.commands import CommandError


@contextmanager
def dialled(space: Space, service: str, port: int) -> Iterator[str]:
    """An address of this machine; each connection to it goes to a pod that the Service has at that moment."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, CommandError, IndexError):  # the client tries again
                address = pods_of(space, service)[0]
                _join(self.request, socket.create_connection((address, port), 5.0))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def pods_of(space: Space, service: str) -> list[str]:
    """The addresses that the Service has now."""
    found = space.kubectl.json("get", "endpointslices", "-l", f"kubernetes.io/service-name={service}")
    endpoints = (each for part in found["items"] for each in part.get("endpoints") or ())
    return [address for each in endpoints for address in each["addresses"]]


def _join(client: socket.socket, pod: socket.socket) -> None:
    with pod:
        pod.settimeout(None)
        back = threading.Thread(target=_pass_on, args=(pod, client))
        back.start()
        _pass_on(client, pod)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until either end is closed; then close both, as a dead pod's kernel does."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
