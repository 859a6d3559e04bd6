"""The documents' other ways to change the size, and the oldest document's recovery of its controller."""

from pathlib import Path

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import ephemeral, persistent
from e2e.support.resizing import members_of, settle, sized
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources
from localcluster.kubectl import Kubectl

SAMPLE = ROOT / "manifests" / "examples" / "etcd_v1alpha1_etcdcluster.yaml"
OLDEST = ROOT / "manifests" / "examples" / "oldest" / "example-etcd-cluster.yaml"
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"


@pytest.mark.walkthrough("Improbable guide", "Scale down a cluster")
def test_apply_with_one_replica_keeps_one_claim_and_an_edit_brings_three_back(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = persistent()
    space.kubectl("apply", "-f", str(SAMPLE))
    settle(space, document)
    smaller = tmp_path / "etcdcluster.yaml"
    text = SAMPLE.read_text()
    assert "replicas: 3" in text
    smaller.write_text(text.replace("replicas: 3", "replicas: 1"))

    space.kubectl("apply", "-f", str(smaller))
    settle(space, sized(document, 1))
    wait_until(lambda: space.names(resources.CLAIMS, SELECTOR) == ["my-cluster-0"], "one claim is kept")
    assert space.names(resources.PEERS, SELECTOR) == ["my-cluster-0"]
    removed = ("MemberRemoved", "PeerRemoved", "PVCRemoved")
    space.wait_events("my-cluster", *(("Normal", reason) for reason in removed))
    assert_consistent(space, sized(document, 1))

    edit(space.kubectl, monkeypatch, "s/replicas: 1/replicas: 3/")
    settle(space, document)
    assert members_of(space, document) == [f"my-cluster-{number}" for number in range(3)]
    assert_consistent(space, document)


def edit(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """`kubectl edit` with sed as the editor."""
    monkeypatch.setenv("KUBE_EDITOR", f"sed -i '{command}'")
    output = kubectl("edit", "etcdcluster", "my-cluster")
    assert "edited" in output, output


@pytest.mark.walkthrough("Improbable guide", "Scale up a cluster", "Scale down a cluster")
def test_the_documents_commands_scale_up_and_down(space: Space) -> None:
    """Also beside a cluster of the other group, whose resource has the same kind."""
    other = space.create(ephemeral(size=1))
    document = persistent()
    space.kubectl("apply", "-f", str(SAMPLE))
    settle(space, document)
    assert [row["NAME"] for row in space.kubectl.table("get", "etcdcluster")] == ["my-cluster"]

    output = space.kubectl("scale", "EtcdCluster", "my-cluster", "--replicas", "5")
    assert "scaled" in output, output
    settle(space, sized(document, 5))

    output = space.kubectl("scale", "etcdcluster", "my-cluster", "--replicas", "1")
    assert "scaled" in output, output
    settle(space, sized(document, 1))
    wait_until(lambda: space.names(resources.CLAIMS, SELECTOR) == ["my-cluster-0"], "one claim is kept")
    settle(space, other)


@pytest.mark.capability("killed operator")
@pytest.mark.walkthrough("CoreOS README, oldest", "Try cluster recovery", "Try controller recovery")
@pytest.mark.walkthrough("CoreOS README", "etcd operator recovery")
@pytest.mark.exclusive
def test_the_oldest_documents_controller_recovery_with_its_top_level_size(space: Space) -> None:
    document = ephemeral()
    space.kubectl("create", "-f", str(OLDEST))
    settle(space, document)
    name = document["metadata"]["name"]

    space.kubectl("delete", "pod", f"{name}-0000")
    expected = [f"{name}-{number:04}" for number in (1, 2, 3)]
    wait_until(lambda: members_of(space, document) == expected, "0003 takes the place of 0000")
    settle(space, document)

    space.operator.kill()
    space.kubectl("delete", "pod", f"{name}-0003")
    expected = [f"{name}-{number:04}" for number in (1, 2, 4)]
    wait_until(lambda: members_of(space, document) == expected, "0004 takes the place of 0003")
    settle(space, document)
    assert_consistent(space, document)
