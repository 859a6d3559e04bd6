"""The commands of hack/: each starts a module that ruff and mypy read, on any Python and without packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from workflow import entry

HACK = Path(__file__).resolve().parents[2] / "hack"
COMMANDS = sorted(path.name for path in HACK.iterdir() if path.is_file())
WITH_PACKAGES = ("bench", "chaos", "generate-manifests", "generate-proto")
WITH_HELP = [name for name in COMMANDS if name != "check-package"]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_an_executable_of_five_lines(name: str) -> None:
    lines = [line for line in (HACK / name).read_text().splitlines() if line]
    assert lines[0] == "#!/usr/bin/env python3"
    assert len(lines) <= 5
    assert (HACK / name).stat().st_mode & 0o111


@pytest.mark.parametrize("name", WITH_HELP)
def test_a_command_describes_itself(name: str) -> None:
    if name == "generate-proto":
        pytest.importorskip("grpc_tools", reason="grpcio-tools is in the dev extra")
    done = run(HACK / name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: hack/{name} ")


@pytest.mark.parametrize("name", WITH_PACKAGES)
def test_without_the_projects_packages_one_line_names_the_way_out(name: str) -> None:
    done = run("-S", HACK / name, "--help")  # -S: without the packages that are installed here
    assert done.returncode == 1
    assert done.stderr.startswith(f"hack/{name} needs the project's packages (")
    assert "is missing); run: tox -e " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", sorted(set(WITH_HELP) - set(WITH_PACKAGES)))
def test_the_other_commands_need_the_standard_library_only(name: str) -> None:
    assert run("-S", HACK / name, "--help").returncode == 0


def test_an_old_python_is_refused_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match=r"^hack/cluster needs .*: python3\.11 hack/cluster \.\.\.$"):
        entry.start("cluster", "no.such.module")


def test_a_missing_module_of_a_command_without_packages_is_a_bug_and_no_hint() -> None:
    with pytest.raises(ModuleNotFoundError):
        entry.start("cluster", "no_such_module")
