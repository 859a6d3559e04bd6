"""The one wrapper of kubectl, against a stand-in that prints what it was called with."""

import json
from pathlib import Path
from typing import cast

import pytest

from e2e.support.operators import DeployedOperator
from e2e.support.testbed import Testbed, TestbedError
from localcluster.commands import CommandError
from localcluster.kubectl import Kubectl, KubectlError, as_stream, ready_nodes

STAND_IN = """#!/bin/sh
case "$*" in
*fail*) echo seen; echo 'Error from server' >&2; echo '(NotFound): no such pod' >&2; exit 1;;
*hang*) sleep 60;;
*environment*) echo "$KUBECONFIG|$MARK";;
*"get nodes"*) echo '{"items": [
  {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
  {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}]}';;
*"get nothing"*) ;;
*"get deployment"*) echo 'Error from server (NotFound): "etcd-operator" not found' >&2; exit 1;;
*"get table"*) printf 'NAME  READY\\none   1/1\\n';;
*-f*-*) echo "$@"; cat;;
*) for word in "$@"; do echo "$word"; done;;
esac
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    program = tmp_path / "kubectl"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return Kubectl(program=program, kubeconfig=tmp_path / "config", options=("--request-timeout=10s",))


def test_kubeconfig_options_and_namespace_come_before_the_words(kubectl: Kubectl, tmp_path: Path) -> None:
    where = [f"--kubeconfig={tmp_path / 'config'}", "--request-timeout=10s"]
    assert kubectl("get", "pods").split() == [*where, "get", "pods"]
    assert kubectl.within("there")("get", "pods").split() == [*where, "--namespace=there", "get", "pods"]
    assert kubectl.command("proxy") == [str(tmp_path / "kubectl"), *where, "proxy"]


def test_a_failure_is_one_line_that_a_wait_takes_for_not_yet(kubectl: Kubectl) -> None:
    with pytest.raises(KubectlError) as caught:
        kubectl("get", "fail")
    assert str(caught.value) == "kubectl get fail: Error from server (NotFound): no such pod"
    assert caught.value.stderr == "Error from server\n(NotFound): no such pod"
    assert isinstance(caught.value, AssertionError)


def test_an_unchecked_failure_returns_all_that_was_printed(kubectl: Kubectl) -> None:
    assert kubectl("fail", check=False) == "seen\nError from server\n(NotFound): no such pod\n"


def test_an_exit_code_is_returned_where_that_is_asked_for(kubectl: Kubectl) -> None:
    done = kubectl.completed("fail")
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (1, "seen\n", "Error from server")
    assert kubectl.completed("-f-", stdin="given").stdout.endswith("given")


def test_a_call_that_hangs_ends_at_its_deadline(kubectl: Kubectl) -> None:
    with pytest.raises(CommandError, match=r"did not end within 0 s"):
        kubectl("hang", deadline=0.1)


def test_the_callers_environment_is_used_only_if_it_is_passed(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somebody/elses")
    assert kubectl("environment") == "|\n"
    marked = Kubectl(
        program=kubectl.program, kubeconfig=kubectl.kubeconfig, environment=lambda: {"MARK": "mine"}
    )
    assert marked("environment") == "|mine\n"


def test_output_is_decoded_as_asked_for(kubectl: Kubectl) -> None:
    assert kubectl.find("nothing") == {}
    assert len(kubectl.json("get", "nodes")["items"]) == 2
    assert kubectl.table("get", "table") == [{"NAME": "one", "READY": "1/1"}]
    assert ready_nodes(kubectl) == {"a": True, "b": False}


def test_documents_are_passed_on_stdin(kubectl: Kubectl) -> None:
    documents = [{"kind": "A"}, {"kind": "B"}]
    assert [json.loads(text) for text in as_stream(documents).split("---")] == documents
    assert kubectl.apply({"kind": "A"}).splitlines()[-1] == '{"kind": "A"}'
    assert kubectl.create(documents).endswith(as_stream(documents))


def test_commands_are_printed_as_users_type_them(
    kubectl: Kubectl, capsys: pytest.CaptureFixture[str]
) -> None:
    echoed = Kubectl(program=kubectl.program, kubeconfig=kubectl.kubeconfig, namespace="n", is_echoed=True)
    echoed("get", "pods")
    kubectl("get", "pods")
    assert capsys.readouterr().out == "$ kubectl -n n get pods\n"


def test_an_operator_that_is_not_deployed_is_named_with_the_command_that_deploys_it(kubectl: Kubectl) -> None:
    with pytest.raises(TestbedError, match=r"\(NotFound\).*deploy the operator first: hack/deploy"):
        DeployedOperator(cast("Testbed", None), kubectl)
