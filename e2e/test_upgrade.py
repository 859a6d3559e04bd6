"""Upgrades as the documents show them, under a writing client: patch, minor, and to what does not exist."""

import time
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import COREOS, Document, ephemeral, persistent
from e2e.support.proxy import put_whole
from e2e.support.resizing import RATE, settle, written_to
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.kube import resources

KINDS = [
    pytest.param(
        ephemeral(name="etcd-cluster", version="v3.5.34"),
        id="ephemeral",
        marks=pytest.mark.walkthrough("CoreOS README", "Upgrade an etcd cluster"),
    ),
    pytest.param(
        persistent(version="3.5.34"),
        id="persistent",
        marks=[
            pytest.mark.capability("upgrade"),
            pytest.mark.walkthrough("Improbable guide", "Upgrade a Cluster"),
        ],
    ),
]
MISSING = "3.7.99"
"""A version whose image is nowhere."""


def edited(space: Space, document: Document, version: str) -> Document:
    """Edit the version as the document of that kind does: a whole object by PUT, or `kubectl apply`."""
    wanted = {**document, "spec": {**document["spec"], "version": version}}
    if document["apiVersion"] == COREOS:
        wanted["metadata"] = {**document["metadata"], "namespace": space.namespace}
        put_whole(space.kubectl, space.namespace, wanted)
    else:
        space.kubectl.apply(wanted)
    return wanted


def images(space: Space, document: Document) -> set[str]:
    """The images of the members' containers, as `kubectl get pod -o yaml` shows them."""
    return {pod["spec"]["containers"][0]["image"] for pod in space.pods(document)}


def identity(space: Space, document: Document) -> Any:
    """What an upgrade does not change: the claims and, as etcd reports, cluster and members."""
    claims = {
        c["metadata"]["name"]: c["metadata"]["uid"]
        for c in space.api.all_of(resources.CLAIMS, space.namespace)
    }
    return claims, assert_consistent(space, document)


def upgrade(space: Space, document: Document, version: str) -> Document:
    """One upgrade, with its figures."""
    began = time.monotonic()
    with (
        QuorumWatch(lambda: space.addresses(document)) as watch,
        Writer(lambda: space.addresses(document), per_second=RATE, prefix=version) as writer,
    ):
        wanted = edited(space, document, version)
        settle(space, wanted)
        seconds = time.monotonic() - began
    writer.verify()
    print(
        f"to {version}: {seconds:.1f} s, {writer.acknowledged} puts, {len(writer.failed)} failed, "
        f"longest gap {writer.longest_gap:.2f} s, without quorum: {[f'{loss:.1f}' for loss in watch.losses]}"
    )
    assert (found := images(space, wanted)) == {f"quay.io/coreos/etcd:v{version.removeprefix('v')}"}, found
    return wanted


@pytest.mark.parametrize("document", KINDS)
def test_a_cluster_is_upgraded_from_3_5_to_3_7_and_nothing_is_lost(space: Space, document: Document) -> None:
    if document["apiVersion"] == COREOS:
        space.created(document)
    else:
        space.kubectl.apply(document)
        space.wait_serving(document)
    settle(space, document)
    before = identity(space, document)

    for version in ("v3.5.35", "v3.6.16", "v3.7.3"):
        document = upgrade(space, document, version)
        assert identity(space, document) == before

    assert_reported(space, document)
    assert_blocked_and_back(space, document)
    assert identity(space, document) == before
    assert_at_rest(space, 10)


def assert_reported(space: Space, document: Document) -> None:
    """Versions in status, progress in Events."""
    reasons = ("UpgradeStarted", "LeaderMoved", "MemberUpgraded", "UpgradeFinished")
    space.wait_events(document["metadata"]["name"], *[("Normal", reason) for reason in reasons])
    status = space.status(document)
    assert ("upgrade" not in status, status["currentVersion"]) == (True, "3.7.3"), status
    # The leader checks every few seconds whether it can raise the cluster version.
    wait_until(
        lambda: space.status(document).get("clusterVersion", "3.7.0") == "3.7.0", "the cluster version"
    )
    if document["apiVersion"] != COREOS:
        wait_until(lambda: versions_of_peers(space) == {"3.7.3"}, lambda: f"{versions_of_peers(space)}")


def versions_of_peers(space: Space) -> set[str | None]:
    peers = space.api.all_of(resources.PEERS, space.namespace)
    return {peer.get("status", {}).get("serverVersion") for peer in peers}


def names_the_image(space: Space, document: Document) -> bool:
    degraded = condition(space.stored(document), "Degraded")
    return degraded["reason"] == "UpgradeBlocked" and (
        "Image" in degraded["message"] or "Pull" in degraded["message"]
    )


def assert_blocked_and_back(space: Space, document: Document) -> None:
    """A version that does not exist costs one member while the spec names it, and no write."""
    with Writer(lambda: space.addresses(document), per_second=RATE, prefix="blocked") as writer:
        wrong = edited(space, document, MISSING)
        # Between two pulls the kubelet also reports CrashLoopBackOff, of the container that it has stopped.
        space.wait_for(wrong, lambda: names_the_image(space, wrong), "the image is named")
        settle(space, edited(space, document, document["spec"]["version"]))
    writer.verify()
    space.wait_serving(document)


@pytest.mark.exclusive
def test_an_operator_killed_in_the_middle_goes_on_and_a_lost_member_is_replaced(space: Space) -> None:
    document = space.settled(ephemeral(version="v3.5.35"))
    with written_to(space, document):
        wanted = edited(space, document, "v3.6.16")
        wait_until(lambda: len(images(space, document)) == 2, "the first member has the new image")
        space.operator.kill()
        space.kubectl("delete", "pod", "example-etcd-cluster-0000", "--now")
        settle(space, wanted)

    names = sorted(pod["metadata"]["name"] for pod in space.pods(wanted))
    assert names == [f"example-etcd-cluster-{number:04}" for number in (1, 2, 3)]
    assert images(space, wanted) == {"quay.io/coreos/etcd:v3.6.16"}
