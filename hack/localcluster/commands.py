"""Runs other programs to their end.

Promises: every call has a deadline in seconds; a failure carries the last line that the program printed.
Programs that go on running are the business of `processes`.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .console import RefusalError

DEADLINE = 60.0


class CommandError(RefusalError):
    """A program ended with an error, or did not end in time."""


def run(
    command: Sequence[str | Path],
    *,
    deadline: float = DEADLINE,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Return what the command printed on stdout; raise `CommandError` if it fails."""
    done = completed(command, deadline=deadline, stdin=stdin, env=env, cwd=cwd)
    if done.returncode != 0:
        raise CommandError(f"{_title(done.args)} failed: {_last_line(done.stderr or done.stdout)}")
    return done.stdout


def completed(
    command: Sequence[str | Path],
    *,
    deadline: float = DEADLINE,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return the command when it has ended; raise `CommandError` if it is missing or does not end in time."""
    arguments = [str(word) for word in command]
    try:
        return subprocess.run(
            arguments,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=deadline,
            check=False,
            env=dict(env) if env is not None else None,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise CommandError(f"{arguments[0]} is not installed; run: hack/cluster setup") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{_title(arguments)} did not end within {deadline:.0f} s") from error


def succeeds(command: Sequence[str | Path], *, deadline: float = DEADLINE) -> bool:
    """Return whether the command ends without an error."""
    try:
        run(command, deadline=deadline)
    except CommandError:
        return False
    return True


def wait_for(what: str, is_true: Callable[[], bool], *, deadline: float, hint: str = "") -> None:
    """Wait until `is_true`; raise `RefusalError` after `deadline` seconds."""
    end = time.monotonic() + deadline
    while not is_true():
        if time.monotonic() > end:
            raise RefusalError(f"{what} did not happen within {deadline:.0f} s{'; ' + hint if hint else ''}")
        time.sleep(0.05)


def clean_environment() -> dict[str, str]:
    """Return the environment for programs whose behaviour must not depend on who calls."""
    sbin = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": sbin, "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8"}


def _title(arguments: Sequence[str]) -> str:
    return " ".join([Path(arguments[0]).name, *arguments[1:4]])


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else "it printed nothing"
