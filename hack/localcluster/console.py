"""The output for the person at the terminal.

Promises: progress is one line per step with the seconds since the start, flushed at once, on stderr, so
that stdout carries answers only (`hack/cluster kubeconfig` prints a path and nothing else). A
`RefusalError` becomes exactly one line that names the way out.
"""

from __future__ import annotations

import sys
import time

_STARTED = time.monotonic()


class RefusalError(Exception):
    """Cannot go on; the message is one line and names the way out."""


def progress(line: str) -> None:
    """Print one line of progress."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {line}", file=sys.stderr, flush=True)
