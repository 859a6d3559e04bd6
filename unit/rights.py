"""Rights on the API server: what the manifests give, and what requests take.

A test of the pass rung fails as soon as the operator asks for something that its manifests do not allow
(`passes.bench`), and `unit/controllers/shared/test_rights.py` as soon as they allow something that it never
asks for. So a new request needs a line in manifests/deployment.yaml, from which the other deployments are
generated, a scenario there, and nothing else.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from unit.fakes.apiserver.faults import Request

MANIFESTS = Path(__file__).resolve().parent.parent / "manifests"

Document = dict[str, Any]
Right = tuple[str, str, str]
"""`(API group, resource or resource/subresource, verb)`."""

DEFINITIONS = ("apiextensions.k8s.io", "admissionregistration.k8s.io")

UNASKED: dict[Right, str] = {
    ("coreos.com", "etcdclusters/finalizers", "update"): "blockOwnerDeletion, see manifests/deployment.yaml",
    ("etcd.improbable.io", "etcdclusters/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdpeers/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdbackups/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdbackupschedules/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdrestores/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdusers/finalizers", "update"): "the same",
    ("etcd.improbable.io", "etcdpeers/operate", "update"): "manifests/policies/etcd-operator-peers.yaml asks",
}
"""Rights that the API server checks as part of other requests."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def documents(path: str) -> list[Document]:
    """The objects in a manifest."""
    return [each for each in yaml.safe_load_all((MANIFESTS / path).read_text()) if each]


def rules(path: str, *kinds: str, namespace: str = "") -> list[Document]:
    """The rules of all roles of these kinds in a manifest; those of one namespace, if it is named."""
    roles = [each for each in documents(path) if each["kind"] in kinds]
    if namespace:
        roles = [each for each in roles if each["metadata"].get("namespace") == namespace]
    return [rule for role in roles for rule in role["rules"]]


def rights(given: Iterable[Document]) -> list[Right]:
    """What rules allow; a right that is named twice is there twice."""
    return [
        (group, resource, verb)
        for rule in given
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


@functools.cache
def granted(path: str = "deployment.yaml") -> frozenset[Right]:
    """All that a deployment's operator may do."""
    return frozenset(rights(rules(path, "ClusterRole", "Role")))


def taken(request: Request) -> Right | None:
    """The right that a request takes; None for what everybody may read, such as the version."""
    parts = request.path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
    if not request.plural:
        return None
    resource = f"{request.plural}/{request.subresource}" if request.subresource else request.plural
    is_one = parts[-1] != request.plural
    if request.method == "GET":
        verb = "watch" if request.is_watch else "get" if is_one else "list"
    elif request.method == "DELETE":
        verb = "delete" if is_one else "deletecollection"
    else:
        verb = _VERBS[request.method]
    return group, resource, verb


def all_taken(requests: Iterable[Request]) -> frozenset[Right]:
    """The rights that requests take."""
    return frozenset(right for right in map(taken, requests) if right is not None)
