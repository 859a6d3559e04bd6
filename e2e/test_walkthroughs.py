"""The documents' other ways to change the size, and the oldest document's recovery of its controller."""

from pathlib import Path

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.resizing import members_of, settle, sized
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources

SAMPLE = ROOT / "manifests" / "examples" / "etcd_v1alpha1_etcdcluster.yaml"
OLDEST = ROOT / "manifests" / "examples" / "oldest" / "example-etcd-cluster.yaml"
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"


@pytest.mark.walkthrough("Improbable guide", "Scale up a cluster", "Scale down a cluster")
def test_apply_edit_and_scale_change_the_number_of_replicas(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside a cluster of the other group, whose resource has the same kind."""
    other = space.create(ephemeral(size=1))
    document = persistent()
    space.kubectl("apply", "-f", str(SAMPLE))
    settle(space, document)
    assert [row["NAME"] for row in space.kubectl.table("get", "etcdcluster")] == ["my-cluster"]
    smaller = tmp_path / "etcdcluster.yaml"
    text = SAMPLE.read_text()
    assert "replicas: 3" in text
    smaller.write_text(text.replace("replicas: 3", "replicas: 1"))

    space.kubectl("apply", "-f", str(smaller))
    assert_one_is_kept(space, sized(document, 1))
    assert space.names(resources.PEERS, SELECTOR) == ["my-cluster-0"]
    removed = ("MemberRemoved", "PeerRemoved", "PVCRemoved")
    space.wait_events("my-cluster", *(("Normal", reason) for reason in removed))

    monkeypatch.setenv("KUBE_EDITOR", "sed -i 's/replicas: 1/replicas: 3/'")
    output = space.kubectl("edit", "etcdcluster", "my-cluster")
    assert "edited" in output, output
    settle(space, document)
    assert members_of(space, document) == [f"my-cluster-{number}" for number in range(3)]
    assert_consistent(space, document)

    for kind, size in (("EtcdCluster", 5), ("etcdcluster", 1)):
        output = space.kubectl("scale", kind, "my-cluster", "--replicas", str(size))
        assert "scaled" in output, output
        settle(space, sized(document, size))
    assert_one_is_kept(space, sized(document, 1))
    settle(space, other)


def assert_one_is_kept(space: Space, document: Document) -> None:
    settle(space, document)
    wait_until(lambda: space.names(resources.CLAIMS, SELECTOR) == ["my-cluster-0"], "one claim is kept")
    assert_consistent(space, document)


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
