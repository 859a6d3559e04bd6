"""What the operator requested from the API server in all these tests, against what its manifests allow.

Read from the audit log, of every pod that was made from the same template as those that run: so of both runs,
the tests beside one another and those that need the cluster for themselves. This one is the last.
"""

from collections.abc import Iterator

import pytest

from e2e.support.audit import Request, all_of
from e2e.support.operators import DeployedOperator, Operator
from e2e.support.testbed import Testbed
from unit.rights import UNASKED, Right, granted

pytestmark = pytest.mark.exclusive

ENOUGH = 40
"""Namespaces of tests in which this operator has worked: fewer are not all tests."""

RARE: dict[Right, str] = {
    **UNASKED,
    ("etcd.improbable.io", "etcdpeers", "get"): "a reply was lost and the cache is behind",
    ("apps", "replicasets", "get"): "the same",
    ("policy", "poddisruptionbudgets", "get"): "the same",
    ("networking.k8s.io", "networkpolicies", "get"): "the same",
    ("batch", "jobs", "get"): "the same",
    ("coreos.com", "etcdclusters", "get"): "the cluster of an EtcdBackup does not exist for a minute",
    ("etcd.improbable.io", "etcdclusters", "get"): "the same",
    ("etcd.improbable.io", "etcdbackups", "delete"): "a schedule has more EtcdBackups than it keeps",
    ("batch", "jobs", "delete"): "the pod of a backup does not start within ten minutes",
    ("", "secrets", "patch"): "two thirds of the life of a certificate have passed",
    ("", "configmaps", "patch"): "a CA is rotated, or renewed",
    ("cert-manager.io", "certificates", "patch"): "the names or durations of certificates are changed",
    ("", "events", "list"): "a Job has no pod after five seconds",
    ("", "nodes", "get"): "a leader is silent, and its pod does not exist",
    ("coordination.k8s.io", "leases", "create"): "there is no Lease yet of an operator before",
    ("apiextensions.k8s.io", "customresourcedefinitions", "create"): "checked for the patch that creates it",
    **{
        ("admissionregistration.k8s.io", f"{kind}admission{part}", "create"): "the same"
        for kind in ("mutating", "validating")
        for part in ("policies", "policybindings")
    },
}
"""Rights that no system test uses for sure, and when they are used: see
unit/controllers/shared/test_rights.py.
"""


def right_of(request: Request) -> Right:
    """The right that a request takes."""
    subresource = f"/{request.subresource}" if request.subresource else ""
    return request.group, request.resource + subresource, request.verb


@pytest.fixture(scope="module")
def requests(testbed: Testbed, operator: Operator) -> list[Request]:
    """The requests of the operator that runs, and of those before it that were the same."""
    if not testbed.is_local or not isinstance(operator, DeployedOperator):
        pytest.skip("needs the audit log, and an operator that has only the rights of its manifests")
    template = {pod["metadata"]["labels"]["pod-template-hash"] for pod in operator.pods()}
    return list(_of_templates(all_of(testbed.audit_log, operator.user), template))


def _of_templates(logged: Iterator[Request], templates: set[str]) -> Iterator[Request]:
    starts = tuple(f"{DeployedOperator.NAME}-{template}-" for template in templates)
    return (request for request in logged if request.resource and request.pod.startswith(starts))


@pytest.mark.capability("rights of the operator")
def test_nothing_was_requested_that_the_manifests_do_not_allow(requests: list[Request]) -> None:
    assert requests
    assert {right_of(request) for request in requests} - granted() == set()


def test_the_manifests_allow_nothing_that_is_never_requested(requests: list[Request]) -> None:
    spaces = {request.namespace for request in requests if request.namespace.startswith("e2e-")}
    if len(spaces) < ENOUGH:
        pytest.skip(f"only {len(spaces)} tests have run with this operator: run all of e2e first")
    assert granted() - {right_of(request) for request in requests} - set(RARE) == set()
