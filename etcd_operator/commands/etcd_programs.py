"""The flags that name the paths of etcd's programs."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser, which: str) -> None:
    """which: the programs, for people."""
    parser.add_argument(
        "--etcd-bin", type=Path, metavar="DIR", help=f"folder with {which} (default: the PATH)"
    )
    # For the pods that the operator makes: see `programs.folder_in_pod`.
    parser.add_argument("--etcd-in-pod", action="store_true", help=argparse.SUPPRESS)


def folder(options: argparse.Namespace) -> Path | None:
    """The folder; None for the PATH. Raises `ProgramMissing`."""
    from etcd_operator.archive import programs

    given: Path | None = options.etcd_bin
    return programs.folder_in_pod() if options.etcd_in_pod else given
