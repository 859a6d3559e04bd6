"""The manifests that users apply: the rights they give, the examples they show."""

import json
import re
import textwrap
from pathlib import Path

import msgspec
import pytest
import yaml

from etcd_operator.api import backup_schedules, backups, coreos, improbable, restores, users
from etcd_operator.api.definitions.crd import crds
from etcd_operator.api.definitions.policies import policies
from etcd_operator.app import LEASE_NAME
from etcd_operator.controllers.backup_tool.decide.policy import wanted
from etcd_operator.controllers.etcd_auth.decide.spec import role_problem, user_problem
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import checked
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_restore.decide.spec import problem as restore_problem
from etcd_operator.controllers.shared.decide.backup_spec import problem
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.decoding import read
from etcd_operator.kube import own_pod
from etcd_operator.kube.holder_pod import NODE_LEASES
from etcd_operator.process import health
from etcd_operator.settings import DEFAULT_ETCD_REPOSITORY, DEFAULT_ETCD_VERSION, Settings
from unit.rights import DEFINITIONS, MANIFESTS, Document, documents, rights, rules

EXAMPLES = MANIFESTS / "examples"
BACKUP = EXAMPLES / "etcd_v1alpha1_etcdbackup.yaml"
SCHEDULE = EXAMPLES / "etcd_v1alpha1_etcdbackupschedule.yaml"
RESTORE = EXAMPLES / "etcd_v1alpha1_etcdrestore.yaml"
USER = EXAMPLES / "etcd_v1alpha1_etcduser.yaml"
USERS_PAGE = MANIFESTS.parent / "docs/users.md"
CLUSTERS = sorted(
    set(EXAMPLES.rglob("*.yaml")) - {BACKUP, SCHEDULE, RESTORE, USER} - set(EXAMPLES.glob("deployment*.yaml"))
)
IN_DEFAULT = "examples/deployment.yaml"
EVERYWHERE = ("deployment.yaml", "deployment-no-install.yaml", IN_DEFAULT, "examples/deployment-aws.yaml")
"""Deployments of an operator for all namespaces."""
DEFAULTS = Defaults(repository=DEFAULT_ETCD_REPOSITORY, version=DEFAULT_ETCD_VERSION)


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


def test_whoever_deploys_may_keep_the_rights_to_definitions_and_secrets_to_himself() -> None:
    whole, bare = documents("deployment.yaml"), documents("deployment-no-install.yaml")
    named = [[(each["kind"], each["metadata"]) for each in found] for found in (whole, bare)]
    named[0].remove(("ClusterRoleBinding", {"name": "etcd-operator-secrets"}))
    assert named[1] == named[0]
    asked = [r for r in rules("deployment.yaml", "ClusterRole") if r["apiGroups"][0] not in DEFINITIONS]
    assert rules("deployment-no-install.yaml", "ClusterRole") == asked
    assert rules("deployment-no-install.yaml", "Role") == rules("deployment.yaml", "Role")
    (container,) = bare[-1]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "--no-install-crds"]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_rights_on_secrets_and_config_maps_have_a_role_of_their_own(path: str) -> None:
    """In kube-system, they are rights on the cluster."""
    roles = {each["metadata"]["name"]: each for each in documents(path) if each["kind"] == "ClusterRole"}
    for resource in ("secrets", "configmaps"):
        assert [name for name, role in roles.items() if resource in str(role["rules"])] == [
            "etcd-operator-secrets"
        ]
    assert rights(roles["etcd-operator-secrets"]["rules"]) == [
        ("", "secrets", "get"),
        ("", "secrets", "create"),
        ("", "secrets", "patch"),
        ("", "secrets", "delete"),
        ("", "configmaps", "get"),
        ("", "configmaps", "create"),
        ("", "configmaps", "patch"),
        ("cert-manager.io", "certificates", "list"),
        ("cert-manager.io", "certificates", "create"),
        ("cert-manager.io", "certificates", "patch"),
    ]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_of_two_operators_for_all_namespaces_one_has_rights(path: str) -> None:
    """Their Leases are in different namespaces: the names of the bindings keep them from acting both."""
    names = {each["metadata"]["name"] for each in documents(path) if each["kind"] == "ClusterRoleBinding"}
    assert "etcd-operator" in names <= {"etcd-operator", "etcd-operator-secrets"}


