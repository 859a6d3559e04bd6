"""The operator's own image: the flag, or that of its own pod."""

from collections.abc import Iterator
from typing import Any

import pytest

from etcd_operator.controllers.shared.own_image import ImageUnknown, OwnImage
from etcd_operator.kube.own_pod import OwnPod
from unit.fakes.apiserver import ApiServer
from unit.fakes.apiserver.kinds import PODS
from unit.passes.harness import objects_of

POD = OwnPod(uid="uid", name="etcd-operator-x", namespace="default", node="node-1")


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def runs(api: ApiServer, **images: str) -> None:
    containers: list[Any] = [
        {"name": name.replace("_", "-"), "image": image} for name, image in images.items()
    ]
    api.objects.create(PODS, "default", {"metadata": {"name": POD.name}, "spec": {"containers": containers}})


def test_it_is_that_of_the_own_pod_and_read_once(api: ApiServer) -> None:
    runs(api, anything="registry/etcd-operator:1")
    image = OwnImage(client=objects_of(api).client, pod=POD)
    assert [image(), image()] == ["registry/etcd-operator:1"] * 2
    assert len(api.log) == 1


def test_beside_a_sidecar_the_name_of_the_container_decides(api: ApiServer) -> None:
    runs(api, proxy="proxy:2", etcd_operator="registry/etcd-operator:1")
    assert OwnImage(client=objects_of(api).client, pod=POD)() == "registry/etcd-operator:1"


def test_the_flag_comes_first_and_nothing_is_read(api: ApiServer) -> None:
    assert OwnImage(client=objects_of(api).client, pod=POD, given="mine:1")() == "mine:1"
    assert api.log == []


@pytest.mark.parametrize(
    ("pod", "images", "part"),
    [
        (None, {}, "not run in a pod of its own"),
        (POD, {}, "does not exist"),
        (POD, {"proxy": "proxy:2", "main": "x:1"}, "no container of the pod etcd-operator-x is named"),
    ],
)
def test_who_cannot_know_it_reports_what_to_do(
    api: ApiServer, pod: OwnPod | None, images: dict[str, str], part: str
) -> None:
    if images:
        runs(api, **images)
    with pytest.raises(ImageUnknown, match=part) as caught:
        OwnImage(client=objects_of(api).client, pod=pod)()
    assert "--backup-image" in str(caught.value)
