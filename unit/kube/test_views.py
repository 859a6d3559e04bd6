"""What is kept of built-in objects."""

import importlib
import pkgutil
import sys
from typing import Any

import msgspec
import pytest

import etcd_operator
from etcd_operator.api import coreos, improbable
from etcd_operator.api.backups import EtcdBackup
from etcd_operator.api.meta import OUR_ANNOTATIONS
from etcd_operator.api.shared_keys import TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.manifests.steps import SKIP_STEPS
from etcd_operator.decoding import read
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Claim, Job, NetworkPolicy

OURS = {
    TOKEN_ANNOTATION: "t",
    coreos.VERSION_ANNOTATION: "3.6.16",
    "coreos.com/initial-cluster": "c",
}
THEIRS = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 10_000, "example.com/seen": "yes"}


@pytest.mark.parametrize("kind", [Pod, Claim, Job, coreos.EtcdCluster, improbable.EtcdCluster, EtcdBackup])
@pytest.mark.parametrize("annotations", [{**THEIRS, **OURS}, OURS, THEIRS, {}])
def test_only_our_annotations_are_kept(kind: type[Any], annotations: dict[str, str]) -> None:
    metadata = {"name": "a", "uid": "u", "labels": {"app": "x"}, "annotations": annotations}
    found = read(msgspec.json.encode({"metadata": metadata}), kind).metadata
    assert found.annotations == {name: value for name, value in annotations.items() if name in OURS}
    assert (found.name, found.uid, found.labels) == ("a", "u", {"app": "x"})


@pytest.mark.parametrize(("stored", "spec"), [('{"size":3}', {"size": 3}), ("null", {})])
def test_a_spec_is_read_when_it_is_needed(stored: str, spec: dict[str, Any]) -> None:
    found = read(f'{{"metadata":{{"name":"a"}},"spec":{stored}}}'.encode(), coreos.EtcdCluster)
    assert found.spec == spec


def test_a_spec_does_not_keep_the_page_that_it_was_read_from() -> None:
    page = msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"size": 3}, "rest": "x" * 10_000})
    before = sys.getrefcount(page)
    kept = read(page, coreos.EtcdCluster)
    assert (kept.spec, sys.getrefcount(page)) == ({"size": 3}, before)


def test_a_spec_that_is_no_object_is_refused_when_it_is_read() -> None:
    with pytest.raises(msgspec.ValidationError, match="spec"):
        read(b'{"metadata":{"name":"a"},"spec":5}', coreos.EtcdCluster)


def test_an_object_has_few_labels() -> None:
    metadata = {"name": "a", "labels": {f"l{number}": "" for number in range(257)}}
    with pytest.raises(msgspec.ValidationError, match="labels"):
        read(msgspec.json.encode({"metadata": metadata}), Pod)


def test_all_annotations_of_the_operator_count_as_ours() -> None:
    found = {name for keys in (coreos.POD_KEYS, improbable.POD_KEYS) for name in keys.existing_only("a", "b")}
    found |= SKIP_STEPS.keys()
    for each in pkgutil.walk_packages(etcd_operator.__path__, "etcd_operator."):
        if not each.name.endswith("__main__"):
            module = vars(importlib.import_module(each.name))
            found |= {value for name, value in module.items() if name.endswith("_ANNOTATION")}
    assert len(found) > 20
    assert {name for name in found if not name.startswith(OUR_ANNOTATIONS)} == set()


@pytest.mark.parametrize("is_ours", [True, False])
def test_of_network_policies_of_others_only_what_they_select_is_kept(is_ours: bool) -> None:
    owner = {
        "apiVersion": "coreos.com/v1",
        "kind": "EtcdCluster",
        "name": "c",
        "uid": "u",
        "controller": True,
    }
    metadata = {"name": "a", "ownerReferences": [owner] if is_ours else []}
    selects = {"podSelector": {"matchLabels": {"app": "x"}}, "policyTypes": ["Ingress"]}
    spec = {**selects, "ingress": [{"from": [{"podSelector": {}}] * 1000}]}
    found = read(msgspec.json.encode({"metadata": metadata, "spec": spec}), NetworkPolicy)
    assert found.spec == (spec if is_ours else selects)
    assert is_ours or len(found.stored_spec) < 100
