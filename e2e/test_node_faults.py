"""A node of three is stopped or cut off: clients write on, and nothing acknowledged is lost."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind, ephemeral
from e2e.support.resizing import leaders_pod, member_ids, settle, written_to
from e2e.support.space import Space
from e2e.support.waiting import hold_for, wait_until
from e2e.test_backups import backed_up
from e2e.test_restores import assert_restored, completed, lose_everything, restore
from etcd_operator.kube import resources

pytestmark = [
    pytest.mark.exclusive,
    pytest.mark.long,
    pytest.mark.usefixtures("_three_nodes"),
]


@pytest.fixture
def _three_nodes(space: Space) -> Iterator[None]:
    """Three nodes or more, all of which are ready again after the test."""
    space.require_local("the nodes of this cluster are not ours to break")
    if len(space.api.all_of(resources.NODES)) < 3:
        pytest.skip("a node less needs three nodes: hack/cluster up --nodes 3")
    yield
    wait_until(lambda: all_ready(space), "all nodes are ready again")


def all_ready(space: Space) -> bool:
    """Whether all nodes are ready and without taints: those of a node that was away are removed later."""
    nodes = space.api.all_of(resources.NODES)
    conditions = [node["status"]["conditions"] for node in nodes]
    is_ready = all(c["status"] == "True" for each in conditions for c in each if c["type"] == "Ready")
    return is_ready and not any(node["spec"].get("taints") for node in nodes)


@contextmanager
def cut(space: Space, node: str) -> Iterator[None]:
    """The node without its link: what runs on it keeps running, alone."""
    space.testbed.fault("node-cut", node)
    try:
        yield
    finally:
        space.testbed.fault("node-mend", node)


@contextmanager
def stopped(space: Space, node: str) -> Iterator[None]:
    """The node as if it were switched off: no kubelet manages its pods, and their etcds end."""
    members = [
        pod["metadata"]["name"] for pod in space.api.all_of(resources.PODS, space.namespace) if on(pod, node)
    ]
    space.testbed.fault("node-stop", node)
    try:
        for name in members:
            space.testbed.fault("kill", f"{space.namespace}/{name}")
        yield
    finally:
        space.testbed.fault("node-start", node)


FAULTS = [pytest.param(cut, id="cut"), pytest.param(stopped, id="stopped")]


def on(pod: Document, node: str) -> bool:
    return bool(pod["spec"].get("nodeName") == node)


def spare_node(space: Space, document: Document) -> str:
    """The leader's node, or another one if the operator runs on that; it has no other member."""
    leader = leaders_pod(space, document)
    pods = sorted(space.pods(document), key=lambda pod: pod["metadata"]["name"] != leader)
    nodes = [pod["spec"]["nodeName"] for pod in pods]
    operators = space.api.all_of(resources.PODS, "", "app.kubernetes.io/name=etcd-operator")
    taken = {pod["spec"].get("nodeName") for pod in operators}
    spare = [node for node, count in Counter(nodes).items() if count == 1 and node not in taken]
    assert spare, f"no node has one member and no operator: members on {nodes}, operators on {taken}"
    return str(spare[0])


@pytest.mark.parametrize("fault", FAULTS)
@each_kind()
def test_a_node_that_comes_back_soon_costs_neither_a_write_nor_a_member(
    space: Space, kind: Any, fault: Any
) -> None:
    document = space.settled(kind())
    ids = member_ids(space, document)
    with written_to(space, document) as (writer,):
        writer.go_on()
        with fault(space, spare_node(space, document)):
            writer.go_on()
            space.wait_condition(document, "Degraded", "MemberUnhealthy")
            writer.go_on()
        settle(space, document)
        writer.go_on()
    assert member_ids(space, document) == ids, "a member was replaced whose data was there"


@pytest.mark.parametrize("fault", FAULTS)
def test_an_ephemeral_member_on_a_node_that_stays_away_is_replaced(space: Space, fault: Any) -> None:
    document = space.settled(ephemeral())
    with written_to(space, document) as (writer,):
        node = spare_node(space, document)
        lost = next(pod["metadata"]["name"] for pod in space.pods(document) if on(pod, node))
        with fault(space, node):
            space.wait_for(
                document,
                lambda: lost not in member_ids(space, document) and len(member_ids(space, document)) == 3,
                f"{lost} is replaced",
                every=1.0,
            )
            writer.go_on()
        settle(space, document)
        wait_until(
            lambda: lost not in space.names(resources.PODS), f"{lost} is deleted when its node is back"
        )
        writer.go_on()


def test_a_restore_waits_for_a_node_that_is_cut_off_and_ends_when_it_is_back(space: Space) -> None:
    """Its pod does not end; the other members are restored meanwhile, and nothing is given up."""
    backed_up(space)
    lose_everything(space)
    space.kubectl.create(restore("back", {"backupName": "one"}))
    node = wait_until(lambda: spare_for_restore(space), "a restore pod on a spare node", every=0.02)
    with cut(space, node):
        wait_until(lambda: restored(space) == 2, "the two others are restored")
        wait_until(lambda: not all_ready(space), "Kubernetes knows that the node is away")
        hold_for(10.0, lambda: restored(space) == 2, "nothing is given up", every=0.5)
    completed(space, "back")
    assert_restored(space, "back", 3)


def spare_for_restore(space: Space) -> str:
    """A node where a restore pod is about to run, and no operator: it is cut off before that can report."""
    operators = space.api.all_of(resources.PODS, "", "app.kubernetes.io/name=etcd-operator")
    taken = {None, *(pod["spec"].get("nodeName") for pod in operators)}
    pods = space.api.all_of(resources.PODS, space.namespace, "app.kubernetes.io/name=etcd-restore")
    nodes = [pod["spec"].get("nodeName") for pod in pods if pod["spec"]["containers"][0]["name"] == "restore"]
    return next((str(node) for node in nodes if node not in taken), "")


def restored(space: Space) -> int:
    """How many members are restored."""
    members = space.kubectl.json("get", "etcdrestore", "back")["status"].get("members", [])
    return sum(member["phase"] == "Restored" for member in members)
