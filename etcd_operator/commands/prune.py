"""`etcd-operator prune`: remove old backups."""

import argparse
import fnmatch
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from etcd_operator.commands import flags, outcome, progress
from etcd_operator.commands.flags import PLACES, open_place
from etcd_operator.commands.outcome import Outcome, UsageError
from etcd_operator.formats import DURATION_HELP, bytes_text, counted, seconds_of

if TYPE_CHECKING:
    from etcd_operator.archive.prune import Found
    from etcd_operator.archive.retention import Policy, StoredBackup

HELP = "remove old backups"
DESCRIPTION = """\
Remove old backups below a folder or prefix: those beyond the newest --max-count, and those that are more
than --max-age older than the newest backup. The newest one is never removed. Of two backups of the same etcd
cluster, the one with the higher revision is newer; of two backups of different etcd clusters, the one that
was taken later. The --max-count backups that were stored last are never removed because of their number, and
the newest one of a former etcd cluster is kept for 30 days after the first one of the next.

Only complete backups of one series are counted and removed: those without a series, unless --series names
one. Everything else is left alone. Run it with --dry-run first.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator prune ./backups --max-count 7 --dry-run
  etcd-operator prune 's3://my-bucket/etcd/?region=eu-west-1' --max-count 100 --max-age 30d
  etcd-operator prune ./backups --max-age 12h --series nightly --keep 20261122T140000Z.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("url", metavar="URL", help="a folder or a prefix")
    parser.add_argument("--max-count", type=int, metavar="N", help="keep the newest N backups")
    parser.add_argument(
        "--max-age",
        metavar="AGE",
        help=f"how much older than the newest backup a backup may be: {DURATION_HELP}",
    )
    parser.add_argument(
        "--series",
        default="",
        metavar="NAME",
        help="the series to prune, as in the manifests (default: the backups without a series)",
    )
    parser.add_argument(
        "--match",
        metavar="PATTERN",
        help="only backups whose name, as in the list, matches the pattern, like 'db-*.db'",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="NAME",
        help="never remove this backup, named as in the list; may be repeated, and need not exist",
    )
    flags.add_keys(parser, "count and remove only backups that are encrypted with these keys")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    outcome.add_arguments(parser, with_report=True)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive import prune

    policy = _policy(options)
    place = open_place(options.url)
    below = f"{place.name}/" if place.name else ""
    pattern = options.match or "*"
    found = prune.find(
        place.store,
        place.name,
        policy,
        series=options.series,
        keep={below + name for name in options.keep},
        keys=flags.keys(options),
        now=datetime.now(UTC),
        is_wanted=lambda name: fnmatch.fnmatchcase(name.removeprefix(below), pattern),
    )
    if options.dry_run:
        return _outcome(found, found.surplus, below, is_dry=True)
    total = sum(backup.manifest.stored_size for backup in found.surplus)
    with progress.of(options, "removing", total) as on_progress:
        removed = prune.carry_out(place.store, found, on_progress)
    return _outcome(found, removed, below, is_dry=False)


def _policy(options: argparse.Namespace) -> "Policy":
    from etcd_operator.archive.retention import Policy

    if options.max_count is None and options.max_age is None:
        raise UsageError("pass --max-count, --max-age or both")
    if options.max_count is not None and options.max_count < 1:
        raise UsageError("--max-count: the newest backup is never removed: pass 1 or more")
    if options.max_age is None:
        return Policy(max_count=options.max_count)
    try:
        return Policy(max_count=options.max_count, max_age=seconds_of(options.max_age))
    except ValueError as error:
        raise UsageError(f"--max-age: {error}") from error


def _outcome(found: "Found", removed: "Sequence[StoredBackup]", below: str, *, is_dry: bool) -> Outcome:
    names = [backup.name.removeprefix(below) for backup in removed]
    size = sum(backup.manifest.stored_size for backup in removed)
    counts = {"removed": len(names), "removedSize": size, "kept": found.kept}
    verb = "would remove" if is_dry else "removed"
    lines = [f"{verb} {name}" for name in names]
    backups = counted(len(names), "backup")
    lines.append(f"{verb} {backups} of {bytes_text(size)}, kept {found.kept}" if names else _nothing(found))
    if found.unknown:
        lines.append(f"left out {counted(found.unknown, 'backup')} that somebody without these keys stored")
    document = {**counts, "unknown": found.unknown, "dryRun": is_dry, "names": names}
    return Outcome(text="\n".join(lines), document=document, report=counts)


def _nothing(found: "Found") -> str:
    return f"nothing to remove: kept {found.kept}" if found.kept else "no backups of this series"
