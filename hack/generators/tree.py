"""Brings the generated files of the tree up to date, or checks that they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

Files = Mapping[str, str]
"""Path below the root -> content."""


def run(
    command: str,
    description: str,
    generate: Callable[[], Files],
    *,
    folders: Sequence[str] = (),
    root: Path = ROOT,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run one generator as `hack/COMMAND`; the exit code.

    folders: those that hold nothing but what is generated; other files in them are stale.
    """
    parser = argparse.ArgumentParser(prog=f"hack/{command}", description=description)
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if a file differs")
    is_check = parser.parse_args(arguments).check
    files = generate()
    stale = stale_files(files, folders, root)
    for path in stale:
        if is_check:
            print(f"{path} is not as generated: run hack/{command}", file=sys.stderr)
        elif path in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(files[path])
        else:
            (root / path).unlink()
    return 1 if is_check and stale else 0


def stale_files(files: Files, folders: Sequence[str], root: Path) -> list[str]:
    """The paths whose content is not as in `files`, and files in the folders that nothing generates."""
    found = [path for folder in folders for path in (root / folder).glob("*")]
    present = {path.relative_to(root).as_posix() for path in found}
    return sorted(path for path in {*files, *present} if files.get(path) != _content(root / path))


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