@pytest.mark.parametrize("path", sorted(set(EVERYWHERE) - {IN_DEFAULT}))
def test_the_operator_has_a_restricted_namespace_to_itself(path: str) -> None:
    first, second, *others = documents(path)
    assert first["kind"] == "Namespace"
    assert first["metadata"] == {
        "name": "etcd-operator",
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }
    assert second["kind"] == "ResourceQuota"
    made = {f"count/{crd['metadata']['name']}" for crd in crds()} - {"count/etcdpeers.etcd.improbable.io"}
    assert second["spec"]["hard"] == dict.fromkeys(made, 0)
    assert _namespaces([second, *others]) == {"etcd-operator", NODE_LEASES}


def test_the_deployment_of_the_walkthroughs_is_in_the_namespace_default() -> None:
    own = documents("deployment.yaml")[2:]
    walkthroughs = documents(IN_DEFAULT)
    assert _namespaces(walkthroughs) == {"default", NODE_LEASES}
    for each in walkthroughs:
        for place in (each["metadata"], *each.get("subjects", [])):
            if place.get("namespace") == "default":
                place["namespace"] = "etcd-operator"
    assert walkthroughs == own


def _namespaces(found: list[Document]) -> set[str]:
    places = [place for each in found for place in (each["metadata"], *each.get("subjects", []))]
    return {place["namespace"] for place in places if "namespace" in place}


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


def test_kubelets_leases_may_only_be_read() -> None:
    given = rules("deployment.yaml", "Role", namespace=NODE_LEASES)
    assert rights(given) == [("coordination.k8s.io", "leases", "get")]


def test_a_namespaced_operator_has_rights_in_its_namespace_alone() -> None:
    kinds = {each["kind"] for each in documents("namespaced/deployment.yaml")}
    assert kinds == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}


def test_the_lease_that_may_be_written_is_the_one_in_use() -> None:
    named = [r["resourceNames"] for r in rules("deployment.yaml", "Role") if "resourceNames" in r]
    assert named == [[LEASE_NAME]]


@pytest.mark.parametrize("path", [*EVERYWHERE, "namespaced/deployment.yaml"])
def test_deleting_the_deployment_deletes_no_definition(path: str) -> None:
    assert "CustomResourceDefinition" not in {each["kind"] for each in documents(path)}


