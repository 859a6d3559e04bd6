"""Permissions on EtcdPeers, on a real API server; `cases` has what is refused."""

import pytest

from unit.api.contract.case import PEER
from unit.api.contract.conftest import Requests, named
from unit.waiting import eventually

pytestmark = pytest.mark.cluster
KIND = "etcdpeers.etcd.improbable.io"


def test_users_may_annotate_and_delete_etcdpeers(kubectl: Requests) -> None:
    name = kubectl.store(PEER)["metadata"]["name"]
    kept = '{"metadata":{"finalizers":["example.com/kept"]}}'
    assert kubectl("patch", KIND, name, "--type=merge", "-p", kept).code == 0
    for command in (
        ("annotate", KIND, name, "note=mine"),
        ("delete", KIND, name, "--wait=false"),
        ("patch", KIND, name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'),
        ("wait", KIND, name, "--for=delete", "--timeout=60s"),
    ):
        answer = kubectl.by("somebody")(*command)
        assert answer.code == 0 or "NotFound" in answer.err, answer.err


def test_the_permission_operate_allows_to_create_etcdpeers(kubectl: Requests) -> None:
    operator = kubectl.by("an-operator")
    for role, *rights in (("writers", "get,create", KIND), ("operators", "update", f"{KIND}/operate")):
        verbs, resource = rights
        assert kubectl("create", "role", role, f"--verb={verbs}", f"--resource={resource}").code == 0
        assert kubectl("create", "rolebinding", role, f"--role={role}", "--user=an-operator").code == 0
    made = named(PEER, "made-by-an-operator")
    eventually(lambda: operator.try_out(made).code == 0, "the API server knows the role")
    answer = operator.create(made)
    assert answer.code == 0, answer.err
