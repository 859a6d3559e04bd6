"""Which etcd and etcdutl are used for a test restore."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.archive import programs
from etcd_operator.archive.errors import ProgramFailed, ProgramMissing
from etcd_operator.commands.outcome import Interrupted, as_exception


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def install(folder: Path, etcd: str = "3.6.16", etcdutl: str = "3.6.16") -> Path:
    program(folder / "etcd", f"echo etcd Version: {etcd}")
    program(folder / "etcdutl", f"echo etcdutl version: {etcdutl}")
    return folder


@pytest.mark.parametrize(
    ("installed", "backup", "hashes"),
    [
        ("3.6.16", "3.6.2", True),
        ("3.7.3", "3.5.35", True),
        ("3.5.35", "3.5.1", False),
        ("3.5.35", "3.4.1", False),
    ],
)
def test_the_same_minor_version_or_a_newer_one(
    tmp_path: Path, installed: str, backup: str, hashes: bool
) -> None:
    found = programs.find(install(tmp_path, installed, installed), backup)
    assert (found.etcd, found.version, found.hashes_files) == (tmp_path / "etcd", installed, hashes)


def test_they_are_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(install(tmp_path)))
    assert programs.find(None, "3.6.16").etcdutl == tmp_path / "etcdutl"


@pytest.mark.parametrize(
    ("etcd", "etcdutl", "text"),
    [
        (
            "3.5.35",
            "3.5.35",
            r"is 3\.5\.35, and the backup is of etcd 3\.6\.2: pass --etcd-bin DIR .* 3\.6 or newer",
        ),
        (
            "3.6.16",
            "3.7.3",
            r"etcd is 3\.6\.16, .*etcdutl is 3\.7\.3: pass --etcd-bin DIR with both of one version",
        ),
        ("banana", "3.6.16", "does not print a version: is it etcd's"),
    ],
)
def test_other_versions_are_refused(tmp_path: Path, etcd: str, etcdutl: str, text: str) -> None:
    with pytest.raises(ProgramMissing, match=text):
        programs.find(install(tmp_path, etcd, etcdutl), "3.6.2")


def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProgramMissing, match=rf"no etcd in {tmp_path}: pass --etcd-bin DIR .* 3.6 or newer"):
        programs.find(tmp_path, "3.6.16")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="no etcd on the PATH"):
        programs.find(None, "3.6.16")


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "etcd").write_text("#!/no/such/shell\n")
    with pytest.raises(ProgramMissing, match="does not run"):
        programs.find(tmp_path, "3.6.16")


def test_variables_of_etcd_do_not_reach_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_DATA_DIR", "/somewhere")
    script = program(tmp_path / "show", 'echo "[$ETCD_DATA_DIR]"')
    log = tmp_path / "log"
    assert programs.run([str(script)], folder=tmp_path, log=log, limit=30) == "[]\n"


def test_a_failed_program_is_reported_with_its_last_line(tmp_path: Path) -> None:
    script = program(tmp_path / "fail", "echo first; echo last >&2; exit 3")
    with pytest.raises(ProgramFailed, match=r"fail failed: last$"):
        programs.run([str(script)], folder=tmp_path, log=tmp_path / "log", limit=30)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    script = program(tmp_path / "hang", "echo $$ > pid; exec sleep 1000")
    with pytest.raises(ProgramFailed, match=r"hang did not end within 0\.5 s"):
        programs.run([str(script)], folder=tmp_path, log=tmp_path / "log", limit=0.5)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_the_programs_of_another_container_of_the_pod(tmp_path: Path) -> None:
    for process in ("1", "7", "12", "self"):
        (tmp_path / process).mkdir()
    (tmp_path / "1/root").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ProgramMissing, match="no container of this pod has /usr/local/bin/etcd and etcdutl"):
        programs.folder_in_pod(tmp_path, patience=0.0)
    install(tmp_path / "image/usr/local/bin")
    (tmp_path / "7/root").symlink_to(tmp_path / "7/root")  # the error of a link that must not be followed
    (tmp_path / "12/root").symlink_to(tmp_path / "image")
    folder = programs.folder_in_pod(tmp_path)
    assert folder == tmp_path / "12/root/usr/local/bin"
    found = programs.find(folder, "3.6.16")
    assert found.etcd == folder / "etcd", "not where the link seems to lead from here"
    assert programs.find_tool(folder).path == folder / "etcdutl"


def test_another_container_of_the_pod_that_is_started_again_is_waited_for(tmp_path: Path) -> None:
    looks: list[float] = []

    def start_again(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            install(tmp_path / "7/root/usr/local/bin")

    assert programs.folder_in_pod(tmp_path, pause=start_again) == tmp_path / "7/root/usr/local/bin"
    assert len(looks) == 3


def test_a_signal_while_a_program_is_started_ends_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Signalled(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            begun.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    waiting = program(tmp_path / "etcd", "exec sleep 1000")
    with pytest.raises(Interrupted), as_exception():
        programs.run([str(waiting)], folder=tmp_path, log=tmp_path / "log", limit=60.0)
    assert [process.poll() for process in begun] == [-signal.SIGKILL]
