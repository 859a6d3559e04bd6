"""The flag that names encryption keys."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etcd_operator.archive.keys import KeyRing


OF_BACKUPS = "the keys of encrypted backups: a file with one key, or a folder of them"


def add_arguments(parser: argparse.ArgumentParser, text: str = OF_BACKUPS) -> None:
    """The flag; `text` describes what the keys are for."""
    parser.add_argument("--encryption-keys", type=Path, metavar="PATH", help=text)


def read(options: argparse.Namespace) -> "KeyRing":
    """The keys that were named, or none. Raises `BadKey`."""
    from etcd_operator.archive.keys import KeyRing

    return KeyRing() if options.encryption_keys is None else KeyRing.read(options.encryption_keys)
