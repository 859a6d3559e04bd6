"""Flags that several commands have: encryption keys, and the programs of etcd."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etcd_operator.archive.keys import KeyRing

OF_BACKUPS = "the keys of encrypted backups: a file with one key, or a folder of them"


def add_keys(parser: argparse.ArgumentParser, text: str = OF_BACKUPS) -> None:
    """The flag for keys; `text` describes what they are for."""
    parser.add_argument("--encryption-keys", type=Path, metavar="PATH", help=text)


def keys(options: argparse.Namespace) -> "KeyRing":
    """The keys that were named, or none. Raises `BadKey`."""
    from etcd_operator.archive.keys import KeyRing

    return KeyRing() if options.encryption_keys is None else KeyRing.read(options.encryption_keys)


def add_programs(parser: argparse.ArgumentParser, which: str) -> None:
    """The flags for the folder of etcd's programs. which: the programs, for people."""
    parser.add_argument(
        "--etcd-bin", type=Path, metavar="DIR", help=f"folder with {which} (default: the PATH)"
    )
    # For the pods that the operator makes: see `programs.folder_in_pod`.
    parser.add_argument("--etcd-in-pod", action="store_true", help=argparse.SUPPRESS)


def programs(options: argparse.Namespace) -> Path | None:
    """The folder of the programs; None for the PATH. Raises `ProgramMissing`."""
    from etcd_operator.archive.programs import folder_in_pod

    given: Path | None = options.etcd_bin
    return folder_in_pod() if options.etcd_in_pod else given
