"""URLs and ports of members."""

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

CLIENT_PORT = 2379
PEER_PORT = 2380


def url(host: str, port: int, *, is_secure: bool = False) -> str:
    """`http://host:port`, or https; a literal IPv6 address gets brackets."""
    return f"http{'s' if is_secure else ''}://{endpoint(host, port)}"


def endpoint(host: str, port: int) -> str:
    """`host:port`; a literal IPv6 address gets brackets."""
    try:
        is_v6 = isinstance(ip_address(host), IPv6Address)
    except ValueError:
        is_v6 = False
    return f"[{host}]:{port}" if is_v6 else f"{host}:{port}"


def host_of(address: str) -> str:
    """The host in a URL, without brackets; empty if there is none."""
    return urlsplit(address).hostname or ""
