"""The chaos monkey itself works: it injects faults, mends, judges and tidies up."""

import os
import re
import subprocess
import sys

import pytest

from e2e.support.operators import DeployedOperator, Operator
from e2e.support.testbed import ROOT, Testbed

SECONDS = 12


def test_a_short_run_injects_faults_into_a_cluster_and_finds_it_whole(
    testbed: Testbed, operator: Operator
) -> None:
    """The operator is left alone: other tests need it at the same time."""
    if not isinstance(operator, DeployedOperator):
        pytest.skip("the chaos test needs the deployed operator")
    where = (
        ["--name", os.environ.get("ETCD_OPERATOR_CLUSTER") or "dev"]
        if testbed.is_local
        else ["--kubeconfig", str(testbed.kubeconfig)]
    )
    what = ["--seed", "1", "--duration", f"{SECONDS}s", "--interval", "2s", "--clusters", "1"]
    # The machine does other things at the same time: this is no place to judge how long a quorum was away.
    leniently = ["--kill-operator-every", "0", "--max-quorum-loss", "60s"]
    done = subprocess.run(
        [sys.executable, ROOT / "hack" / "chaos", *where, *what, *leniently],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if "FAILED" in line] or [*lines, *done.stderr.splitlines()][-3:]
    assert done.returncode == 0, f"exit code {done.returncode}: {failed}"
    assert lines[-1] == "PASSED"
    assert re.match(r"\S+  seed +1;", lines[0])
    assert any(re.match(r"  faults: .*\d (delete|kill|freeze)", line) for line in lines), lines[-20:]
    assert any("chaos-1: every acknowledged write is there" in line for line in lines)
    assert "deleted without a trace" in done.stdout
