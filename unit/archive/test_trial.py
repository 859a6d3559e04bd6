"""The test restore with programs that misbehave; with real ones: test_real."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from etcd_operator.archive import programs, trial
from etcd_operator.archive.errors import BackupError, Damaged, NotRestorable, ProgramFailed
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.programs import Programs
from unit.archive.samples import chunks, folder, snapshot, stored
from unit.archive.test_programs import program
from unit.waiting import eventually

RESTORE = 'mkdir -p "$5/member/snap" && head -c -32 "$3" > "$5/member/snap/db"'
HASH = "echo '{\"hash\":1}'"

pytestmark = pytest.mark.usefixtures("default_signals")


def install(
    where: Path, *, restore: str = RESTORE, hash_kv: str = HASH, etcd: str = "exec sleep 1000"
) -> Path:
    cases = f"version) echo etcdutl version: 3.6.16;; snapshot) {restore};; hashkv) {hash_kv};;"
    program(where / "etcdutl", f"PATH={os.environ['PATH']}; case $1 in {cases} esac")
    version = "case $1 in --version) echo etcd Version: 3.6.16; exit;; esac"
    program(where / "etcd", f"PATH={os.environ['PATH']}; {version}; {etcd}")
    return where


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return stored(folder(tmp_path / "store"), "one.db")


def attempt(tmp_path: Path, manifest: Manifest, found: Programs) -> trial.Trial:
    with trial.scratch(tmp_path, manifest) as scratch:
        return trial.trial(scratch, chunks(snapshot()), manifest, found)


def left(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("etcd-trial-*"))


@pytest.mark.parametrize(
    ("scripts", "error", "text"),
    [
        ({"restore": "echo bad file; exit 1"}, NotRestorable, "cannot be restored: etcdutl failed: bad file"),
        ({"restore": RESTORE.replace("head -c -32", "tail -c +2")}, Damaged, "not a database of etcd"),
        ({"hash_kv": "echo no bucket; exit 1"}, ProgramFailed, "etcdutl failed: no bucket"),
        (
            {"etcd": "echo panic: corrupt; exit 2"},
            NotRestorable,
            "does not start on the restored data: panic",
        ),
        (
            {"etcd": "echo bind: address already in use; exit 1"},
            NotRestorable,
            "does not start on the restored data: bind",
        ),
    ],
)
def test_a_restore_that_fails_is_one_sentence(
    tmp_path: Path, manifest: Manifest, scripts: dict[str, str], error: type[Exception], text: str
) -> None:
    found = programs.find(install(tmp_path / "bin", **scripts), "3.6.16")
    with pytest.raises(error, match=text):
        attempt(tmp_path, manifest, found)
    assert left(tmp_path) == []


def test_a_restore_that_loses_keys_is_found(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "less").write_bytes(snapshot(4))
    restore = f'mkdir -p "$5/member/snap" && cp {tmp_path / "less"} "$5/member/snap/db"'
    found = programs.find(install(tmp_path / "bin", restore=restore), "3.6.16")
    with pytest.raises(NotRestorable, match="revision 5 and 4 keys, its manifest names 6 and 5"):
        attempt(tmp_path, manifest, found)


def test_an_etcd_that_never_serves_is_given_up_and_killed(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "time_limit", lambda _size: 1.0)
    pid = tmp_path / "pid"
    found = programs.find(install(tmp_path / "bin", etcd=f"echo $$ > {pid}; exec sleep 1000"), "3.6.16")
    with pytest.raises(NotRestorable, match="does not start on the restored data: no output"):
        attempt(tmp_path, manifest, found)
    assert not Path("/proc", pid.read_text().strip()).exists()


def test_too_little_space_is_noticed_before(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial.shutil, "disk_usage", lambda _: SimpleNamespace(free=200 << 20))  # type: ignore[attr-defined]
    text = r"needs 256 MiB, and .* has 200 MiB free: pass --scratch-dir"
    with pytest.raises(BackupError, match=text), trial.scratch(tmp_path, manifest):
        pass
    assert left(tmp_path) == []


def test_a_scratch_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path, manifest: Manifest) -> None:
    text = r"cannot create a scratch directory in .*: No such file"
    with pytest.raises(BackupError, match=text), trial.scratch(tmp_path / "missing", manifest):
        pass


def test_no_folder_for_temporary_files_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, manifest: Manifest
) -> None:
    """A container whose root filesystem is read-only."""

    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    text = "cannot create a scratch directory: No usable temporary .* Pass --scratch-dir DIR"
    with pytest.raises(BackupError, match=text), trial.scratch(None, manifest):
        pass


def test_a_scratch_directory_is_for_its_owner_alone(tmp_path: Path, manifest: Manifest) -> None:
    with trial.scratch(tmp_path, manifest) as scratch:
        assert scratch.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_the_scratch_directory_and_the_process(
    tmp_path: Path, manifest: Manifest, number: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    bin_ = install(tmp_path / "bin", etcd=f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000")
    command = [sys.executable, "-m", "etcd_operator", "verify", str(tmp_path / "store" / "one.db")]
    command += ["--restore", "--etcd-bin", str(bin_), "--scratch-dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(pid.exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert (out, err) == ("", f"etcd-operator: interrupted by {number.name}\n")
    assert not Path("/proc", pid.read_text().strip()).exists()
    assert left(tmp_path) == []


def test_the_folder_for_temporary_files_is_the_default(manifest: Manifest) -> None:
    with trial.scratch(None, manifest) as scratch:
        assert scratch.parent == Path(tempfile.gettempdir())
