"""The documents' walkthrough "create and destroy" for coreos.com clusters, command by command."""

import itertools
from collections.abc import Callable

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import ephemeral
from e2e.support.measuring import assert_at_most
from e2e.support.members import Members
from e2e.support.shell import etcdctl, etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.testbed import ROOT
from e2e.support.waiting import wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.kube import resources

EXAMPLES = ROOT / "manifests" / "examples"
EXAMPLE = str(EXAMPLES / "example-etcd-cluster.yaml")
OLDEST = str(EXAMPLES / "oldest" / "example-etcd-cluster.yaml")
NODEPORT = str(EXAMPLES / "example-etcd-cluster-nodeport-service.json")
NAMES = [f"example-etcd-cluster-{number:04}" for number in range(3)]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            EXAMPLE,
            id="spec-size",
            marks=[
                pytest.mark.capability("create and delete: coreos.com"),
                pytest.mark.walkthrough("CoreOS README", "Create and destroy an etcd cluster"),
            ],
        ),
        pytest.param(
            OLDEST,
            id="oldest-form-top-level-size",
            marks=pytest.mark.walkthrough(
                "CoreOS README, oldest", "Create an etcd cluster", "Destroy an existing etcd cluster"
            ),
        ),
    ],
)
def test_create_shows_the_pods_and_services_of_the_documents_and_delete_removes_everything(
    space: Space, manifest: str
) -> None:
    document = ephemeral()
    space.kubectl("create", "-f", manifest)
    space.wait_serving(document)

    wait_until(lambda: all_run(space), lambda: f"all are ready: {space.kubectl('get', 'pods')}")
    for row in space.kubectl.table("get", "pods"):
        assert row["RESTARTS"] == "0", row
    services = {row["NAME"]: row for row in space.kubectl.table("get", "services")}
    for name in NAMES:
        assert services[name]["PORT(S)"] == "2380/TCP,2379/TCP"
        assert services[name]["TYPE"] == "ClusterIP"
    pods, cluster_id = space.pods(document), assert_consistent(space, document)
    assert_nothing_doubled(space, document)

    space.kubectl("delete", "-f", manifest)
    space.wait_no_pods()
    with Members(deadline=0.5) as members:
        answers = members.reports(pods)
    # Another cluster may have got one of the addresses.
    assert not [each for each in answers if each.status.cluster_id == cluster_id], answers
    wait_until(lambda: not space.names(resources.SERVICES), "all services are deleted")
    assert "example-etcd-cluster" not in space.kubectl("get", "etcdclusters.coreos.com", check=False)


def all_run(space: Space) -> bool:
    """Whether kubectl shows all members as the documents do: the kubelet may be later than etcd."""
    rows = space.kubectl.table("get", "pods")
    is_running = all((row["READY"], row["STATUS"]) == ("1/1", "Running") for row in rows)
    return is_running and sorted(row["NAME"] for row in rows) == NAMES


@pytest.mark.walkthrough("CoreOS README", "Create and destroy an etcd cluster")
def test_the_nodeport_service_of_the_documents_reaches_etcd(space: Space) -> None:
    document = ephemeral()
    space.kubectl("create", "-f", EXAMPLE)
    space.kubectl("create", "-f", NODEPORT)
    space.wait_serving(document)

    service = space.kubectl.json("get", "service", "example-etcd-cluster-client-service")
    node_port = service["spec"]["ports"][0]["nodePort"]
    addresses = space.kubectl.json("get", "nodes")["items"][0]["status"]["addresses"]
    host = next(each["address"] for each in addresses if each["type"] == "InternalIP")
    endpoints = f"--endpoints=http://{host}:{node_port}"
    # Services follow their pods later.
    put = (endpoints, "put", "foo", "bar")
    wait_until(lambda: etcdctl(space.testbed, *put).stdout.strip() == "OK", "a key is put")
    assert etcdctl(space.testbed, endpoints, "get", "foo").stdout.split() == ["foo", "bar"]


def test_writes_through_all_members_are_kept_and_a_settled_cluster_is_left_alone(space: Space) -> None:
    document = space.created(ephemeral())
    rounds = itertools.count()

    def quorum_loss_of_a_round() -> float:
        with (
            QuorumWatch(lambda: space.addresses(document)) as quorum,
            Writer(lambda: space.addresses(document), prefix=f"round-{next(rounds)}") as writer,
        ):
            writer.go_on(50)
            space.wait_settled(document)
            assert_at_rest(space, 12)
        writer.verify()
        return max(quorum.losses, default=0.0)

    assert_at_most(0.0, quorum_loss_of_a_round, "seconds without a quorum, though nothing was done")
    assert_consistent(space, document)


@pytest.mark.unrestricted
def test_a_client_pod_reaches_every_member_by_the_endpoints_in_status(space: Space) -> None:
    document = space.settled(ephemeral())
    endpoints = space.status(document)["endpoints"]
    assert endpoints == [f"http://{name}.{space.namespace}.svc:2379" for name in NAMES]
    start_shell(space)
    for endpoint in endpoints:
        assert "is healthy" in etcdctl_in_shell(space, "--endpoints", endpoint, "endpoint", "health")
    together = ("--endpoints", ",".join(endpoints))
    etcdctl_in_shell(space, *together, "put", "foo", "bar")
    # A client that fails over: the first endpoint is deleted before the operator has done anything.
    space.kubectl("delete", "pod", NAMES[0], "--wait=false", "--grace-period=1")
    assert etcdctl_in_shell(space, *together, "get", "foo").split() == ["foo", "bar"]


def test_many_clusters_in_many_namespaces_are_served_at_once(make_space: Callable[[], Space]) -> None:
    """Same names everywhere; each its own cluster with its own ID."""
    spaces = [make_space() for _ in range(3)]
    made = [(space, space.create(ephemeral(name, size=1))) for space in spaces for name in ("one", "two")]
    for space, document in made:
        space.wait_serving(document)
    assert len({assert_consistent(space, document) for space, document in made}) == 6
