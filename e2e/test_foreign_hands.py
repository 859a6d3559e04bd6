"""Changes to our objects by others: policies that add fields, and people who remove labels."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support.api import LABELS
from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, each_kind
from e2e.support.resizing import member_ids, resize, sized
from e2e.support.space import Space
from e2e.support.waiting import hold_for, wait_until
from etcd_operator.kube import resources
from localcluster.kubectl import as_stream

SINCE_1_36 = "admissionregistration.k8s.io/v1"
ANNOTATION = "example.com~1seen"
ANNOTATED = (
    "(has(object.metadata.annotations) ? "
    f"[JSONPatch{{op: 'add', path: '/metadata/annotations/{ANNOTATION}', value: 'yes'}}]"
    " : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'example.com/seen': 'yes'}}])"
)
LABELLED = "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'storage'}]"
PARTS = {
    "pods": ("", "v1", [], ["pods"]),
    "services": ("", "v1", ["/spec/sessionAffinity", "ClientIP"], ["services"]),
    "claims": ("", "v1", [], ["persistentvolumeclaims"]),
    "sets": ("apps", "v1", ["/spec/template/metadata/annotations/" + ANNOTATION, "yes"], ["replicasets"]),
    "peers": ("etcd.improbable.io", "v1alpha1", [], ["etcdpeers"]),
    # The last one, which `_is_applied` looks for.
    "budgets": (
        "policy", "v1", ["/spec/unhealthyPodEvictionPolicy", "AlwaysAllow"], ["poddisruptionbudgets"],
    ),
}  # fmt: skip


def adding(space: Space, name: str) -> list[Document]:
    """A policy that adds a label, an annotation and, where there is one to add, a field; and its binding."""
    group, version, field, plurals = PARTS[name]
    expression = f"{ANNOTATED} + {LABELLED}"
    if field:
        expression += f" + [JSONPatch{{op: 'add', path: '{field[0]}', value: '{field[1]}'}}]"
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": plurals,
    }
    full = f"{space.namespace}-{name}"
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}}}
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule], **where},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    return [
        _definition("MutatingAdmissionPolicy", full, policy),
        _definition("MutatingAdmissionPolicyBinding", full, {"policyName": full}),
    ]


def _definition(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": SINCE_1_36, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def policies(space: Space) -> Iterator[None]:
    """The policies, until the test is over, and in this namespace only."""
    if "mutatingadmissionpolicies" not in space.kubectl("api-resources", "-o", "name"):
        pytest.skip("mutating admission policies need Kubernetes 1.36")
    made = [document for name in PARTS for document in adding(space, name)]
    try:
        for document in made:
            space.kubectl.create(document)
        probe = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "probe"}}
        probe["metadata"]["labels"] = {"probe": "1"}  # type: ignore[index]
        wait_until(lambda: _is_applied(space, probe), "the policies are in force", every=0.5)
        yield
    finally:
        for document in made:
            space.kubectl("delete", document["kind"], document["metadata"]["name"], "--ignore-not-found")


def _is_applied(space: Space, probe: Document) -> bool:
    """Whether an object made now is changed on its way: the API server learns of policies with a delay."""
    full = {**probe, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"no": "pods"}}}}
    space.kubectl("delete", "poddisruptionbudget", "probe", "--ignore-not-found")
    space.kubectl.create(full)
    found = space.api.get(resources.BUDGETS, space.namespace, "probe") or {}
    space.kubectl("delete", "poddisruptionbudget", "probe")
    return bool(found.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow")


@pytest.mark.usefixtures("policies")
@each_kind()
def test_under_policies_that_add_to_each_object_everything_works_and_nothing_is_written_at_rest(
    space: Space, kind: Any
) -> None:
    document = space.settled(kind())
    assert_at_rest(space, 20)
    for size in (4, 3):
        document = resize(space, document, size)
    assert_at_rest(space, 10)
    assert_consistent(space, document)
    for pod in space.pods(document):
        assert pod["metadata"]["labels"]["team"] == "storage"
    budget = space.api.get(resources.BUDGETS, space.namespace, document["metadata"]["name"]) or {}
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    space.kubectl("delete", "-f", "-", stdin=as_stream(document))
    space.wait_no_pods()


@each_kind()
def test_members_whose_pods_lost_their_label_stay_members(space: Space, kind: Any) -> None:
    document = space.settled(sized(kind(), 5))
    label = LABELS[document["apiVersion"]]
    before, ids = identities(space, document), member_ids(space, document)
    names = [name for name, _ in before][:2]
    for name in names:
        space.kubectl("label", "pod", name, f"{label}-")

    def await_same_pods() -> None:
        wait_until(
            lambda: identities(space, document) == before,
            lambda: f"the pods are the same as before: {identities(space, document)} instead of {before}",
        )

    await_same_pods()
    # A ReplicaSet that misses a label creates a pod, and deletes it when the label is back.
    hold_for(5, lambda: set(before) <= set(identities(space, document)), "members keep their pods")
    await_same_pods()
    space.wait_serving(document)
    assert (now := member_ids(space, document)) == ids, f"{now} instead of {ids}"
    space.wait_settled(document)
    assert_consistent(space, document)


def identities(space: Space, document: Document) -> list[tuple[str, str]]:
    """The members' pods, by name and UID."""
    return sorted((pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in space.pods(document))
