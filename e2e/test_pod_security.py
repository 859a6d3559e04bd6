"""The user that etcd runs as.

That all else works where `restricted` is enforced is shown by all other tests: see `make_space`.
"""

import json
from typing import Any

import pytest
import yaml

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.resizing import settle, sized
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.volumes import give_to_root
from e2e.support.waiting import hold_for, wait_until
from etcd_operator.controllers.shared.manifests.security import USER
from etcd_operator.kube import resources
from localcluster.kubectl import KubectlError

ANNOTATION = "etcd.improbable.io/non-root"


def users(space: Space, document: Document) -> set[Any]:
    """The users of the members; None is that of the image, which is root."""
    return {pod["spec"]["securityContext"].get("runAsUser") for pod in space.pods(document)}


def test_these_namespaces_refuse_what_is_not_restricted(space: Space) -> None:
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted'):
        space.kubectl("run", "anything", "--image=localhost/etcd-shell:dev", "--restart=Never")


@pytest.mark.parametrize("path", ["deployment.yaml", "namespaced/deployment.yaml"])
def test_the_operators_own_pod_is_admitted_there(space: Space, path: str) -> None:
    documents = yaml.safe_load_all((ROOT / "manifests" / path).read_text())
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    space.kubectl("create", "serviceaccount", spec["serviceAccountName"])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": spec}
    output = space.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    assert "created" in output


@each_kind(persistents=pytest.mark.capability("pod security"))
def test_members_are_not_root(space: Space, kind: Any) -> None:
    assert users(space, space.created(sized(kind(), 1))) == {USER}


@pytest.mark.unrestricted
@each_kind()
def test_a_user_may_choose_otherwise(space: Space, kind: Any) -> None:
    own = {"securityContext": {"runAsUser": 0}}
    document = ephemeral(size=1, pod=own) if kind is ephemeral else persistent(replicas=1, podTemplate=own)
    space.created(document)
    assert [pod["spec"]["securityContext"] for pod in space.pods(document)] == [own["securityContext"]]


def test_what_a_namespace_refuses_is_reported(space: Space) -> None:
    own = {"securityContext": {"runAsUser": 0}}
    ephemerally, persistently = ephemeral(size=1, pod=own), persistent(replicas=1, podTemplate=own)
    for document, reason in ((ephemerally, "Forbidden"), (persistently, "FailedCreate")):
        space.create(document)
        found = space.wait_condition(document, "Degraded", reason)
        assert 'violates PodSecurity "restricted' in found["message"]


@pytest.mark.unrestricted
def test_members_from_before_stay_root_and_one_that_may_not_read_its_data_is_reported(
    space: Space,
) -> None:
    """The volumes of this Kubernetes are host paths: no fsGroup is applied to them."""
    document = space.settled(persistent(version="3.5.34"))
    before = assert_consistent(space, document)
    claims = [f"my-cluster-{number}" for number in range(3)]
    space.kubectl("annotate", "pvc", *claims, f"{ANNOTATION}-")
    wait_until(lambda: template_users(space) == [None] * 3, "the next pods are of root")
    hold_for(3.0, lambda: users(space, document) == {USER}, "no pod is replaced", every=0.5)

    document = {**document, "spec": {**document["spec"], "version": "3.5.35"}}
    space.kubectl.apply(document)
    settle(space, document)
    assert users(space, document) == {None}
    assert assert_consistent(space, document) == before
    for pod in space.pods(document):
        give_to_root(space, pod)  # as if root had written it

    target = "my-cluster-1"
    space.kubectl("annotate", "pvc", target, f"{ANNOTATION}=true")
    wait_until(lambda: template_users(space) == [None, USER, None], "the next pod is not root")
    delete_pod(space, target)
    found = space.wait_condition(document, "Degraded", "PermissionDenied")
    assert target in found["message"]
    hold_for(5.0, lambda: target in space.names(resources.CLAIMS), "its claim is kept", every=0.5)

    space.kubectl("annotate", "pvc", target, f"{ANNOTATION}-")
    wait_until(lambda: template_users(space) == [None] * 3, "the next pod is of root")
    delete_pod(space, target)
    settle(space, document)
    assert assert_consistent(space, document) == before


def template_users(space: Space) -> list[Any]:
    """The user of the next pod of each member, by name."""
    found = space.api.all_of(resources.REPLICA_SETS, space.namespace)
    return [each["spec"]["template"]["spec"]["securityContext"].get("runAsUser") for each in found]


def delete_pod(space: Space, member: str) -> None:
    space.kubectl("delete", "pod", "-l", f"etcd.improbable.io/peer-name={member}", "--grace-period=1")