DEPLOYMENTS = [
    pytest.param(next(d for d in documents(path) if d["kind"] == "Deployment"), id=path)
    for path in (*EVERYWHERE, "namespaced/deployment.yaml")
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
    variables = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    fields = {
        "uid": "metadata.uid",
        "name": "metadata.name",
        "namespace": "metadata.namespace",
        "node": "spec.nodeName",
    }
    assert {field: variables[variable] for field, variable in own_pod.VARIABLES.items()} == fields


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_operator_is_asked_where_it_listens(deployment: Document) -> None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert f":{port['containerPort']}" == Settings().listen
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}
    alive = container["livenessProbe"]
    assert alive["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert alive["periodSeconds"] * alive["failureThreshold"] <= 30 <= health.STALL_SECONDS


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
    assert everywhere["metadata"].pop("namespace") == "etcd-operator"
    assert one == everywhere


def test_the_examples_have_the_names_of_the_walkthroughs() -> None:
    names = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()}
    assert names == {
        "3.0-etcd-cluster.yaml",
        "deployment-aws.yaml",
        "deployment.yaml",
        "etcd_v1alpha1_etcdbackup.yaml",
        "etcd_v1alpha1_etcdbackupschedule.yaml",
        "etcd_v1alpha1_etcdcluster.yaml",
        "etcd_v1alpha1_etcdrestore.yaml",
        "etcd_v1alpha1_etcduser.yaml",
        "example-etcd-cluster-nodeport-service.json",
        "example-etcd-cluster-with-backup.yaml",
        "example-etcd-cluster-with-s3-backup.yaml",
        "example-etcd-cluster.yaml",
        "oldest/example-etcd-cluster.yaml",
    }


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_an_example_asks_for_three_members_and_has_no_problem(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    if document["apiVersion"] == coreos.API_VERSION:
        desired = CoreosDialect(DEFAULTS).desired(read(msgspec.json.encode(document), coreos.EtcdCluster))
    else:
        desired = ImprobableDialect(DEFAULTS).desired(
            read(msgspec.json.encode(document), improbable.EtcdCluster)
        )
    assert desired.problem == ""
    assert desired.size == 3
    assert wanted(document.get("spec", {}).get("backup")).problem == ""


def test_the_deployment_for_aws_makes_a_storage_class() -> None:
    (deployment,) = (
        each for each in documents("examples/deployment-aws.yaml") if each["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "--pv-provisioner=kubernetes.io/aws-ebs"]
    others = documents("deployment.yaml")
    assert [each["metadata"] for each in documents("examples/deployment-aws.yaml")] == [
        each["metadata"] for each in others
    ]


def test_the_example_of_a_backup_is_valid() -> None:
    document = yaml.safe_load(BACKUP.read_text())
    assert document["apiVersion"] == backups.API_VERSION
    assert problem(msgspec.convert(document["spec"], backups.BackupSpec)) == ""


def test_the_example_of_a_schedule_backs_up_what_the_example_of_a_backup_does() -> None:
    document = yaml.safe_load(SCHEDULE.read_text())
    assert document["apiVersion"] == backups.API_VERSION
    assert document["kind"] == backup_schedules.KIND
    checked(document["metadata"]["name"], msgspec.convert(document["spec"], backup_schedules.ScheduleSpec))
    assert document["spec"]["backupTemplate"] == yaml.safe_load(BACKUP.read_text())["spec"]


def test_the_example_of_a_restore_is_valid() -> None:
    document = yaml.safe_load(RESTORE.read_text())
    assert (document["apiVersion"], document["kind"]) == (restores.API_VERSION, restores.KIND)
    assert restore_problem(msgspec.convert(document["spec"], restores.RestoreSpec)) == ""


def test_the_examples_of_users_have_the_example_of_a_role() -> None:
    role, *declared = documents("examples/etcd_v1alpha1_etcduser.yaml")
    described = re.search(r"^    apiVersion: .*?(?=^\S)", USERS_PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert described is not None
    first, *others = yaml.safe_load_all(textwrap.dedent(described[0]))
    assert (first, others[: len(declared)]) == (role, declared)
    assert role["kind"] == users.ROLE_KIND
    assert role_problem(msgspec.convert(role["spec"], users.RoleSpec)) == ""
    for each in others:
        assert each["kind"] == users.USER_KIND
        spec = msgspec.convert(each["spec"], users.UserSpec)
        assert user_problem(spec) == ""
        assert spec.roles == (role["metadata"]["name"],)
        assert each["spec"]["clusterRef"] == role["spec"]["clusterRef"]
    assert {each["spec"]["authentication"] for each in others} == {"certificate", "password"}


def test_the_oldest_form_means_the_same_as_its_successor() -> None:
    dialect = CoreosDialect(DEFAULTS)
    oldest, later = (
        dialect.desired(
            read(msgspec.json.encode(yaml.safe_load((EXAMPLES / name).read_text())), coreos.EtcdCluster)
        )
        for name in ("oldest/example-etcd-cluster.yaml", "example-etcd-cluster.yaml")
    )
    assert oldest == later


def test_the_node_port_service_selects_the_members_of_its_cluster() -> None:
    service = json.loads((EXAMPLES / "example-etcd-cluster-nodeport-service.json").read_text())
    assert service["spec"]["type"] == "NodePort"
    # A seed has no label `app` until clients may reach it; the pod of the backup tool has another one.
    assert service["spec"]["selector"] == {
        coreos.APP_LABEL: "etcd",
        coreos.CLUSTER_LABEL: "example-etcd-cluster",
    }
