"""The commands as processes: signals, and what they import."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.backup.samples import snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster

LARGE = (
    "boto3",
    "botocore",
    "google.cloud",
    "azure",
    "zstandard",
    "cryptography",
    "grpc",
    "kubernetes",
    "tenacity",
)


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "etcd_operator", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_parser_needs_nothing_large() -> None:
    code = (
        "import sys; from etcd_operator import cli; cli._parser();"
        f"print([name for name in {LARGE!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plain_backup_to_a_folder_needs_no_sdk(etcd: FakeEtcdCluster, endpoint: str, backups: Path) -> None:
    code = (
        "import sys; from etcd_operator import cli;"
        f"code = cli.main(['backup', '--endpoints', {endpoint!r}, '--to', {str(backups / 'a.db')!r}]);"
        f"print(code, [name for name in {LARGE!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 ['grpc']"


@pytest.fixture
def held(etcd: FakeEtcdCluster) -> Iterator[threading.Event]:
    """Set once a snapshot is being sent, of which only the first chunks come."""
    reached, resume = threading.Event(), threading.Event()
    etcd.damage = lambda _: snapshot(100)

    def hold(index: int) -> None:
        if index == 3:
            reached.set()
            resume.wait(60)

    etcd.on_chunk = hold
    yield reached
    resume.set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(
    held: threading.Event, endpoint: str, backups: Path, number: signal.Signals
) -> None:
    process = start("backup", "--endpoints", endpoint, "--to", str(backups / "one.db"))
    assert held.wait(30)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert err == f"etcd-operator: interrupted by {number.name}\n"
    assert (out, list(backups.iterdir())) == ("", [])


def test_a_killed_process_leaves_nothing_visible(held: threading.Event, endpoint: str, backups: Path) -> None:
    process = start("backup", "--endpoints", endpoint, "--to", str(backups / "one.db"))
    assert held.wait(30)
    process.kill()
    process.communicate(timeout=30)
    listed = subprocess.run(
        [sys.executable, "-m", "etcd_operator", "list", str(backups)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout == "no backups\n"
    assert not (backups / "one.db").exists()


def test_a_member_that_ends_in_the_middle_leaves_nothing(
    etcd: FakeEtcdCluster, held: threading.Event, endpoint: str, backups: Path
) -> None:
    process = start("backup", "--endpoints", endpoint, "--to", str(backups / "one.db"))
    assert held.wait(30)
    server = etcd.member("m0").server
    assert server is not None
    server.stop(grace=None)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "run the backup again" in err
    assert list(backups.iterdir()) == []


def test_a_broken_pipe_is_not_a_traceback(backups: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        command = [sys.executable, "-m", "etcd_operator", "list", str(backups)]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
