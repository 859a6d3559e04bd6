"""The same roll done by hand: the floor's pods, one after the other, and a leader that is killed, not moved.

What etcd and Kubernetes need at least, and what clients feel when no leader moves its leadership first.
"""

import time

from benchmark import floor
from benchmark.bed import Bed, Document
from benchmark.rolling import until_serving_at
from e2e.support.clusters import COREOS
from e2e.support.members import Members
from e2e.support.waiting import wait_until
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import PatchKind

LIMIT = 90.0
"""Seconds for one member."""


def roll(bed: Bed, document: Document, namespace: str) -> float:
    """Bring the floor's pods to the version of `document`; the seconds, without those of the killing tool."""
    pods = [body for kind, body in floor.objects_of(document, namespace) if kind is resources.PODS]
    version = document["spec"]["version"]
    began, spent = time.monotonic(), 0.0
    for body in reversed(pods):
        name = body["metadata"]["name"]
        if _leads(bed, namespace, name):
            before = time.monotonic()
            bed.testbed.fault("kill", f"{namespace}/{name}")
            spent += time.monotonic() - before
        if document["apiVersion"] == COREOS:
            _change_in_place(bed, body, namespace)
        else:
            _make_again(bed, body, namespace)
        until_serving_at(bed, document, namespace, version, members=frozenset({name}), limit=LIMIT)
    return time.monotonic() - began - spent


def _leads(bed: Bed, namespace: str, name: str) -> bool:
    pod = bed.api.get(resources.PODS, namespace, name)
    with Members() as members:
        return any(report.status.is_leader for report in members.reports([pod] if pod else []))


def _change_in_place(bed: Bed, body: Document, namespace: str) -> None:
    """Another image: the kubelet restarts the container in the same pod, on the same data."""
    container = body["spec"]["containers"][0]
    patch = {"spec": {"containers": [{"name": container["name"], "image": container["image"]}]}}
    key = Key(namespace, body["metadata"]["name"])
    bed.api.client.patch(resources.PODS, key, patch, dict, kind=PatchKind.STRATEGIC)


def _make_again(bed: Bed, body: Document, namespace: str) -> None:
    """Another pod on the same claim, made when the old one is deleted: never two at once."""
    name = body["metadata"]["name"]
    old = bed.api.get(resources.PODS, namespace, name)
    if old is not None:
        bed.api.client.delete(resources.PODS, Key(namespace, name), uid=old["metadata"]["uid"])

    wait_until(
        lambda: bed.api.get(resources.PODS, namespace, name) is None,
        f"pod {name} is deleted",
        within=LIMIT,
        every=0.02,
    )
    bed.api.create(resources.PODS, namespace, body)
