"""Writes to objects, held against what the API server stored."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Objects, Overridden
from etcd_operator.decoding import convert
from etcd_operator.errors import AlreadyExists, Conflict
from etcd_operator.kube.resources import PODS, SECRETS, SERVICES
from etcd_operator.kube.views import Written
from unit.fakes.apiserver import ApiServer, kinds
from unit.passes.harness import objects_of

KEY = "app.kubernetes.io/name"
POD = ObjectMeta(name="c-0", uid="1")


def objects(*, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Objects:
    """Objects of an API server that stores exactly this, whatever is written."""
    stored = ObjectMeta(name="c-0", uid="1", labels=dict(labels), annotations=dict(annotations))

    class Client:
        def patch(self, *_args: Any, **_options: Any) -> Written:
            return Written(metadata=stored)

    client: Any = Client()
    return Objects(client=client, namespace="default", wrote=lambda *_: None)


def test_an_annotation_with_the_key_of_a_label_does_not_hide_the_label() -> None:
    found = objects(labels={KEY: "etcd"}, annotations={KEY: "shop"})

    for change in ({"labels": {KEY: "etcd"}}, {"annotations": {KEY: "shop"}}):
        written = found.merge(PODS, POD, {"metadata": change}).metadata
        assert (written.labels, written.annotations) == ({KEY: "etcd"}, {KEY: "shop"})


@pytest.mark.parametrize("stored", [{}, {KEY: "shop"}])
def test_a_label_is_missed_although_an_annotation_has_its_key_and_value(stored: dict[str, str]) -> None:
    with pytest.raises(Overridden, match=KEY):
        objects(labels=stored, annotations={KEY: "etcd"}).label(PODS, POD, {KEY: "etcd"})


@pytest.mark.parametrize(
    ("api_version", "is_passing"),
    [
        pytest.param("coreos.com/v1", True, id="of the former cluster"),
        pytest.param("etcd.database.coreos.com/v1beta2", False, id="of another operator's"),
    ],
)
def test_a_name_is_waited_for_only_if_its_owner_was_of_our_kind(api_version: str, is_passing: bool) -> None:
    def owned(version: str, uid: str) -> dict[str, Any]:
        owner = {"apiVersion": version, "kind": "EtcdCluster", "name": "c", "uid": uid, "controller": True}
        return {"name": "c", "ownerReferences": [owner]}

    class Client:
        def create(self, *_args: Any) -> Written:
            raise AlreadyExists("there is one")

        def get(self, *_args: Any) -> Written:
            return Written(metadata=convert(owned(api_version, "1"), ObjectMeta))

    client: Any = Client()
    found = Objects(client=client, namespace="default", wrote=lambda *_: None)
    with pytest.raises(NameConflict) as taken:
        found.create(SERVICES, {"metadata": owned("coreos.com/v1", "2")})
    assert taken.value.is_passing is is_passing


def test_a_write_of_one_version_is_refused_once_another_one_is_stored() -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "MQ=="}}
    with ApiServer() as api:
        found = objects_of(api)
        found.create(SECRETS, body)
        first = found.client.get(SECRETS, found.key("c"), Written).metadata
        last = found.merge(SECRETS, first, {"data": {"a": "Mg=="}}, version=first.resource_version).metadata
        assert first.resource_version != last.resource_version
        for write in (partial(found.merge, change={"data": {}}), found.remove):
            with pytest.raises(Conflict):
                write(SECRETS, last, version=first.resource_version)
        assert found.remove(SECRETS, last, version=last.resource_version)
        assert found.find(SECRETS, "c", Written) is None
        assert not found.remove(SECRETS, last, version=last.resource_version)


def test_an_object_that_has_changed_since_it_was_seen_gets_no_owner() -> None:
    """It may have got another one."""
    owner = [{"apiVersion": "coreos.com/v1", "kind": "EtcdCluster", "name": "c", "uid": "1"}]
    with ApiServer() as api:
        made = api.objects.create(kinds.SERVICES, "default", {"metadata": {"name": "c"}, "spec": {}})[
            "metadata"
        ]
        seen = ObjectMeta(name="c", uid=made["uid"])
        api.objects.patch(kinds.SERVICES, "default", "c", {"metadata": {"labels": {"a": "b"}}}, "merge")
        with pytest.raises(Conflict):
            objects_of(api).own(SERVICES, seen, owner, version=made["resourceVersion"])
        assert "ownerReferences" not in api.objects.get(kinds.SERVICES, "default", "c")["metadata"]
