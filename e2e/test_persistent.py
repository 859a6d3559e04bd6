"""The documents' walkthroughs for etcd.improbable.io: reach it by name, delete it, resume it."""

import itertools
import re
from pathlib import Path

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import Document, persistent
from e2e.support.keys import KeyClient
from e2e.support.measuring import assert_at_most
from e2e.support.members import Members
from e2e.support.shell import etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.volumes import remove_all
from e2e.support.waiting import LONG, answered, hold_for, wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.kube import resources

SAMPLE = str(ROOT / "manifests" / "examples" / "etcd_v1alpha1_etcdcluster.yaml")
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"

QUORUM_SECONDS = 5.0
"""The longest loss of the quorum that the end of one member may cost."""


def put(space: Space, document: Document, key: bytes, value: bytes) -> None:
    with Members() as members:
        client = members.client(space.addresses(document)[0])
        answered(lambda: client.put(key, value), f"{key!r} is written")


def value_at_each(space: Space, document: Document, key: bytes) -> list[bytes | None]:
    with Members() as members:
        return [value_of(members.client(address), key) for address in space.addresses(document)]


def value_of(client: KeyClient, key: bytes) -> bytes | None:
    found = answered(lambda: client.get(key), f"{client.endpoint} has a quorum")
    return found.value if found is not None else None


@pytest.mark.unrestricted
def test_etcdctl_finds_the_members_by_the_srv_records_of_the_service(space: Space) -> None:
    document = space.created(persistent())
    start_shell(space)
    discovery = ("--discovery-srv", "my-cluster", "--insecure-discovery")
    etcdctl_in_shell(space, *discovery, "put", "foo", "bar")
    assert etcdctl_in_shell(space, *discovery, "get", "foo").split() == ["foo", "bar"]
    listed = etcdctl_in_shell(space, *discovery, "member", "list")
    assert all(f"my-cluster-{number}" in listed for number in range(3)), listed
    wait_until(
        lambda: space.status(document).get("clusterVersion") == "3.6.0",
        LONG,
        lambda: f"etcd agrees on its version: {space.status(document)}",
    )


@pytest.mark.capability("create, delete and resume: etcd.improbable.io")
@pytest.mark.walkthrough(
    "Improbable README", "Deploying an etcd cluster", "Testing Connectivity inside Kubernetes", "Cleanup"
)
@pytest.mark.walkthrough("Improbable guide", "Delete a Cluster")
@pytest.mark.unrestricted
def test_the_sample_is_reached_by_name_survives_deletion_and_comes_back_with_its_data(space: Space) -> None:
    document = persistent()
    space.kubectl("apply", "-f", SAMPLE)
    space.wait_serving(document)
    assert_nothing_doubled(space, document)
    start_shell(space)
    address = ("--endpoints", "http://my-cluster:2379")
    listed = etcdctl_in_shell(space, *address, "member", "list")
    assert all(f"my-cluster-{number}" in listed for number in range(3)), listed
    etcdctl_in_shell(space, *address, "put", "foo", "bar")
    space.kubectl("delete", "po", "etcd-shell", "--grace-period=1")
    before = assert_consistent(space, document)
    space.wait_settled(document)  # every claim has the annotations of the bootstrap

    space.kubectl("delete", "-f", SAMPLE)
    space.wait_pods_deleted(document)
    for kind in (resources.PEERS, resources.REPLICA_SETS, resources.SERVICES):
        wait_until(lambda kind=kind: not space.names(kind), LONG, f"no {kind} is left")  # type: ignore[misc]
    rows = space.kubectl.table("get", "pvc", "--selector", SELECTOR)
    assert [row["NAME"] for row in rows] == [f"my-cluster-{number}" for number in range(3)]
    assert {row["STATUS"] for row in rows} == {"Bound"}

    space.kubectl("apply", "-f", SAMPLE)
    space.wait_serving(document)
    space.wait_events("my-cluster", ("Normal", "Resumed"))
    assert ("Warning", "QuorumLost") not in space.events("my-cluster")
    assert (values := value_at_each(space, document, b"foo")) == [b"bar"] * 3, values
    assert assert_consistent(space, document) == before

    space.kubectl("delete", "-f", SAMPLE)
    space.wait_pods_deleted(document)
    output = space.kubectl("delete", "pvc", "--selector", SELECTOR)
    deleted = [f'persistentvolumeclaim "my-cluster-{number}" deleted' for number in range(3)]
    assert all(each in output for each in deleted), output


