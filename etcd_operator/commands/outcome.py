"""How a command ends: exit codes, one line for each error, output for people or one JSON document.

SIGINT, SIGTERM and SIGHUP are an exception in the main thread, so that the command cleans up.

0    done
1    failed
2    wrong usage
3    the backup is damaged (verify, fetch, restore)
4    the etcd follows a leader (read-survivor)
130  interrupted by SIGINT (128 + number of the signal)
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from etcd_operator.errors import OperatorError

FAILED, WRONG_USAGE, DAMAGED = 1, 2, 3

LONGEST_REPORTED = 500
"""Characters of an error in a report: Kubernetes keeps 4096 bytes, and a document that is cut is none."""


class UsageError(OperatorError):
    """The arguments contradict each other, or a value is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command prints: `text` for people, or `document` with --json.

    report: what is written with --report, if the document may be longer than Kubernetes keeps.
    """

    text: str
    document: Mapping[str, Any]
    report: Mapping[str, Any] | None = None


def add_arguments(parser: argparse.ArgumentParser, *, with_report: bool = False) -> None:
    """The flags of the output. with_report: for a command that a program runs without reading its output."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    if with_report:
        text = "write the document of --json to this file, too"
        parser.add_argument("--report", type=Path, metavar="FILE", help=text)


def concluded(work: Callable[[argparse.Namespace], Outcome]) -> Callable[[argparse.Namespace], int]:
    """`run` of a command: does the work, prints its outcome or its error, and returns the exit code.

    Errors are one line on stderr; with --json also the document {"error": ..., "reason": ...} on stdout.
    """

    def run(options: argparse.Namespace) -> int:
        # gRPC would write its own lines about each failed handshake; it reads this when it is imported.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        _fill_standard_streams()
        try:
            with as_exception():
                outcome = work(options)
        except Interrupted as interruption:
            text = f"interrupted by {interruption}"
            return _failed(options, text, type(interruption).__name__, interruption.exit_code)
        except OperatorError as error:
            return _failed(options, " ".join(str(error).split()), type(error).__name__, _code(error))
        _write_report(options, outcome.document if outcome.report is None else outcome.report)
        return 0 if _print(options, outcome) else FAILED

    return run


def report(text: str) -> None:
    """A line for people, on stderr."""
    print(f"etcd-operator: {text}", file=sys.stderr, flush=True)  # noqa: T201 -- the user's terminal


def _code(error: OperatorError) -> int:
    from etcd_operator.archive.errors import Damaged

    if isinstance(error, UsageError):
        return WRONG_USAGE
    return DAMAGED if isinstance(error, Damaged) else FAILED


def _failed(options: argparse.Namespace, text: str, reason: str, code: int) -> int:
    report(text)
    document = {"error": text, "reason": reason}
    _write_report(options, {**document, "error": text[:LONGEST_REPORTED]})
    if options.json:
        _print(options, Outcome(text="", document=document))
    return code


def _fill_standard_streams() -> None:
    """A caller may have closed them. The next file, perhaps a backup, must not become stdout or stderr."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 -- stays open


def _write_report(options: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Write the report, if one is wanted. What was done is done, so a failure is only reported."""
    path: Path | None = getattr(options, "report", None)
    if path is None:
        return
    import msgspec

    try:
        path.write_bytes(msgspec.json.encode(document))
    except OSError as error:
        report(f"warning: cannot write the report {path}: {error.strerror}")


def _print(options: argparse.Namespace, outcome: Outcome) -> bool:
    """Whether stdout took it, or nobody reads it."""
    text = _encoded(outcome.document) if options.json else outcome.text
    try:
        _write(text + "\n")
    except OSError as error:
        # Python would fail once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, like `head`, has seen enough
            return True
        report(f"the result cannot be written to stdout: {error.strerror}")
        return False
    return True


def _write(text: str) -> None:
    """Characters that stdout cannot encode are escaped: names of files may be any bytes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _encoded(document: Mapping[str, Any]) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

AGAIN_SECONDS = 0.05
"""After so long a signal whose exception was swallowed is sent once more."""


class Interrupted(BaseException):
    """A signal ended the command. Not an `Exception`: nothing that handles failures may hold it back."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.exit_code = 128 + number


@contextmanager
def as_exception() -> Iterator[None]:
    """Raise `Interrupted` at the first of these signals; later ones do not disturb the cleaning up.

    A signal that is ignored remains ignored: `nohup` and shells do that for commands in the background.
    """
    has_come = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal has_come
        if not has_come:
            has_come = True
            raise Interrupted(number)

    def swallowed(unraisable: "sys.UnraisableHookArgs") -> None:
        # It was raised in a destructor or a callback of C code, and those go on after any exception. It is
        # raised once more when this function has ended: here, it would be swallowed, too.
        nonlocal has_come
        if isinstance(unraisable.exc_value, Interrupted):
            has_come = False
            again = threading.Timer(AGAIN_SECONDS, os.kill, [os.getpid(), unraisable.exc_value.number])
            ending.callback(again.cancel)
            again.start()
        else:
            hook(unraisable)

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    hook = sys.unraisablehook
    with ExitStack() as ending:
        ending.callback(setattr, sys, "unraisablehook", hook)
        sys.unraisablehook = swallowed
        for number in heeded:
            ending.callback(signal.signal, number, signal.signal(number, handle))
        yield
