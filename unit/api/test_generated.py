import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", ["generate-manifests", "generate-bad-input"])
def test_generated_files_are_what_the_tree_generates(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "hack" / script, "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
