"""The commands as processes: signals, and what they import."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from etcd_operator.commands.outcome import Interrupted, as_exception
from unit.archive.samples import snapshot
from unit.commands.conftest import Held
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

SLOW = ("semver", "importlib.metadata", "ctypes")
"""A short backup notices their imports."""


pytestmark = pytest.mark.usefixtures("default_signals")


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "etcd_operator", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


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
        f"print(code, [name for name in {(*LARGE, *SLOW)!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 ['grpc']"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(
    held: Held, endpoint: str, backups: Path, number: signal.Signals
) -> None:
    with started("backup", "--endpoints", endpoint, "--to", str(backups / "one.db")) as process:
        assert held.reached.wait(60)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err == f"etcd-operator: interrupted by {number.name}\n"
    assert (out, list(backups.iterdir())) == ("", [])


@pytest.mark.filterwarnings("error")
def test_a_signal_during_a_destructor_is_heeded() -> None:
    class Interruptible:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    def work() -> bool:
        held = [Interruptible()]
        held.clear()
        return threading.Event().wait(60)

    with pytest.raises(Interrupted), as_exception():
        work()


def test_a_broken_pipe_is_not_a_traceback(backups: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        command = [sys.executable, "-m", "etcd_operator", "list", str(backups)]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr


def in_shell(redirection: str, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "etcd_operator", *words]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("redirection", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_change_nothing(endpoint: str, backups: Path, redirection: str) -> None:
    done = in_shell(redirection, "backup", "--endpoints", endpoint, "--to", str(backups / "one.db"))
    assert done.returncode == 0
    assert (backups / "one.db").read_bytes() == snapshot()


def test_a_full_disk_for_the_result_is_one_line(backups: Path) -> None:
    done = in_shell(">/dev/full", "list", str(backups))
    text = "etcd-operator: the result cannot be written to stdout: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, text)


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize("encoding", ["ascii:strict", "utf-8:strict"])
def test_any_name_can_be_listed_anywhere(backups: Path, encoding: str, form: str) -> None:
    for name in ("caf\u00e9", "bad\udcff", "x\nfake.db  complete\x1b[2J"):
        (backups / name).touch()
    done = in_shell("", "list", str(backups), *filter(None, [form]), PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bad\\" in done.stdout
    assert "\x1b" not in done.stdout
    assert not any(line.startswith("fake.db") for line in done.stdout.splitlines())


def test_a_signal_that_the_shell_ignores_remains_ignored(held: Held, endpoint: str, backups: Path) -> None:
    """As with `nohup`, or in a script with `&`."""
    command = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", endpoint]
    command += ["--to", str(backups / "one.db")]
    process = subprocess.Popen(["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", *command])
    assert held.reached.wait(60)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    held.resume.set()
    assert process.wait(60) == 0


def test_a_full_disk_is_one_line_and_leaves_nothing(
    etcd: FakeEtcdCluster, endpoint: str, backups: Path
) -> None:
    """Files may not grow beyond 20,000 bytes here."""
    etcd.damage = lambda _: snapshot(100)
    code = (
        "import resource, sys; from etcd_operator import cli;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        f"sys.exit(cli.main(['backup', '--endpoints', {endpoint!r}, '--to', {str(backups / 'a.db')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, list(backups.iterdir())) == (1, [])
    assert done.stderr.startswith(f"etcd-operator: No space is left for {backups}. Free some")


def test_failed_handshakes_of_grpc_are_not_logged(endpoint: str, backups: Path, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    words = ("--endpoints", endpoint, "--to", str(backups / "a"), "--cacert", str(tmp_path / "ca.pem"))
    with started("backup", *words) as process:
        _, err = process.communicate(timeout=60)
    assert err.count("\n") == 1
