"""`etcd-operator fetch`: copy a backup to a file."""

import argparse
from pathlib import Path

from etcd_operator.commands import flags, outcome, progress
from etcd_operator.commands.flags import PLACES, open_backup
from etcd_operator.commands.outcome import Outcome
from etcd_operator.formats import bytes_text

HELP = "copy a backup to a file, for etcdutl snapshot restore"
DESCRIPTION = """\
Copy a backup to a file, decrypted and decompressed, as `etcdutl snapshot restore` reads it. The file appears
only when it is complete and checked. A fetch that was interrupted continues.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator fetch ./backups/one.db snapshot.db
  etcd-operator fetch 's3://my-bucket/etcd/20261122T140000Z.backup?region=eu-west-1' snapshot.db \\
      --encryption-keys /etc/backup-keys
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("url", metavar="URL", help="the backup")
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to be written; it must not exist")
    flags.add_keys(parser)
    outcome.add_arguments(parser)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    import msgspec

    from etcd_operator.archive.catalog import load
    from etcd_operator.archive.fetch import fetch

    place = open_backup(options.url)
    store, name = place.store, place.name
    ring = flags.keys(options)
    with progress.of(options, "fetching", load(store, name).stored_size) as on_progress:
        manifest = fetch(store, name, options.file, ring, on_progress=on_progress)
    text = f"fetched {options.file}: revision {manifest.revision}, {bytes_text(manifest.size)}"
    document = {"name": name, "file": str(options.file), "manifest": msgspec.to_builtins(manifest)}
    return Outcome(text=text, document=document)
