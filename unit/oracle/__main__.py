"""The command line of the oracle."""

import argparse
import json
import re
import sys
from itertools import islice
from pathlib import Path

from unit import oracle
from unit.oracle import corpus
from unit.oracle.replay import replay_file


def share(text: str) -> int:
    """20 for `1/20`."""
    found = re.fullmatch(r"1/([1-9]\d*)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 1/20")
    return int(found[1])


def main() -> int:
    """The exit code: 0 all plans are equal, 1 some are not, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m unit.oracle", description=oracle.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="collect pairs in FILE")
    recording.add_argument("--seeds", type=int, default=3, help="of each model (default: %(default)s)")
    recording.add_argument("--runs", type=int, default=40, help="with each seed (default: %(default)s)")
    replaying = commands.add_parser("replay", help="compare today's plans with those in FILE")
    replaying.add_argument("--sample", type=share, default=1, metavar="1/N", help="each N-th pair only")
    replaying.add_argument("--ignore-messages", action="store_true", help="texts for people may differ")
    replaying.add_argument(
        "--shown", type=int, default=10, help="how many differences (default: %(default)s)"
    )
    showing = commands.add_parser("show", help="print one pair of FILE")
    showing.add_argument("number", type=int)
    for command in (recording, replaying, showing):
        command.add_argument("file", type=Path, metavar="FILE")
        command.add_argument("--processes", type=int, default=2, help="(default: %(default)s)")
    options = parser.parse_args()
    if options.command == "show":
        line = next(islice(corpus.read(options.file), options.number, None))
        print(json.dumps(json.loads(line), indent=1))
        return 0
    if options.command == "record":
        from unit.oracle.record import record  # depends on simulations, which the rest does not

        record(options.file, seeds=options.seeds, runs=options.runs, processes=options.processes)
        return 0
    return replay_file(
        options.file,
        sample=options.sample,
        processes=options.processes,
        ignores_messages=options.ignore_messages,
        shown=options.shown,
    )


if __name__ == "__main__":
    sys.exit(main())
