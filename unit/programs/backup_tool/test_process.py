"""The command as a process, and what it refuses."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator import cli
from etcd_operator.observability import logs
from unit.etcd.real import free_address
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, OWNER, TOKEN, request
from unit.waiting import eventually

pytestmark = pytest.mark.usefixtures("default_signals")

FLAGS = {
    "endpoint": "127.0.0.1:1",
    "to": "backups/",
    "folder": FOLDER,
    "owner": OWNER,
    "interval": "3600",
    "max-backups": "3",
    "token-file": "token",
}


def words(**changes: str) -> list[str]:
    flags = {**FLAGS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return ["backup-tool", *(f"--{name}={value}" for name, value in flags.items())]


def port_answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        return request(port, "/healthz", token=None).status == 200
    return False


@contextlib.contextmanager
def process(
    tmp_path: Path, endpoint: str, interval: int = 3600
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command with a folder in `tmp_path`, and its port."""
    (tmp_path / "backups").mkdir(exist_ok=True)
    (tmp_path / "token").write_text(TOKEN)
    port, probe_port = (int(free_address().rpartition(":")[2]) for _ in range(2))
    flags = words(
        endpoint=endpoint,
        interval=str(interval),
        to=f"{tmp_path}/backups/",
        token_file=f"{tmp_path}/token",
        scratch_dir=str(tmp_path),
        port=str(port),
        probe_port=str(probe_port),
    )
    command = [sys.executable, "-m", "etcd_operator", *flags]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: port_answers(probe_port))
        yield running, port
    finally:
        running.kill()
        running.communicate(timeout=20)


@pytest.mark.parametrize("chunk", [0, 1, 5])
def test_a_tool_that_is_killed_leaves_nothing_that_counts(
    etcd: FakeEtcdCluster, endpoint: str, tmp_path: Path, chunk: int
) -> None:
    folder = tmp_path / "backups" / FOLDER
    with process(tmp_path, endpoint, interval=1) as (_, port):
        eventually(lambda: newest(port) == 6)
        reached, resume = threading.Event(), threading.Event()

        def hold(index: int) -> None:
            if index == chunk:
                reached.set()
                resume.wait(30)

        etcd.on_chunk = hold
        etcd.revision = 101
        assert reached.wait(20)
    resume.set()
    etcd.on_chunk = None
    assert len(list(folder.iterdir())) == 2
    with process(tmp_path, endpoint, interval=1) as (_, port):
        eventually(lambda: newest(port) == 101)
    assert len(list(folder.iterdir())) == 4


def newest(port: int) -> int:
    """The revision of the newest backup; 0 if there is none."""
    found = request(port, "/v1/status").document.get("newest")
    return int(found["revision"]) if found else 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(endpoint: str, tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path, endpoint) as (running, port):
        eventually(lambda: newest(port) == 6)
        running.send_signal(number)
        _, err = running.communicate(timeout=30)
        assert running.returncode == 0, err
        assert TOKEN not in err
        assert '"stopping"' in err
        assert len(list((tmp_path / "backups" / FOLDER).iterdir())) == 2


@pytest.mark.parametrize(
    ("change", "sees", "code"),
    [
        ({"endpoint": "nowhere"}, "--endpoint: 'nowhere' is not HOST:PORT", 2),
        ({"endpoint": "http://127.0.0.1:2379"}, "is not HOST:PORT", 2),
        ({"to": "backups"}, "--to is a folder: end it with /", 2),
        ({"to": "ftp://host/"}, "No store has URLs that start with ftp://", 1),
        ({"folder": "v1/../x"}, "cannot be used in a store", 1),
        ({"folder": ""}, "the folder of the cluster is missing", 2),
    ],
)
def test_what_it_refuses(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    sees: str,
    code: int,
) -> None:
    monkeypatch.setattr(logs, "configure", lambda **_: None)
    assert cli.main(words(**change)) == code
    assert sees in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"interval": "0"}, {"max_backups": "-1"}, {"interval": "often"}])
def test_numbers_must_be_positive(capsys: pytest.CaptureFixture[str], change: dict[str, str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(words(**change))
    assert "argument" in capsys.readouterr().err
