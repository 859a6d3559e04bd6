"""`etcd-operator backup`: store a backup of a cluster."""

import argparse
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from etcd_operator.commands import flags, outcome, progress
from etcd_operator.commands.flags import PLACES, new_name, open_place
from etcd_operator.commands.outcome import Outcome, UsageError
from etcd_operator.formats import CORRUPT_ALARM, bytes_text, counted
from etcd_operator.storage.urls import STALL_SECONDS

if TYPE_CHECKING:
    from etcd_operator.archive.create import Options
    from etcd_operator.archive.manifest import Manifest
    from etcd_operator.etcd.channel import Channels, TlsCredentials

HELP = "store a backup of an etcd cluster"
DESCRIPTION = """\
Store a backup of an etcd cluster: a snapshot, and next to it a manifest with its revision, size and
hash. The backup appears only when it is complete and checked.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator backup --endpoints 127.0.0.1:2379 --to ./backups/one.db
  etcd-operator backup --endpoints etcd-0:2379,etcd-1:2379 --compress \\
      --to 's3://my-bucket/etcd/?region=eu-west-1'
  etcd-operator backup --endpoints https://127.0.0.1:2379 --cacert ca.crt --cert etcd.crt --key etcd.key \\
      --to /var/backups/ --encryption-keys /etc/backup-keys
"""

_ENDPOINT = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<address>(?:\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5})/?"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="where to store the backup; if the URL ends with /, the name is made from the time",
    )
    _add_cluster(parser)
    parser.add_argument("--compress", action="store_true", help="compress with zstd")
    flags.add_keys(
        parser,
        "encrypt with AES-256-GCM: a file with one key, or a folder of keys, of which the last by name is "
        "used",
    )
    parser.add_argument(
        "--without-quorum",
        action="store_true",
        help="back up a member that has lost its quorum; the last writes may be missing",
    )
    parser.add_argument(
        "--series",
        default="",
        metavar="NAME",
        help="a name in the manifest: `prune --series NAME` counts and removes only backups that have it",
    )
    outcome.add_arguments(parser, with_report=True)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive import create, source

    begin = time.monotonic()
    how, place = _how(options), open_place(options.to)
    with _connected(options) as cluster:
        chosen = source.choose(
            cluster.channels, cluster.endpoints, token=cluster.token, without_quorum=options.without_quorum
        )
        if not chosen.has_quorum:
            outcome.report(f"warning: {chosen.endpoint} has no quorum, the last writes may be missing")
        if chosen.has_corrupt_alarm:
            outcome.report(f"warning: the backup is {CORRUPT_ALARM}")
        now, name = datetime.now(UTC), place.name
        if place.is_folder:
            name = new_name(place.store, name, now, is_framed=how.is_framed)
        snapshot = source.read(cluster.channels, chosen, stall=STALL_SECONDS, token=cluster.token)
        with progress.of(options, "backing up", chosen.status.db_size) as on_progress:
            manifest = create.create(
                place.store, name, snapshot, chosen, time=now, options=how, on_progress=on_progress
            )
    return _outcome(name, chosen.endpoint, manifest, time.monotonic() - begin)


def _how(options: argparse.Namespace) -> "Options":
    from etcd_operator.archive.create import Options
    from etcd_operator.archive.manifest import SERIES_PATTERN

    if not re.fullmatch(SERIES_PATTERN, options.series):
        raise UsageError("--series: use at most 256 letters, digits, '.', '_', '/' and '-'")
    key = flags.keys(options).newest
    return Options(compression="zstd" if options.compress else "", key=key, series=options.series)


