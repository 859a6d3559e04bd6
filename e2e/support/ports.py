"""Ports of this machine for processes that cannot choose one themselves."""

import socket


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on; another process may take it before it is used."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
