"""How a NetworkPolicy names the operator's pods."""

from collections.abc import Iterator

import pytest

from etcd_operator.controllers.shared.own_peer import OF_ONE_POD, OperatorUnknown, OwnPeer
from etcd_operator.kube.own_pod import OwnPod
from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.kinds import PODS
from unit.passes.harness import objects_of

POD = OwnPod(uid="uid", name="etcd-operator-x", namespace="default", node="node-1")
LABELS = {"app.kubernetes.io/name": "etcd-operator"}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def runs(api: ApiServer, labels: Json, **spec: object) -> None:
    body = {
        "metadata": {"name": POD.name, "labels": labels},
        "spec": {"containers": [{"name": "main"}], **spec},
    }
    api.objects.create(PODS, "default", body)


def test_by_the_labels_that_all_replicas_and_their_successors_have_and_they_are_read_once(
    api: ApiServer,
) -> None:
    runs(api, LABELS | dict.fromkeys(OF_ONE_POD, "x"))
    peer = OwnPeer(client=objects_of(api).client, pod=POD)
    assert [peer(), peer()] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "podSelector": {"matchLabels": LABELS},
        }
    ] * 2
    assert len(api.log) == 1


@pytest.mark.parametrize(
    ("pod", "labels", "spec", "part"),
    [
        (None, LABELS, {}, "does not run in a pod of its own"),
        (POD, None, {}, "does not exist"),
        (POD, LABELS, {"hostNetwork": True}, "has hostNetwork"),
        (POD, {}, {}, "has no labels"),
        (POD, {"pod-template-hash": "1"}, {}, "has no labels"),
    ],
)
def test_a_policy_that_cannot_name_them_is_not_made(
    api: ApiServer, pod: OwnPod | None, labels: Json | None, spec: Json, part: str
) -> None:
    if labels is not None:
        runs(api, labels, **spec)
    with pytest.raises(OperatorUnknown, match=part):
        OwnPeer(client=objects_of(api).client, pod=pod)()
