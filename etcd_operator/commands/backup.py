"""`etcd-operator backup`: store a backup of a cluster."""

import argparse
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from etcd_operator.commands import endpoints, flags, outcome, progress
from etcd_operator.commands.outcome import Outcome, UsageError
from etcd_operator.commands.places import PLACES, Place, new_name, open_place
from etcd_operator.formats import bytes_text, counted
from etcd_operator.storage.urls import STALL_SECONDS

if TYPE_CHECKING:
    from etcd_operator.archive.create import Options
    from etcd_operator.archive.manifest import Manifest
    from etcd_operator.archive.source import Source

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help="where to store the backup; if the URL ends with /, the name is made from the time",
    )
    endpoints.add_arguments(parser)
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
    outcome.add_arguments_with_report(parser)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive import source

    begin = time.monotonic()
    how, place = _how(options), open_place(options.to)
    with endpoints.connected(options) as cluster:
        chosen = source.choose(
            cluster.channels, cluster.endpoints, token=cluster.token, without_quorum=options.without_quorum
        )
        if not chosen.has_quorum:
            outcome.report(f"warning: {chosen.endpoint} has no quorum, the last writes may be missing")
        name, manifest = _create(options, place, how, cluster, chosen)
    return _outcome(name, chosen.endpoint, manifest, time.monotonic() - begin)


def _create(
    options: argparse.Namespace, place: Place, how: "Options", cluster: endpoints.Cluster, chosen: "Source"
) -> "tuple[str, Manifest]":
    from etcd_operator.archive import create, source

    now, name = datetime.now(UTC), place.name
    if place.is_folder:
        name = new_name(place.store, name, now, is_framed=how.is_framed)
    snapshot = source.read(cluster.channels, chosen, stall=STALL_SECONDS, token=cluster.token)
    with progress.of(options, "backing up", chosen.status.db_size) as on_progress:
        manifest = create.create(
            place.store,
            name,
            snapshot,
            create.Origin.of(chosen),
            time=now,
            options=how,
            on_progress=on_progress,
        )
    return name, manifest


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
