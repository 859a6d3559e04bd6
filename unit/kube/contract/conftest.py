"""Runs every contract test twice: against the fake, and against a real API server if there is one.

`ETCD_OPERATOR_KUBECONFIG` names the real one. The tests use a namespace and a CRD of their own there, which
are deleted afterwards.
"""

import os
from collections.abc import Iterator

import pytest
import urllib3
from kubernetes import config

from unit.fakes.apiserver import ApiServer
from unit.kube.contract.harness import Subject, unique
from unit.waiting import eventually

_KUBECONFIG = "ETCD_OPERATOR_KUBECONFIG"


@pytest.fixture(scope="session")
def real_subject() -> Iterator[Subject]:
    path = os.environ.get(_KUBECONFIG)
    if not path:
        pytest.skip(f"{_KUBECONFIG} names no kubeconfig: no real API server to compare with")
    client = config.new_client_from_config(path)  # type: ignore[no-untyped-call]
    token = client.configuration.auth_settings().get("BearerToken", {}).get("value")
    headers = {"Authorization": token} if token else {}
    subject = Subject(client.rest_client.pool_manager, client.configuration.host, headers, None)
    try:
        _furnish(subject)
        # pods are refused until the namespace has its service account
        eventually(lambda: subject.read("serviceaccounts", "default"), "the service account")
        yield subject
    finally:
        crd = f"{subject.things}.contract.test"
        subject.call("DELETE", subject.url("customresourcedefinitions", crd))
        subject.call("DELETE", subject.url("namespaces", subject.namespace))
        subject._pool.clear()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "real":
        yield request.getfixturevalue("real_subject")
        return
    with ApiServer() as server, urllib3.PoolManager() as pool:
        subject = Subject(pool, server.url, {}, server)
        _furnish(subject)
        yield subject


def _furnish(subject: Subject) -> None:
    """A namespace, and a custom resource with a status subresource."""
    namespace = unique("contract")
    assert subject.call("POST", subject.url("namespaces"), {"metadata": {"name": namespace}}).code == 201
    subject.namespace = namespace
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{subject.things}.contract.test"},
        "spec": {
            "group": "contract.test",
            "scope": "Namespaced",
            "names": {"plural": subject.things, "kind": subject.things.capitalize()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": anything},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    assert subject.call("POST", subject.url("customresourcedefinitions"), crd).code == 201
    eventually(lambda: subject.call("GET", subject.url(subject.things)).code == 200, "the CRD is served")
