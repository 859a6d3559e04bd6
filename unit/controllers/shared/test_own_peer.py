"""How a NetworkPolicy names the operator's pods."""

from collections.abc import Iterator

import pytest

from etcd_operator.controllers.shared.own_peer import OperatorUnknown, OwnPeer
from etcd_operator.errors import NotFound
from etcd_operator.kube.own_pod import OwnPod
from unit.fakes.apiserver import Answer, ApiServer, Json
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.passes.harness import objects_of

POD = OwnPod(uid="uid", name="etcd-operator-x", namespace="default", node="node-1")
NAMED = {"app.kubernetes.io/name": "etcd-operator"}
OF_ONE_POD = {
    "topology.kubernetes.io/zone": "a",
    "app.kubernetes.io/version": "1",
    "helm.sh/chart": "x-1",
    "pod-template-hash": "1",
}
NAMESPACE = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
IN = {"key": "tier", "operator": "In", "values": ["control"]}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def runs(api: ApiServer, labels: Json, *, owner: str = "", uid: str = "u", **spec: object) -> None:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "rs", "uid": uid, "controller": True}]
    metadata = {"name": POD.name, "labels": labels, "ownerReferences": owners if owner else []}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}}
    api.objects.create(PODS, "default", body)


def selecting(api: ApiServer, selector: Json) -> str:
    """The UID of a ReplicaSet with that selector."""
    body = {"metadata": {"name": "rs"}, "spec": {"selector": selector}}
    uid: str = api.objects.create(REPLICA_SETS, "default", body)["metadata"]["uid"]
    return uid


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ({"matchLabels": {"app": "op", "pod-template-hash": "1"}}, {"matchLabels": {"app": "op"}}),
        ({"matchLabels": {"rollouts-pod-template-hash": "1"}}, {"matchLabels": NAMED}),
        (
            {"matchLabels": {"pod-template-hash": "1"}, "matchExpressions": [IN]},
            {"matchExpressions": [IN]},
        ),
    ],
    ids=["labels", "none that lasts", "expressions"],
)
def test_by_what_selects_all_pods_of_its_deployment_and_it_is_read_once(
    api: ApiServer, selector: Json, named: Json
) -> None:
    """Labels of the pod itself differ in another zone, and after an update: they would cut it off."""
    uid = selecting(api, selector)
    runs(api, {**NAMED, **OF_ONE_POD, "app": "op", "tier": "control"}, owner="ReplicaSet", uid=uid)
    peer = OwnPeer(client=objects_of(api).client, pod=POD)
    assert [peer(), peer()] == [{"namespaceSelector": NAMESPACE, "podSelector": named}] * 2
    assert len(api.log) == 2


@pytest.mark.parametrize("owner", ["", "StatefulSet", "ReplicaSet"])
def test_by_its_name_where_no_selector_can_be_read(api: ApiServer, owner: str) -> None:
    uid = selecting(api, {"matchLabels": {"app": "op"}})
    runs(api, {**NAMED, **OF_ONE_POD}, owner=owner, uid=uid)
    forbidden = Answer(code=403, reason="Forbidden")
    api.before = lambda request: forbidden if request.plural == "replicasets" else None
    found = OwnPeer(client=objects_of(api).client, pod=POD)()
    assert found["podSelector"] == {"matchLabels": NAMED}


@pytest.mark.parametrize(
    ("pod", "labels", "spec", "part"),
    [
        (None, NAMED, {}, "does not run in a pod of its own"),
        (POD, NAMED, {"hostNetwork": True}, "has hostNetwork"),
        (POD, {}, {}, "give it the label app.kubernetes.io/name"),
        (POD, OF_ONE_POD, {}, "give it the label app.kubernetes.io/name"),
    ],
)
def test_a_policy_that_cannot_name_them_is_not_made(
    api: ApiServer, pod: OwnPod | None, labels: Json, spec: Json, part: str
) -> None:
    runs(api, labels, **spec)
    with pytest.raises(OperatorUnknown, match=part):
        OwnPeer(client=objects_of(api).client, pod=pod)()


def test_nothing_follows_from_a_pod_that_is_not_found(api: ApiServer) -> None:
    """It is being deleted: policies that name it are right for its successor."""
    with pytest.raises(NotFound):
        OwnPeer(client=objects_of(api).client, pod=POD)()
