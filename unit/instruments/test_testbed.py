"""Where system tests find their Kubernetes: through a stand-in for `hack/cluster`."""

import json
import os
from pathlib import Path

import pytest

from e2e.support import testbed
from e2e.support.testbed import TestbedError, find_testbed

LOCAL = {"kubeconfig": "/k", "path": "/tools", "auditLog": "/l/audit.log", "volumes": "/v", "logs": "/l"}
STATUS = json.dumps(LOCAL)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "cluster"
    monkeypatch.setattr(testbed, "CLUSTER", program)
    monkeypatch.delenv("ETCD_OPERATOR_KUBECONFIG", raising=False)
    program.write_text(f"#!/bin/sh\n[ $1 = fault ] && {{ echo no such pod >&2; exit 1; }}\necho '{STATUS}'\n")
    program.chmod(0o755)
    return program


def test_the_local_cluster_is_described_by_its_status() -> None:
    found = find_testbed()
    assert found.is_local
    assert found.kubeconfig == Path("/k")
    assert (found.audit_log, found.volumes, found.logs) == (Path("/l/audit.log"), Path("/v"), "/l")
    assert found.path == f"/tools{os.pathsep}{os.environ['PATH']}"
    assert found.kubectl("n").command("get") == ["kubectl", "--kubeconfig=/k", "--namespace=n", "get"]
    assert found.kubectl().environment()["PATH"] == found.path


def test_a_cluster_that_is_not_usable_is_named(stand_in: Path) -> None:
    stand_in.write_text('#!/bin/sh\necho \'{"name": "dev", "state": "down"}\'; exit 1\n')
    with pytest.raises(TestbedError, match=r"run: hack/cluster up.*down"):
        find_testbed()


def test_another_kubernetes_has_no_faults_and_no_audit_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_OPERATOR_KUBECONFIG", "/theirs")
    found = find_testbed()
    assert (found.kubeconfig, found.is_local, found.path) == (Path("/theirs"), False, os.environ["PATH"])
    with pytest.raises(TestbedError, match="auditLog"):
        _ = found.audit_log


def test_a_fault_that_cannot_be_made_names_the_reason() -> None:
    with pytest.raises(TestbedError, match="hack/cluster fault kill a/b: no such pod"):
        find_testbed().fault("kill", "a/b")
