"""`etcd-operator list`: what is stored in a place."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from etcd_operator.commands import outcome
from etcd_operator.commands.flags import PLACES, open_folder
from etcd_operator.commands.outcome import Outcome
from etcd_operator.formats import CORRUPT_ALARM, bytes_text

if TYPE_CHECKING:
    from etcd_operator.archive.catalog import Entry

HELP = "list backups"
DESCRIPTION = """\
List what is stored below a folder or prefix, oldest first. Only `complete` entries are backups. Every other
entry is shown with what is wrong with it.
"""
EXAMPLES = f"""\
{PLACES}
Examples:
  etcd-operator list ./backups
  etcd-operator list 's3://my-bucket/etcd/?region=eu-west-1' --json
"""

_HEADER = ("NAME", "STATE", "TIME", "REVISION", "KEYS", "SIZE", "ETCD", "FORMAT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("url", metavar="URL", help="a folder or a prefix")
    outcome.add_arguments(parser)


@outcome.concluded
def run(options: argparse.Namespace) -> Outcome:
    """Run the command."""
    from etcd_operator.archive.catalog import entries

    place = open_folder(options.url)
    found = sorted(entries(place.store, place.name), key=_age)
    below = len(place.name) + 1 if place.name else 0
    document = {"backups": [_document(entry, below) for entry in found]}
    nothing = "no backups" if place.is_folder else f"no backups below {place.name}/"
    return Outcome(text=_text(found, below) if found else nothing, document=document)


def _age(entry: "Entry") -> tuple[float, str]:
    return (entry.time.timestamp() if entry.time is not None else 0.0, entry.name)


def _document(entry: "Entry", below: int) -> dict[str, object]:
    import msgspec

    name = entry.name[below:].encode(errors="backslashreplace").decode()
    document: dict[str, object] = {"name": name, "state": entry.state.value}
    if entry.problem:
        document["problem"] = entry.problem
    if entry.stored is not None:
        document["storedSize"] = entry.stored.size
    if entry.manifest is not None:
        document["manifest"] = msgspec.to_builtins(entry.manifest)
    return document


def _text(found: Sequence["Entry"], below: int) -> str:
    rows = [_HEADER, *(_row(entry, below) for entry in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    notes = [_shown(f"{entry.name[below:]}: {note}") for entry in found if (note := _note(entry))]
    return "\n".join([*(line.rstrip() for line in lines), *(["", *notes] if notes else [])])


def _note(entry: "Entry") -> str:
    if entry.problem or entry.manifest is None:
        return entry.problem
    notes = []
    if not entry.manifest.quorum:
        notes.append("taken without a quorum: the last writes may be missing")
    if entry.manifest.corrupt_alarm:
        notes.append(CORRUPT_ALARM)
    return "; ".join(notes)


def _row(entry: "Entry", below: int) -> tuple[str, ...]:
    time = f"{entry.time:%Y-%m-%d %H:%M:%SZ}" if entry.time is not None else "-"
    size = bytes_text(entry.stored.size) if entry.stored is not None else "-"
    begin = (_shown(entry.name[below:]), entry.state.value, time)
    manifest = entry.manifest
    if manifest is None:
        return (*begin, "-", "-", size, "-", "-")
    form = "+".join(filter(None, (manifest.compression, manifest.encryption))) or "plain"
    return (*begin, str(manifest.revision), str(manifest.keys), size, manifest.etcd_version, form)


def _shown(text: str) -> str:
    """Line breaks and control sequences, in names that anybody may choose, must not forge a list."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )
