"""The file of a corpus: sorted lines, each the canonical text of a pair, compressed with zstd."""

import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import zstandard


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines as given."""
    with path.open("wb") as file, zstandard.ZstdCompressor(level=3).stream_writer(file) as packed:
        for line in lines:
            packed.write(line.encode() + b"\n")


def read(path: Path) -> Iterator[str]:
    """The lines of a file."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as packed:
        for line in io.TextIOWrapper(packed, encoding="utf-8", newline="\n"):
            yield line.removesuffix("\n")


def digest(lines: Iterable[str]) -> str:
    """SHA-256 over sorted lines."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode() + b"\n")
    return found.hexdigest()