@pytest.mark.walkthrough("Improbable guide", "Understanding Cluster Status")
def test_status_columns_and_describe_show_what_happened(space: Space) -> None:
    document = space.created(persistent())
    space.wait_settled(document)
    wait_until(lambda: shown_row(space) == SHOWN, LONG, lambda: f"kubectl shows {SHOWN}: {shown_row(space)}")
    status = space.status(document)
    assert status["replicas"] == 3
    assert sorted(each["name"] for each in status["members"]) == [
        f"my-cluster-{number}" for number in range(3)
    ]
    assert all(re.fullmatch("[0-9a-f]+", each["id"]) for each in status["members"])
    assert status["clusterID"] == assert_consistent(space, document)

    def described() -> str:
        return space.kubectl("describe", "etcdcluster.etcd.improbable.io", "my-cluster")

    shown = ("Available", "QuorumHealthy", "ServiceCreated", "PeerCreated", "PVCCreated", "ClusterCreated")
    wait_until(lambda: all(each in described() for each in shown), LONG, f"describe shows {shown}", every=1.0)
    assert_at_rest(space, 12)


SHOWN = ("my-cluster", "3", "3", "3.6.16")


def shown_row(space: Space) -> tuple[str, ...]:
    (row,) = space.kubectl.table("get", "etcd")
    return row["NAME"], row["REPLICAS"], row["READY"], row["VERSION"]


def test_a_deleted_pod_comes_back_on_its_claim_without_a_lost_write(space: Space) -> None:
    document = space.created(persistent())
    before = assert_consistent(space, document)
    rounds = itertools.count()

    def quorum_loss_of_a_deletion() -> float:
        target = space.pods(document)[0]
        with (
            QuorumWatch(lambda: space.addresses(document)) as quorum,
            Writer(lambda: space.addresses(document), prefix=f"round-{next(rounds)}") as writer,
        ):
            wait_until(lambda: writer.acknowledged >= 20, LONG, "20 writes are acknowledged")
            space.kubectl("delete", "pod", target["metadata"]["name"], "--wait=false")
            wait_until(
                lambda: (
                    target["metadata"]["uid"] not in [pod["metadata"]["uid"] for pod in space.pods(document)]
                ),
                LONG,
                "the pod is another one",
            )
            space.wait_serving(document)
            now = writer.acknowledged
            wait_until(lambda: writer.acknowledged > now, LONG, "writes go on")
        writer.verify()
        return max(quorum.losses, default=0.0)

    assert_at_most(QUORUM_SECONDS, quorum_loss_of_a_deletion, "seconds without a quorum")
    assert assert_consistent(space, document) == before


def test_a_member_that_lost_its_volume_refuses_to_start_and_is_replaced_while_the_others_serve(
    space: Space,
) -> None:
    """It must not come back empty as who it was: that would forget its votes."""
    document = space.created(persistent())
    space.wait_settled(document)
    put(space, document, b"foo", b"bar")
    cluster_id, old_id = assert_consistent(space, document), member_id(space, document, "my-cluster-1")
    target = "my-cluster-1"
    empty_volume(space, target)
    selector = f"etcd.improbable.io/peer-name={target}"
    space.kubectl("delete", "pod", "-l", selector, "--grace-period=1")

    wait_until(
        lambda: ("Warning", "DataLost") in space.events("my-cluster"),
        LONG,
        "the empty one does not start",
    )
    others = [
        pod["status"]["podIP"]
        for pod in space.pods(document)
        if pod["metadata"]["labels"]["etcd.improbable.io/peer-name"] != target
    ]
    with Members() as members:
        found = [value_of(members.client(address), b"foo") for address in others]
    assert found == [b"bar", b"bar"], found
    wait_until(
        lambda: member_id(space, document, target) not in ("", old_id), LONG, f"{target} is another member"
    )
    space.wait_serving(document)
    assert assert_consistent(space, document) == cluster_id
    assert (values := value_at_each(space, document, b"foo")) == [b"bar"] * 3, values


def member_id(space: Space, document: Document, name: str) -> str:
    """A member's ID in hex as a quorum lists it; empty if it is not listed."""
    with Members() as members:
        for report in members.reports(space.pods(document)):
            for member in report.members.members:
                if member.name == name and report.status.leader:
                    return member.id
    return ""


def empty_volume(space: Space, claim: str) -> None:
    """Remove what is on a claim's volume, as a lost disk would."""
    volume = space.kubectl.json("get", "pvc", claim)["spec"]["volumeName"]
    path = space.kubectl.json("get", "pv", volume)["spec"]["hostPath"]["path"]
    folder: Path = space.testbed.volumes / Path(path).name
    assert (folder / "member").is_dir() or any(folder.iterdir()), f"{folder} is not the volume of {claim}"
    remove_all(folder)


def test_a_settled_cluster_has_no_member_that_may_bootstrap_again(space: Space) -> None:
    document = space.created(persistent())
    space.wait_settled(document)
    for name in space.names(resources.PEERS):
        peer = space.kubectl.json("get", "etcdpeer", name)
        assert peer["spec"]["bootstrap"]["initialClusterState"] == "Existing", peer["spec"]
    hold_for(3, lambda: len(space.pods(document)) == 3, "no member is restarted", every=0.5)
    assert all(
        status["restartCount"] == 0
        for pod in space.pods(document)
        for status in pod["status"]["containerStatuses"]
    )
