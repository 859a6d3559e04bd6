"""The documents' walkthroughs for etcd.improbable.io: reach it by name, delete it, resume it."""

import re

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import persistent
from e2e.support.members import Members
from e2e.support.resizing import member_ids, member_of
from e2e.support.shell import etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.volumes import empty
from e2e.support.waiting import answered, wait_until
from etcd_operator.kube import resources

SAMPLE = str(ROOT / "manifests" / "examples" / "etcd_v1alpha1_etcdcluster.yaml")
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"


@pytest.mark.unrestricted
def test_etcdctl_finds_the_members_by_the_srv_records_of_their_service(space: Space) -> None:
    document = space.created(persistent())
    start_shell(space)
    for service in ("my-cluster", "my-cluster-peer"):
        discovery = ("--discovery-srv", service, "--insecure-discovery")
        etcdctl_in_shell(space, *discovery, "put", "foo", service)
        assert etcdctl_in_shell(space, *discovery, "get", "foo").split() == ["foo", service]
        found = etcdctl_in_shell(space, *discovery, "endpoint", "health", "--cluster")
        assert all(f"my-cluster-{number}.my-cluster-peer" in found for number in range(3)), found
    space.wait_for(
        document,
        lambda: space.status(document).get("clusterVersion") == "3.6.0",
        "etcd agrees on its version",
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
    space.wait_no_pods()
    for kind in (resources.PEERS, resources.REPLICA_SETS, resources.SERVICES):
        wait_until(lambda kind=kind: not space.names(kind), f"no {kind} is left")  # type: ignore[misc]
    rows = space.kubectl.table("get", "pvc", "--selector", SELECTOR)
    assert [row["NAME"] for row in rows] == [f"my-cluster-{number}" for number in range(3)]
    assert {row["STATUS"] for row in rows} == {"Bound"}

    space.kubectl("apply", "-f", SAMPLE)
    space.wait_serving(document)
    space.wait_events("my-cluster", ("Normal", "Resumed"))
    assert ("Warning", "QuorumLost") not in space.events("my-cluster")
    assert (values := space.values(document, b"foo")) == [b"bar"] * 3, values
    assert assert_consistent(space, document) == before

    space.kubectl("delete", "-f", SAMPLE)
    space.wait_no_pods()
    output = space.kubectl("delete", "pvc", "--selector", SELECTOR)
    deleted = [f'persistentvolumeclaim "my-cluster-{number}" deleted' for number in range(3)]
    assert all(each in output for each in deleted), output


@pytest.mark.walkthrough("Improbable guide", "Understanding Cluster Status")
def test_status_columns_and_describe_show_what_happened(space: Space) -> None:
    document = space.settled(persistent())
    wait_until(lambda: shown_row(space) == SHOWN, lambda: f"kubectl shows {SHOWN}: {shown_row(space)}")
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
    wait_until(lambda: all(each in described() for each in shown), f"describe shows {shown}", every=1.0)
    for name in space.names(resources.PEERS):
        peer = space.kubectl.json("get", "etcdpeer", name)
        assert peer["spec"]["bootstrap"]["initialClusterState"] == "Existing", "it never bootstraps again"
    assert_at_rest(space, 12)
    containers = [each for pod in space.pods(document) for each in pod["status"]["containerStatuses"]]
    assert [each["restartCount"] for each in containers] == [0, 0, 0], "no member was restarted for that"


SHOWN = ("my-cluster", "3", "3", "3.6.16")


def shown_row(space: Space) -> tuple[str, ...]:
    (row,) = space.kubectl.table("get", "etcd")
    return row["NAME"], row["REPLICAS"], row["READY"], row["VERSION"]


def test_a_member_that_lost_its_volume_refuses_to_start_and_is_replaced_while_the_others_serve(
    space: Space,
) -> None:
    """Its next pod finds nothing: the status says so, until it is another member."""
    space.require_local("volumes can be emptied on the local Kubernetes only")
    document, target = space.settled(persistent()), "my-cluster-1"
    space.put(document, b"foo", b"bar")
    cluster_id, ids = assert_consistent(space, document), member_ids(space, document)
    pods = {member_of(pod): pod for pod in space.pods(document)}
    empty(space, pods[target])
    space.kubectl("delete", "pod", pods[target]["metadata"]["name"], "--grace-period=1")

    space.wait_events("my-cluster", ("Warning", "DataLost"))
    with Members() as members:
        for name in pods.keys() - {target}:
            client = members.client(pods[name]["status"]["podIP"])
            found = answered(lambda client=client: client.get(b"foo"), f"{name} serves")  # type: ignore[misc]
            assert found is not None
            assert found.value == b"bar"
    wait_until(
        lambda: member_ids(space, document).get(target) not in (None, ids[target]), "it is another one"
    )
    space.wait_serving(document)
    assert assert_consistent(space, document) == cluster_id
    assert space.values(document, b"foo") == [b"bar"] * 3
