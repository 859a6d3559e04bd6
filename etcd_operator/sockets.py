"""Sockets that listen."""

import socket


def listening_socket(port: int, *, host: str = "", backlog: int | None = None) -> socket.socket:
    """A listening socket; without a host at all addresses, IPv4 and IPv6 where the machine has both.

    port: 0 for any free one. Raises OSError.
    """
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=backlog)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog)
    return socket.create_server(("", port), backlog=backlog)
