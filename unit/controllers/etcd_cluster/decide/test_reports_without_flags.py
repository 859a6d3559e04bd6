"""Errors that pods report name flags of the command line. What a status reports of them does not.

The errors are raised by the code that the pods run, so that a change of its wording is noticed here.
"""

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from etcd_operator.archive import programs, restore, trial
from etcd_operator.archive.programs import Etcdutl
from etcd_operator.archive.source import rank
from etcd_operator.controllers.backup_tool.decide.health import ToolFacts
from etcd_operator.controllers.etcd_backup.decide.result import STORES, VERIFIES, failure
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import plan_prune
from etcd_operator.controllers.shared.decide.job_report import JobReport, restore_failure
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobPod
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.values import NoAnswer
from etcd_operator.pods.reports import LastFailure
from unit.archive.samples import folder, stored
from unit.archive.test_programs import install
from unit.controllers.backup_tool.decide.test_backup_health import LIMIT, REPORT, judged
from unit.controllers.backup_tool.decide.test_backup_tool_plan import SETTLED
from unit.controllers.etcd_backup_schedule.decide.test_prune import STATE, job

FLAG = re.compile(r"(?<![\w/-])--[a-z]")

Raises = Callable[[Path], object]


def without_space(place: Path) -> None:
    made = stored(folder(place / "store"), "one.db")
    manifest = msgspec.structs.replace(made, size=1 << 60, stored_size=1 << 60)
    with ExitStack() as stack:
        stack.enter_context(trial.scratch(place, manifest))


def without_folder(place: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(trial.scratch(place / "none", stored(folder(place / "store"), "one.db")))


def filled(place: Path) -> None:
    (place / "data").write_bytes(b"")
    restore.require_absent(place)


def silent(text: str) -> Raises:
    return lambda _place: rank({"c-0.c.default.svc:2379": NoAnswer(reason=text)})


# Those of `source.py` that need flags for certificates come from pods that have some: those of backup tools.
OF_SOURCES: dict[str, Raises] = {
    text: silent(text)
    for text in ("DNS resolution failed", "recvmsg: Connection reset by peer", "Socket closed", "odd")
}
OF_TOOLS: dict[str, Raises] = {
    text: silent(text)
    for text in (
        "CERTIFICATE_VERIFY_FAILED",
        "Hostname Verification Check failed",
        "WRONG_VERSION_NUMBER",
        "CERTIFICATE_REQUIRED",
        "Failed to create security handshaker",
        "TSI_DATA_CORRUPTED",
    )
}
OF_TRIALS: dict[str, Raises] = {
    "no space": without_space,
    "no folder": without_folder,
    "no etcd": lambda place: programs.find(place, "3.6.2"),
    "no etcd, but for the PATH": lambda _place: programs.find(None, "3.6.2"),
    "an old etcd": lambda place: programs.find(install(place, "3.5.35", "3.5.35"), "3.6.2"),
    "two versions": lambda place: programs.find(install(place, "3.6.16", "3.7.3"), "3.6.2"),
}
OF_RESTORES: dict[str, Raises] = {
    "no etcdutl": programs.find_tool,
    "no etcdutl, but for the PATH": lambda _place: programs.find_tool(None),
    "an old etcdutl": lambda place: Etcdutl(path=place, version="3.5.35").require("3.6.2"),
    "one that raises no revisions": lambda place: Etcdutl(path=place, version="3.5.9").require(""),
    "data in its place": filled,
    "a mount point": lambda _place: restore.require_absent(Path("/proc")),
}


@pytest.fixture(autouse=True)
def nothing_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def reported(raises: Raises, place: Path) -> tuple[str, str]:
    """Text and kind of the error, as `commands.outcome` reports them."""
    with pytest.raises(OperatorError) as caught:
        raises(place)
    return " ".join(str(caught.value).split()), type(caught.value).__name__


@pytest.mark.parametrize("raises", [*OF_SOURCES.values(), *OF_TRIALS.values()], ids=[*OF_SOURCES, *OF_TRIALS])
def test_a_backup_and_a_verification(raises: Raises, tmp_path: Path) -> None:
    text, kind = reported(raises, tmp_path)
    for work in (STORES, VERIFIES):
        pod = JobPod(name="p", exit_code=1, report=JobReport(error=text, reason=kind))
        _, message = failure(pod, "j", work)
        assert not FLAG.search(message), message


@pytest.mark.parametrize("raises", OF_RESTORES.values(), ids=OF_RESTORES)
def test_a_restore(raises: Raises, tmp_path: Path) -> None:
    text, kind = reported(raises, tmp_path)
    assert FLAG.search(text), "the case is about a flag"
    why = restore_failure(JobReport(error=text, reason=kind), why="", job="j")
    assert not FLAG.search(why.message), why.message


@pytest.mark.parametrize("raises", OF_RESTORES.values(), ids=OF_RESTORES)
def test_a_removal_of_old_backups(raises: Raises, tmp_path: Path) -> None:
    """It raises none of these today."""
    text, kind = reported(raises, tmp_path)
    ended = job(JobEnd.FAILED, report=JobReport(error=text, reason=kind))
    message = plan_prune(replace(STATE, job=ended)).message
    assert not FLAG.search(message), message


@pytest.mark.parametrize("raises", [*OF_SOURCES.values(), *OF_TOOLS.values()], ids=[*OF_SOURCES, *OF_TOOLS])
def test_a_backup_tool(raises: Raises, tmp_path: Path) -> None:
    text, kind = reported(raises, tmp_path)
    failed = LastFailure(time="2026-11-22T18:00:00Z", reason=kind, message=text)
    report = msgspec.structs.replace(REPORT, failure=failed)
    message = judged(SETTLED, ToolFacts(report=report, since_success=LIMIT + 1))[2]
    assert not FLAG.search(message), message
