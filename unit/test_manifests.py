"""The manifests that users apply: the rights they give, the examples they show."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from etcd_operator import health
from etcd_operator.api import coreos, improbable
from etcd_operator.api.crd import crds
from etcd_operator.api.policies import policies
from etcd_operator.app import LEASE_NAME
from etcd_operator.dialects.base import Defaults
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from etcd_operator.kube import own_pod
from etcd_operator.kube.resources import Selection
from etcd_operator.kube.witness import NODE_LEASES
from etcd_operator.reconcile import caches
from etcd_operator.settings import DEFAULT_ETCD_REPOSITORY, DEFAULT_ETCD_VERSION, Settings

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ROOT / "manifests"
EXAMPLES = MANIFESTS / "examples"
CLUSTERS = sorted(EXAMPLES.rglob("*.yaml"))
DEFAULTS = Defaults(repository=DEFAULT_ETCD_REPOSITORY, version=DEFAULT_ETCD_VERSION)

Document = dict[str, Any]
Right = tuple[str, str, str]
"""`(API group, resource, verb)`."""

WRITES: dict[Right, str] = {
    ("", "pods", "create"): "reconcile/act.py: CreateMember, ephemeral",
    (
        "",
        "pods",
        "delete",
    ): "reconcile/removal.py: a removed member; reconcile/remount.py; reconcile/act.py: DropPod",
    (
        "",
        "pods",
        "patch",
    ): "reconcile/upgrade.py: another version; recovery.py; marks.py: labels",
    ("", "pods", "get"): "reconcile/objects.py: whose it is, when the name is taken; holders.py, remount.py",
    ("", "pods/status", "patch"): "reconcile/marks.py",
    ("", "services", "create"): "reconcile/act.py: CreateClientService, CreateMemberService",
    ("", "services", "delete"): "reconcile/removal.py: a removed member",
    ("", "services", "get"): "reconcile/objects.py: whose it is",
    ("", "services", "patch"): "reconcile/recovery.py: clients are taken over",
    ("", "persistentvolumeclaims", "create"): "reconcile/peer.py",
    ("", "persistentvolumeclaims", "delete"): "reconcile/peer.py, reconcile/removal.py: a removed member",
    ("", "persistentvolumeclaims", "get"): "reconcile/objects.py: whose it is; reconcile/holders.py",
    (
        "",
        "persistentvolumeclaims",
        "patch",
    ): "reconcile/act.py: SealMember, NoteVoters; peer.py; remount.py; upgrade.py",
    ("", "events", "create"): "kube/events.py",
    ("", "events", "patch"): "kube/events.py: the same fact again",
    ("apps", "replicasets", "create"): "reconcile/peer.py",
    ("apps", "replicasets", "delete"): "reconcile/peer.py: a removed member",
    ("apps", "replicasets", "get"): "reconcile/objects.py: whose it is",
    ("apps", "replicasets", "patch"): "reconcile/peer.py: a new template",
    ("policy", "poddisruptionbudgets", "create"): "reconcile/act.py: KeepBudget",
    ("policy", "poddisruptionbudgets", "get"): "reconcile/objects.py: whose it is",
    ("policy", "poddisruptionbudgets", "patch"): "reconcile/act.py: KeepBudget",
    ("coreos.com", "etcdclusters/status", "patch"): "reconcile/cluster.py",
    ("coreos.com", "etcdclusters/finalizers", "update"): "build/owner.py: blockOwnerDeletion",
    ("etcd.improbable.io", "etcdclusters/status", "patch"): "reconcile/cluster.py",
    ("etcd.improbable.io", "etcdclusters/finalizers", "update"): "build/owner.py: blockOwnerDeletion",
    ("etcd.improbable.io", "etcdpeers", "create"): "reconcile/act.py: CreateMember, persistent",
    (
        "etcd.improbable.io",
        "etcdpeers",
        "delete",
    ): "reconcile/removal.py; reconcile/upgrade.py",
    ("etcd.improbable.io", "etcdpeers", "operate"): "manifests/policies/etcd-operator-peers.yaml",
    ("etcd.improbable.io", "etcdpeers", "get"): "reconcile/objects.py: whose it is",
    (
        "etcd.improbable.io",
        "etcdpeers",
        "patch",
    ): "reconcile/act.py: SealMember; reconcile/removal.py",
    ("etcd.improbable.io", "etcdpeers/status", "patch"): "reconcile/peer_status.py",
    ("etcd.improbable.io", "etcdpeers/finalizers", "update"): "build/owner.py: blockOwnerDeletion",
}
CALLS = {
    "kube/events.py": {"create", "patch"},
    "kube/lease.py": {"create", "get", "replace"},
    "kube/reflector.py": {"list"},
    "kube/witness.py": {"get"},
    "reconcile/cluster.py": {"patch"},
    "reconcile/holders.py": {"get"},
    "reconcile/install.py": {"patch"},
    "reconcile/marks.py": {"patch"},
    "reconcile/objects.py": {"create", "delete", "get", "patch"},
    "reconcile/peer.py": {"delete", "patch"},
    "reconcile/peer_status.py": {"patch"},
    "reconcile/recovery.py": {"get"},
    "reconcile/remount.py": {"get"},
    "reconcile/removal.py": {"get"},
    "reconcile/upgrade.py": {"delete"},
}
"""Where the verbs are called. A new entry here is a reason to look at `WRITES` and the manifests."""

NODES: set[Right] = {("", "nodes", "get")}
"""Of `kube/witness.py`, where there is a ClusterRole; its other reads are of pods and Leases."""

LEASE: set[Right] = {("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}
DEFINITIONS = ("apiextensions.k8s.io", "admissionregistration.k8s.io")


def test_no_verb_is_called_that_the_table_of_rights_does_not_know() -> None:
    calls: dict[str, set[str]] = {}
    for path in (ROOT / "etcd_operator").rglob("*.py"):
        name = path.relative_to(ROOT / "etcd_operator").as_posix()
        for verb in re.findall(r"\b_?client\.(create|delete|get|list|patch|replace)\(", path.read_text()):
            calls.setdefault(name, set()).add(verb)
    assert calls == CALLS


def documents(path: str) -> list[Document]:
    return [each for each in yaml.safe_load_all((MANIFESTS / path).read_text()) if each]


def rules(path: str, kind: str, namespace: str | None = None) -> list[Document]:
    """The rules of all roles of a kind; those of a namespace, if one is named."""
    roles = [each for each in documents(path) if each["kind"] == kind]
    if namespace is not None:
        roles = [each for each in roles if each["metadata"]["namespace"] == namespace]
    return [rule for role in roles for rule in role["rules"]]


def rights(given: list[Document]) -> list[Right]:
    return [
        (group, resource, verb)
        for rule in given
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def watched(monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """What the caches list and watch, from the code that makes them."""
    seen: list[Selection] = []

    class Listed:
        def __init__(self, client: Any, selection: Selection, kind: Any, **options: Any) -> None:
            seen.append(selection)

    monkeypatch.setattr(caches, "Informer", Listed)
    source = caches.Source(client=None, namespace="", on_crash=None)  # type: ignore[arg-type]
    caches.coreos_caches(source)
    caches.improbable_caches(source)
    return {(s.resource.group, s.resource.plural, verb) for s in seen for verb in ("list", "watch")}


def test_the_cluster_role_grants_what_the_code_uses_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    granted = rights(
        [r for r in rules("deployment.yaml", "ClusterRole") if r["apiGroups"][0] not in DEFINITIONS]
    )
    assert sorted(granted) == sorted({*WRITES, *NODES, *watched(monkeypatch)})
    assert sorted(rights(rules("deployment.yaml", "Role", "default"))) == sorted(LEASE)


def test_kubelets_leases_may_only_be_read() -> None:
    assert rights(rules("deployment.yaml", "Role", NODE_LEASES)) == [("coordination.k8s.io", "leases", "get")]
    bindings = [each for each in documents("deployment.yaml") if each["kind"] == "RoleBinding"]
    assert [each["metadata"]["namespace"] for each in bindings] == ["default", NODE_LEASES]
    assert {each["subjects"][0]["namespace"] for each in bindings} == {"default"}


def test_a_namespaced_operator_needs_the_same_rights_in_its_namespace_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = {each["kind"] for each in documents("namespaced/deployment.yaml")}
    assert kinds == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}
    granted = rights(rules("namespaced/deployment.yaml", "Role"))
    assert sorted(granted) == sorted({*WRITES, *watched(monkeypatch), *LEASE})


@pytest.mark.parametrize("group", DEFINITIONS)
def test_definitions_may_be_applied_by_name_only(group: str) -> None:
    own = [body for body in (*crds(), *policies()) if body["apiVersion"].startswith(group)]
    granted = [r for r in rules("deployment.yaml", "ClusterRole") if r["apiGroups"] == [group]]
    assert [set(rule["verbs"]) for rule in granted] == [{"create", "patch"}]
    assert {name for rule in granted for name in rule["resourceNames"]} == {
        body["metadata"]["name"] for body in own
    }
    assert {resource for rule in granted for resource in rule["resources"]} == {
        _plural(body["kind"]) for body in own
    }


def _plural(kind: str) -> str:
    lower = kind.lower()
    return lower.removesuffix("y") + "ies" if lower.endswith("y") else lower + "s"


def test_whoever_deploys_may_keep_the_right_to_write_definitions_to_himself() -> None:
    whole, bare = documents("deployment.yaml"), documents("deployment-no-install.yaml")
    assert [each["kind"] for each in bare] == [each["kind"] for each in whole]
    asked = [r for r in rules("deployment.yaml", "ClusterRole") if r["apiGroups"][0] not in DEFINITIONS]
    assert rules("deployment-no-install.yaml", "ClusterRole") == asked
    assert rules("deployment-no-install.yaml", "Role") == rules("deployment.yaml", "Role")
    (container,) = bare[-1]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "--no-install-crds"]


def test_user_roles_reach_users_through_the_roles_of_kubernetes() -> None:
    aggregate = "rbac.authorization.k8s.io/aggregate-to-"
    view, edit = documents("user-roles.yaml")
    assert view["metadata"]["labels"] == {f"{aggregate}view": "true"}
    assert edit["metadata"]["labels"] == {f"{aggregate}edit": "true", f"{aggregate}admin": "true"}
    assert {verb for _, _, verb in rights(view["rules"])} == {"get", "list", "watch"}


def test_no_user_role_gives_what_only_the_operator_may() -> None:
    given = rights(rules("user-roles.yaml", "ClusterRole"))
    reads = ("get", "list", "watch")
    assert not [right for right in given if right[1].endswith("/status") and right[2] not in reads]
    assert {verb for _, resource, verb in given if resource == "etcdpeers"} == {*reads, "delete"}


def test_the_lease_that_may_be_written_is_the_one_in_use() -> None:
    named = [r["resourceNames"] for r in rules("deployment.yaml", "Role") if "resourceNames" in r]
    assert named == [[LEASE_NAME]]


def test_deleting_the_deployment_deletes_no_definition() -> None:
    for path in ("deployment.yaml", "deployment-no-install.yaml", "namespaced/deployment.yaml"):
        kinds = {each["kind"] for each in documents(path)}
        assert not kinds & {"CustomResourceDefinition", "Namespace"}


DEPLOYMENTS = [
    pytest.param(next(d for d in documents(path) if d["kind"] == "Deployment"), id=path)
    for path in ("deployment.yaml", "deployment-no-install.yaml", "namespaced/deployment.yaml")
]


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_operator_runs_without_privileges(deployment: Document) -> None:
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_operator_knows_its_pod(deployment: Document) -> None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    told = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    fields = {
        "uid": "metadata.uid",
        "name": "metadata.name",
        "namespace": "metadata.namespace",
        "node": "spec.nodeName",
    }
    assert {field: told[variable] for field, variable in own_pod.VARIABLES.items()} == fields


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_operator_is_asked_where_it_listens(deployment: Document) -> None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert f":{port['containerPort']}" == Settings().listen
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}
    alive = container["livenessProbe"]
    assert alive["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert alive["periodSeconds"] * alive["failureThreshold"] <= 30 <= health.STUCK_SECONDS


def test_the_two_deployments_differ_only_in_what_they_serve() -> None:
    everywhere, one = (
        next(d for d in documents(path) if d["kind"] == "Deployment")
        for path in ("deployment.yaml", "namespaced/deployment.yaml")
    )
    (container,) = one["spec"]["template"]["spec"]["containers"]
    assert container.pop("args") == ["run", "--no-install-crds"]
    own, *variables = container["env"]
    assert own["name"] == "ETCD_OPERATOR_NAMESPACE"
    container["env"] = variables
    assert everywhere["spec"]["template"]["spec"]["containers"][0].pop("args") == ["run"]
    assert everywhere["metadata"].pop("namespace") == "default"
    assert one == everywhere


def test_the_examples_have_the_names_of_the_walkthroughs() -> None:
    names = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()}
    assert names == {
        "3.0-etcd-cluster.yaml",
        "etcd_v1alpha1_etcdcluster.yaml",
        "example-etcd-cluster-nodeport-service.json",
        "example-etcd-cluster.yaml",
        "oldest/example-etcd-cluster.yaml",
    }


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_an_example_asks_for_three_members_and_has_no_problem(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    if document["apiVersion"] == coreos.API_VERSION:
        desired = CoreosDialect(DEFAULTS).desired(msgspec.convert(document, coreos.EtcdCluster))
    else:
        desired = ImprobableDialect(DEFAULTS).desired(msgspec.convert(document, improbable.EtcdCluster))
    assert desired.problem == ""
    assert desired.size == 3


def test_the_oldest_form_means_the_same_as_its_successor() -> None:
    dialect = CoreosDialect(DEFAULTS)
    oldest, later = (
        dialect.desired(msgspec.convert(yaml.safe_load((EXAMPLES / name).read_text()), coreos.EtcdCluster))
        for name in ("oldest/example-etcd-cluster.yaml", "example-etcd-cluster.yaml")
    )
    assert oldest == later


def test_the_node_port_service_selects_the_members_of_its_cluster() -> None:
    service = json.loads((EXAMPLES / "example-etcd-cluster-nodeport-service.json").read_text())
    assert service["spec"]["type"] == "NodePort"
    assert service["spec"]["selector"] == {coreos.CLUSTER_LABEL: "example-etcd-cluster"}
