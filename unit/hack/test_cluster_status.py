"""`hack/cluster status`, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcluster import cli, status
from localcluster.kubectl import Kubectl
from localcluster.plan import Plan
from localcluster.status import Access, NodeStatus, State, Status

NODE = NodeStatus(name="node-1", address="10.200.2.11", is_ready=True, is_linked=True, has_kubelet=True)
ROOT = Path("/state/dev")
STATUS = Status(
    name="dev",
    access=Access(kubeconfig=ROOT / "kubeconfig", tools=Path("/cache/bin")),
    plan=Plan(prefix="eotest", slot=2),
    nodes=(NODE,),
    namespaces=("eotest-hub", "eotest-node-1"),
    ended=(),
    logs=ROOT / "logs",
    volumes=ROOT / "private/volumes",
    local_volumes=ROOT / "nodes/NODE/local",
)
DOCUMENT = {
    "name": "dev",
    "state": "up",
    "kubeconfig": "/state/dev/kubeconfig",
    "path": "/cache/bin",
    "server": "https://10.200.2.1:6443",
    "nodes": [
        {"name": "node-1", "address": "10.200.2.11", "ready": True, "linkUp": True, "kubeletRunning": True}
    ],
    "endedProcesses": [],
    "podRange": "10.226.0.0/16",
    "serviceRange": "10.210.0.0/16",
    "hostAddress": "10.201.2.1",
    "networkNamespaces": ["eotest-hub", "eotest-node-1"],
    "logs": "/state/dev/logs",
    "auditLog": "/state/dev/logs/audit.log",
    "volumes": "/state/dev/private/volumes",
    "storageClass": "standard",
    "localVolumes": "/state/dev/nodes/NODE/local",
}


pytestmark = pytest.mark.usefixtures("own_folders")


def test_the_document_for_programs_has_the_documented_shape() -> None:
    assert json.loads(json.dumps(STATUS.document())) == DOCUMENT
    guide = (Path(__file__).resolve().parents[2] / "docs/development.md").read_text()
    assert all(f"`{key}`" in guide for key in (*DOCUMENT, "ready", "address", "linkUp", "kubeletRunning"))


def test_people_read_the_state_first_and_a_shell_the_last_line() -> None:
    lines = STATUS.lines()
    assert lines[0] == "cluster dev: up"
    assert lines[1] == "  node-1: Ready, 10.200.2.11"
    assert lines[-1] == "export KUBECONFIG=/state/dev/kubeconfig PATH=/cache/bin:$PATH"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"is_ready": False}, "NotReady, 10.200.2.11"),
        ({"is_ready": None}, "unknown, 10.200.2.11"),
        ({"is_linked": False, "is_ready": False}, "cut off (fault node-mend)"),
        ({"has_kubelet": False, "is_ready": False}, "kubelet stopped (fault node-start)"),
    ],
)
def test_a_cluster_with_a_node_that_is_not_ready_is_unhealthy(changed: dict[str, Any], expected: str) -> None:
    found = replace(STATUS, nodes=(replace(NODE, **changed),))
    assert found.state is State.UNHEALTHY
    assert expected in found.lines()[1]


def test_a_cluster_with_an_ended_process_is_unhealthy_and_names_its_log() -> None:
    found = replace(STATUS, ended=(("kube-scheduler", ROOT / "logs/kube-scheduler.log"),))
    assert found.lines()[0] == "cluster dev: unhealthy"
    assert found.document()["endedProcesses"] == [
        {"name": "kube-scheduler", "log": "/state/dev/logs/kube-scheduler.log"}
    ]


@pytest.mark.parametrize(("found", "code"), [(STATUS, 0), (replace(STATUS, nodes=()), 1), (None, 1)])
def test_the_exit_status_is_the_same_with_and_without_json(
    found: Status | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "of", lambda _: found)
    assert cli.main(["status"]) == code
    people = capsys.readouterr().out
    assert cli.main(["status", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert people.startswith(f"cluster dev: {document['state']}\n")


def test_a_cluster_that_is_down_has_a_name_and_a_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--json", "--name", "e2e"]) == 1
    assert json.loads(capsys.readouterr().out) == {"name": "e2e", "state": "down"}


def test_an_existing_cluster_is_described_as_far_as_it_can_be_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = {
        "metadata": {"name": "worker"},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "worker"},
                {"type": "InternalIP", "address": "1.2.3.4"},
            ],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    answers = {"/readyz": "ok", "/version": '{"gitVersion": "v1.36.3"}', "view": "https://there:6443"}

    def answer(_: Kubectl, *arguments: str, **__: object) -> str:
        return next(
            (text for word, text in answers.items() if word in arguments), json.dumps({"items": [node]})
        )

    monkeypatch.setattr(Kubectl, "__call__", answer)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    program = tmp_path / "cache/etcd-operator-dev/bin/kubectl"
    program.parent.mkdir(parents=True)
    program.touch()
    assert cli.main(["--kubeconfig", str(kubeconfig), "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "",
        "state": "up",
        "kubeconfig": str(kubeconfig),
        "path": str(program.parent),
        "server": "https://there:6443",
        "nodes": [{"name": "worker", "address": "1.2.3.4", "ready": True}],
    }
