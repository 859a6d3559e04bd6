"""The command line: `etcd-operator COMMAND`."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from etcd_operator import __version__
from etcd_operator.commands import (
    backup,
    backup_tool,
    fetch,
    listing,
    prune,
    restore,
    run,
    seed,
    survivor,
    verify,
)


class Command(Protocol):
    """What each module of `commands` has."""

    HELP: str
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's flags."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command; the exit code."""


COMMANDS: Mapping[str, Command] = {
    "run": run,
    "backup": backup,
    "backup-tool": backup_tool,
    "seed": seed,
    "read-survivor": survivor,
    "list": listing,
    "fetch": fetch,
    "verify": verify,
    "prune": prune,
    "restore": restore,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done, 1 failed, 2 wrong usage (more: see the commands)."""
    words = sys.argv[1:] if argv is None else argv
    parser = _parser(words)
    options, unknown = parser.parse_known_args(words)
    if unknown:  # parse_args would print the usage of `etcd-operator`, whatever the command
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
        return 2
    return COMMANDS[options.command].run(options)


def _parser(words: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser, with the flags of the command that is among `words` only: those of others cost time."""
    parser = argparse.ArgumentParser(
        prog="etcd-operator",
        description="Runs etcd clusters on Kubernetes, and backs up etcd clusters anywhere.",
    )
    parser.add_argument("--version", action="version", version=f"etcd-operator {__version__}")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        made = commands.add_parser(
            name,
            help=command.HELP,
            description=command.DESCRIPTION,
            epilog=command.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(parser=made)
        if name in words:
            command.add_arguments(made)
    return parser
