"""`hack/check-package`: what users install is complete: sdist, wheel, and the command in a fresh environment.

Run it with a Python that has setuptools; `tox -e package` does. Nothing of the source tree can be imported
where the wheel is tried, so a file that it lacks is noticed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from localcluster.paths import REPOSITORY

SOURCES = REPOSITORY / "etcd_operator"
DATA_SUFFIXES = (".json", ".proto", ".pyi", ".typed", ".yaml")
_BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"

PROBE = """
import etcd_operator, sys
from pathlib import Path
from etcd_operator.api.definitions.crd import crds
from etcd_operator.api.definitions.policies import policies
assert Path(etcd_operator.__file__).is_relative_to(sys.prefix), etcd_operator.__file__
assert len(crds()) >= 3 and len(policies()) >= 2
"""


def main() -> int:
    """Build, install, try; the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist = build("build_sdist", REPOSITORY, folder)
        with tarfile.open(sdist) as tar:
            tar.extractall(folder, filter="data")
        wheel = build("build_wheel", sdist.with_name(sdist.name.removesuffix(".tar.gz")), folder)
        missing = sorted(expected() - set(zipfile.ZipFile(wheel).namelist()))
        if missing:
            print(f"not in {wheel.name}: {', '.join(missing)}", file=sys.stderr)
            return 1
        try_out(wheel, folder / "venv")
    print(f"{wheel.name}: complete, installs, and its command runs")
    return 0


def build(hook: str, source: Path, target: Path) -> Path:
    """Build a distribution from the tree at `source` by a hook of PEP 517."""
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, hook, str(target)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{hook} failed:\n{done.stdout}{done.stderr}")
    return target / done.stdout.splitlines()[-1]


def expected() -> set[str]:
    """All modules and all data files of the package."""
    files = (path for path in SOURCES.rglob("*") if path.suffix in (".py", *DATA_SUFFIXES))
    return {path.relative_to(REPOSITORY).as_posix() for path in files}


def try_out(wheel: Path, venv: Path) -> None:
    """Install the wheel in an environment of its own and use it from a folder that has no sources."""
    run(sys.executable, "-m", "venv", venv, cwd=venv.parent)
    run(venv / "bin/pip", "install", "--quiet", "-c", REPOSITORY / "constraints.txt", wheel, cwd=venv.parent)
    run(venv / "bin/pip", "check", cwd=venv)
    run(venv / "bin/python", "-I", "-c", PROBE, cwd=venv)
    for arguments in (["--help"], ["run", "--help"]):
        run(venv / "bin/etcd-operator", *arguments, cwd=venv)


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command; stop with its output if it fails."""
    arguments = [str(each) for each in command]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PIP_NO_COMPILE"] = "1"  # most of the time of an installation
    done = subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
