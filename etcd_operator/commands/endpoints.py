"""The flags that name a cluster, its certificates and a user; and the connections they lead to."""

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from etcd_operator.commands.outcome import UsageError

if TYPE_CHECKING:
    from etcd_operator.etcd.channel import Channels, TlsCredentials

_ENDPOINT = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<address>(?:\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5})/?"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--endpoints",
        required=True,
        metavar="HOST:PORT,...",
        help="client addresses of all members of one cluster; the source is chosen among them",
    )
    group.add_argument("--cacert", type=Path, metavar="FILE", help="CA that signed etcd's certificates (PEM)")
    group.add_argument("--cert", type=Path, metavar="FILE", help="client certificate (PEM)")
    group.add_argument("--key", type=Path, metavar="FILE", help="key of the client certificate (PEM)")
    group.add_argument(
        "--tls-server-name",
        metavar="NAME",
        help="host name in etcd's certificates, if it differs from the host in --endpoints",
    )
    group.add_argument("--user", metavar="NAME", help="etcd user; a backup requires the role root")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file with the user's password")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Connections to the endpoints, and the token of the user."""

    channels: "Channels"
    endpoints: list[str]
    token: str | None


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Cluster]:
    """Connect as the flags request. Raises `UsageError`, and `SourceError` if the login fails."""
    from etcd_operator.archive.source import log_in
    from etcd_operator.etcd.channel import Channels

    endpoints, credentials = _endpoints(options), _credentials(options)
    user, password = options.user, _password(options)
    channels = Channels(credentials)
    try:
        token = log_in(channels, endpoints, user, password) if user else None
        yield Cluster(channels=channels, endpoints=endpoints, token=token)
    finally:
        channels.close()


def _endpoints(options: argparse.Namespace) -> list[str]:
    found = []
    for text in options.endpoints.split(","):
        if "@" in text:
            raise UsageError("--endpoints takes no credentials: pass --user and --password-file")
        match = _ENDPOINT.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"--endpoints: {text.strip()!r} is not HOST:PORT, like 127.0.0.1:2379")
        if match["scheme"] == "https" and options.cacert is None:
            raise UsageError(f"--endpoints: {text.strip()} uses TLS: pass --cacert with etcd's CA")
        if match["scheme"] == "http" and options.cacert is not None:
            raise UsageError(f"--endpoints: {text.strip()} uses no TLS: write https:// or remove --cacert")
        found.append(match["address"])
    return list(dict.fromkeys(found))


def _credentials(options: argparse.Namespace) -> "TlsCredentials | None":
    if options.cacert is None:
        if options.cert is not None or options.key is not None or options.tls_server_name:
            raise UsageError("--cert, --key and --tls-server-name need --cacert with etcd's CA")
        return None
    if (options.cert is None) != (options.key is None):
        raise UsageError("--cert and --key belong together: pass both")
    from etcd_operator.etcd.channel import TlsCredentials

    return TlsCredentials(
        ca=_pem("--cacert", options.cacert, b"CERTIFICATE"),
        certificate=_pem("--cert", options.cert, b"CERTIFICATE") if options.cert else None,
        key=_pem("--key", options.key, b"PRIVATE KEY") if options.key else None,
        server_name=options.tls_server_name,
    )


def _pem(flag: str, path: Path, kind: bytes) -> bytes:
    data = _read(flag, path)
    if kind + b"-----" not in data:
        raise UsageError(f"{flag}: {path} has no {kind.decode().lower()} in PEM format")
    return data


def _password(options: argparse.Namespace) -> str:
    if bool(options.user) != bool(options.password_file):
        raise UsageError("--user and --password-file belong together: pass both")
    if not options.user:
        return ""
    if ":" in options.user:
        raise UsageError("--user takes a name only: put the password in a file, and pass --password-file")
    return _read("--password-file", options.password_file).decode(errors="replace").rstrip("\r\n")


def _read(flag: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{flag}: cannot read {path}: {error.strerror}") from error