def _outcome(name: str, endpoint: str, manifest: "Manifest", seconds: float) -> Outcome:
    import msgspec

    document = {"name": name, "source": endpoint, "seconds": round(seconds, 3)}
    document["manifest"] = msgspec.to_builtins(manifest)
    stored = f", {bytes_text(manifest.stored_size)} stored" if manifest.is_framed else ""
    text = (
        f"stored {name}: revision {manifest.revision}, {counted(manifest.keys, 'key')}, "
        f"{bytes_text(manifest.size)}{stored}, from {endpoint} in {seconds:.1f} s"
    )
    return Outcome(text=text, document=document)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    """The flags that name a cluster, its certificates and a user."""
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
        "--tls-dir",
        type=Path,
        metavar="DIR",
        help="in place of these three: a folder with ca.crt and, for a client, tls.crt and tls.key",
    )
    group.add_argument(
        "--tls-server-name",
        metavar="NAME",
        help="host name in etcd's certificates, if it differs from the host in --endpoints",
    )
    group.add_argument("--user", metavar="NAME", help="etcd user; a backup requires the role root")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file with the user's password")
    group.add_argument(
        "--user-dir",
        type=Path,
        metavar="DIR",
        help="in place of these two: a folder with the files username and password",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """Connections to the endpoints, and the token of the user."""

    channels: "Channels"
    endpoints: list[str]
    token: str | None


@contextmanager
def _connected(options: argparse.Namespace) -> Iterator[_Cluster]:
    """Connect as the flags request. Raises `UsageError`, and `SourceError` if the login fails."""
    from etcd_operator.archive.source import log_in
    from etcd_operator.etcd.channel import Channels

    endpoints, credentials = _endpoints(options), _credentials(options)
    user, password = _user(options)
    channels = Channels(credentials)
    try:
        token = log_in(channels, endpoints, user, password) if user else None
        yield _Cluster(channels=channels, endpoints=endpoints, token=token)
    finally:
        channels.close()


def _endpoints(options: argparse.Namespace) -> list[str]:
    found, has_ca = [], (options.cacert or options.tls_dir) is not None
    for text in options.endpoints.split(","):
        if "@" in text:
            raise UsageError("--endpoints takes no credentials: pass --user and --password-file")
        match = _ENDPOINT.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"--endpoints: {text.strip()!r} is not HOST:PORT, like 127.0.0.1:2379")
        if match["scheme"] == "https" and not has_ca:
            raise UsageError(f"--endpoints: {text.strip()} uses TLS: pass --cacert with etcd's CA")
        if match["scheme"] == "http" and has_ca:
            raise UsageError(f"--endpoints: {text.strip()} uses no TLS: write https:// or remove --cacert")
        found.append(match["address"])
    return list(dict.fromkeys(found))


def _credentials(options: argparse.Namespace) -> "TlsCredentials | None":
    if options.tls_dir is not None:
        return _of_folder(options)
    if options.cacert is None:
        if options.cert is not None or options.key is not None or options.tls_server_name:
            raise UsageError("--cert, --key and --tls-server-name need --cacert with etcd's CA")
        return None
    if (options.cert is None) != (options.key is None):
        raise UsageError("--cert and --key belong together: pass both")
    from etcd_operator.etcd.channel import TlsCredentials

    return TlsCredentials(
        ca=_pem("--cacert", options.cacert, "CERTIFICATE"),
        certificate=_pem("--cert", options.cert, "CERTIFICATE") if options.cert else None,
        key=_pem("--key", options.key, "PRIVATE KEY") if options.key else None,
        server_name=options.tls_server_name,
    )


def _of_folder(options: argparse.Namespace) -> "TlsCredentials":
    if options.cacert is not None or options.cert is not None or options.key is not None:
        raise UsageError("--tls-dir replaces --cacert, --cert and --key: pass it alone")
    from etcd_operator.etcd.credentials import read_folder

    return replace(read_folder(options.tls_dir), server_name=options.tls_server_name)


def _pem(flag: str, path: Path, kind: str) -> bytes:
    from etcd_operator.etcd.credentials import BadCredentials, read_pem

    try:
        return read_pem(path, kind)
    except BadCredentials as error:
        raise UsageError(f"{flag}: {error}") from error


def _user(options: argparse.Namespace) -> tuple[str, str]:
    """Name and password, both empty for no user."""
    if options.user_dir is not None:
        if options.user or options.password_file:
            raise UsageError("--user-dir replaces --user and --password-file: pass it alone")
        from etcd_operator.etcd.credentials import read_user

        return read_user(options.user_dir)
    if bool(options.user) != bool(options.password_file):
        raise UsageError("--user and --password-file belong together: pass both")
    if not options.user:
        return "", ""
    if ":" in options.user:
        raise UsageError("--user takes a name only: put the password in a file, and pass --password-file")
    path: Path = options.password_file
    try:
        return options.user, path.read_bytes().decode(errors="replace").rstrip("\r\n")
    except OSError as error:
        raise UsageError(f"--password-file: cannot read {path}: {error.strerror}") from error
