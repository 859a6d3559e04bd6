"""Open files: the limit is raised, and approaching it is reported once."""

import subprocess
import sys
from pathlib import Path

from structlog.testing import capture_logs

from etcd_operator.observability import files
from etcd_operator.observability.files import LimitCheck, Limits

RAISED = """
import resource
from etcd_operator.observability import files
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 512))
assert files.limits() == (128, 512)
assert files.raise_limit() == files.limits() == (512, 512)
held = [open("/dev/null") for _ in range(300)]
assert 300 < files.open_files() < 320
print("ok")
"""


EXHAUSTED = """
import resource
from structlog.testing import capture_logs
from etcd_operator.observability import files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    pass
with capture_logs() as logs:
    files.LimitCheck().check()
assert [(line["event"], line["open"]) for line in logs] == [("open_files_near_limit", 64)], logs
print("ok")
"""


def assert_passes(program: str) -> None:
    """Run it in a process of its own, whose limit it may change."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", program],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout == "ok\n", done.stderr


def test_the_soft_limit_is_raised_to_the_hard_one_and_used() -> None:
    assert_passes(RAISED)


def test_a_limit_that_is_reached_is_reported_although_counting_needs_a_file() -> None:
    """The main thread counts: what it raises would end the process."""
    assert_passes(EXHAUSTED)


def test_a_file_that_is_opened_is_counted(tmp_path: Path) -> None:
    before = files.open_files()
    with (tmp_path / "a").open("w"), (tmp_path / "b").open("w"):
        assert files.open_files() == before + 2
    assert files.open_files() == before


def test_one_warning_with_numbers_is_given_each_time_that_the_limit_comes_near() -> None:
    count = [0]
    watch = LimitCheck(count=lambda: count[0], limits=lambda: Limits(1000, 4000))
    with capture_logs() as logs:
        for count[0] in (100, 799, 800, 950, 750, 820, 699, 810):
            watch.check()
    assert [(line["event"], line["open"]) for line in logs] == [
        ("open_files_near_limit", 800),
        ("open_files_below_limit", 699),
        ("open_files_near_limit", 810),
    ]
    assert logs[0] == {
        "event": "open_files_near_limit", "log_level": "warning", "open": 800, "soft": 1000, "hard": 4000,
    }  # fmt: skip


def test_without_a_limit_nothing_is_near() -> None:
    watch = LimitCheck(count=lambda: 10**6, limits=lambda: Limits(files._number(-1), files._number(-1)))
    with capture_logs() as logs:
        watch.check()
    assert not logs
