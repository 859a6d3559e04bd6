"""The generated code in the tree matches rpc.proto."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "hack" / "generate-proto"


def test_the_generated_code_is_fresh() -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is in the dev extra")
    command = [sys.executable, str(SCRIPT), "--check"]
    check = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert check.returncode == 0, check.stderr.decode()
