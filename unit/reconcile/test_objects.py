"""Writes to objects, held against what the API server stored."""

from collections.abc import Mapping
from typing import Any

import pytest

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.kube.resources import PODS
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.objects import Objects, Overridden

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

    found.label(PODS, POD, {KEY: "etcd"})
    found.annotate(PODS, POD, {KEY: "shop"})


@pytest.mark.parametrize("stored", [{}, {KEY: "shop"}])
def test_a_label_is_missed_although_an_annotation_has_its_key_and_value(stored: dict[str, str]) -> None:
    with pytest.raises(Overridden, match=KEY):
        objects(labels=stored, annotations={KEY: "etcd"}).label(PODS, POD, {KEY: "etcd"})
