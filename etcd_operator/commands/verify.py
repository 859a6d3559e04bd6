"""`etcd-operator verify`: read a backup back, and restore it on trial."""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from etcd_operator.commands import flags, outcome, progress
from etcd_operator.commands.flags import PLACES, open_backup
from etcd_operator.commands.outcome import Outcome, UsageError
from etcd_operator.formats import counted

if TYPE_CHECKING:
    from etcd_operator.archive.manifest import Manifest
    from etcd_operator.archive.trial import Trial

HELP = "read a backup back and check it; with --restore, also test a restore"
DESCRIPTION = """\
Read a backup back, every byte, and check it against its manifest. With --restore, also restore it into a
scratch directory, start an etcd there, and compare what it serves; no running cluster is touched. Exit code 3
means that the backup is damaged.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator verify ./backups/one.db
  etcd-operator verify ./backups/one.db --restore --etcd-bin /opt/etcd-3.6.16
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("url", metavar="URL", help="the backup")
    parser.add_argument(
        "--restore", action="store_true", help="also test a restore; requires etcd and etcdutl"
    )
    flags.add_programs(parser, "etcd and etcdutl, of the minor version of the backup or newer")
    parser.add_argument(
        "--scratch-dir",
        type=Path,
        metavar="DIR",
        help="where to restore (default: the folder for temporary files)",
    )
    flags.add_keys(parser)
    outcome.add_arguments(parser, with_report=True)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive.catalog import load
    from etcd_operator.archive.verify import snapshot

    begin = time.monotonic()
    if not options.restore and (options.etcd_bin or options.scratch_dir or options.etcd_in_pod):
        raise UsageError("--etcd-bin and --scratch-dir are for --restore: add it, or remove them")
    place, ring = open_backup(options.url), flags.keys(options)
    manifest, trial = load(place.store, place.name), None
    with progress.of(options, "verifying", manifest.size) as shown:
        chunks = snapshot(place.store, place.name, manifest, ring, on_progress=shown)
        if options.restore:
            trial = _restored(options, manifest, chunks, shown.stage)
        else:
            for _ in chunks:
                pass
    return _outcome(place.name, manifest, trial, time.monotonic() - begin)


def _restored(
    options: argparse.Namespace,
    manifest: "Manifest",
    chunks: Iterator[bytes],
    on_stage: Callable[[str], None],
) -> "Trial":
    from etcd_operator.archive import programs, trial

    found = programs.find(flags.programs(options), manifest.etcd_version)
    with trial.scratch(options.scratch_dir, manifest) as scratch:
        return trial.trial(scratch, chunks, manifest, found, on_stage=on_stage)


def _outcome(name: str, manifest: "Manifest", trial: "Trial | None", seconds: float) -> Outcome:
    import msgspec

    document: dict[str, object] = {"name": name, "seconds": round(seconds, 3)}
    document["manifest"] = msgspec.to_builtins(manifest)
    text = f"verified {name}: revision {manifest.revision}, {counted(manifest.keys, 'key')}, all hashes match"
    if trial is not None:
        document["restore"] = msgspec.to_builtins(trial)
        text += f"; restored, and served by etcd {trial.etcd_version} at revision {trial.revision}"
        if not trial.has_compared_hash:
            text += " (HashKV not compared: that requires etcdutl 3.6 or newer)"
    return Outcome(text=f"{text}, in {seconds:.1f} s", document=document)
