"""Evictions that leave a quorum, and members that never bootstrap a second cluster."""

import itertools
import json
import time
from typing import Any

import pytest

from e2e.support.api import LABELS
from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, each_kind
from e2e.support.measuring import assert_at_most
from e2e.support.members import Members
from e2e.support.resizing import RATE, kind_of, member_ids, member_of, written_to
from e2e.support.space import Space
from e2e.support.testbed import TestbedError
from e2e.support.volumes import empty
from e2e.support.waiting import LONG, hold_for, wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.errors import OperatorError
from etcd_operator.kube import resources
from localcluster.kubectl import KubectlError

REFUSED = "(TooManyRequests)"
"""An eviction is refused with 429: the budget allows none, or its last change is not observed yet."""

QUORUM_SECONDS = 5.0
"""The longest loss of the quorum that evictions one by one may cost."""


def gate_of(pod: Document) -> str:
    """The pod's readiness gate: whether its member serves; empty if it is not set."""
    found = pod.get("status", {}).get("conditions", ())
    return next((str(c["status"]) for c in found if c["type"].endswith("/member-serves")), "")


def gates(space: Space, document: Document) -> dict[str, str]:
    """The readiness gate of each pod, by the pod's name."""
    return {pod["metadata"]["name"]: gate_of(pod) for pod in space.pods(document)}


def wait_all_serve(space: Space, document: Document) -> None:
    """Wait until three members serve and Kubernetes knows it."""
    space.wait_serving(document)
    wait_until(
        lambda: list(gates(space, document).values()) == ["True"] * 3,
        lambda: f"all readiness gates are True: {gates(space, document)}",
    )


def evict(space: Space, pod: str) -> bool:
    """Request an eviction as `kubectl drain` does; false if the budget refuses."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{space.namespace}/pods/{pod}/eviction"
    try:
        space.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    except KubectlError as error:
        if REFUSED not in error.stderr:
            raise
        return False
    return True


def budget_of(space: Space, document: Document) -> Document:
    found = space.api.get(resources.BUDGETS, space.namespace, document["metadata"]["name"])
    assert found is not None, "there is no disruption budget"
    return found


@each_kind(persistents=pytest.mark.capability("disruption budget"))
def test_nothing_is_evicted_while_a_member_hangs_and_afterwards_one_at_a_time(
    space: Space, kind: Any
) -> None:
    space.require_local("processes can be frozen on the local Kubernetes only")
    document = space.created(kind())
    wait_all_serve(space, document)
    assert_at_rest(space, 5)
    pods = [pod["metadata"]["name"] for pod in space.pods(document)]
    with space.frozen(pods[0]):
        wait_until(lambda: gates(space, document)[pods[0]] == "False", "the frozen one does not serve")
        # Kubelet and disruption controller follow the readiness gate: an eviction in between would succeed.
        wait_until(lambda: budget_of(space, document)["status"]["disruptionsAllowed"] == 0, "none is allowed")
        evictions = [evict(space, name) for name in pods[1:]]
        assert evictions == [False, False], evictions
    wait_all_serve(space, document)
    assert (budget := budget_of(space, document)["spec"])["minAvailable"] == 2, budget

    rounds = itertools.count()

    def quorum_loss_of_evictions() -> float:
        evicted = list(gates(space, document))
        with (
            QuorumWatch(lambda: space.addresses(document)) as quorum,
            Writer(
                lambda: space.addresses(document), per_second=RATE, prefix=f"round-{next(rounds)}"
            ) as writer,
        ):
            for name in evicted:
                wait_until(lambda name=name: evict(space, name), f"{name} may be evicted", every=0.5)  # type: ignore[misc]
            wait_until(lambda: not set(gates(space, document)) & set(evicted), "all three are replaced")
            wait_all_serve(space, document)
        writer.verify()
        return max(quorum.losses, default=0.0)

    assert_at_most(QUORUM_SECONDS, quorum_loss_of_evictions, "seconds without a quorum")
    space.wait_settled(document)
    assert_consistent(space, document)


@pytest.mark.exclusive
@each_kind()
def test_nodes_are_drained_one_after_the_other_while_clients_write(space: Space, kind: Any) -> None:
    nodes = [node["metadata"]["name"] for node in space.api.all_of(resources.NODES)]
    if len(nodes) < 3:
        pytest.skip("draining needs three nodes: hack/cluster up --nodes 3")
    document = space.created(kind())
    wait_all_serve(space, document)
    with written_to(space, document):
        for node in nodes:
            options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={LONG:g}s")
            own = f"--pod-selector={LABELS[document['apiVersion']]}={document['metadata']['name']}"
            try:
                space.kubectl("drain", node, *options, own, deadline=LONG + 30)
                assert node not in {pod["spec"].get("nodeName") for pod in space.pods(document)}
            finally:
                space.kubectl("uncordon", node)
        wait_all_serve(space, document)
    space.wait_settled(document)


@each_kind()
def test_the_budget_comes_back_when_it_is_deleted_or_edited_and_goes_with_its_cluster(
    space: Space, kind: Any
) -> None:
    document = space.created(kind())
    name, was = document["metadata"]["name"], budget_of(space, document)
    space.kubectl("delete", "poddisruptionbudget", name)
    wait_until(lambda: budget_of(space, document)["metadata"]["uid"] != was["metadata"]["uid"], "it is back")
    assert budget_of(space, document)["spec"] == was["spec"]
    space.kubectl("patch", "poddisruptionbudget", name, "--type=merge", "-p", '{"spec":{"minAvailable":0}}')
    wait_until(lambda: budget_of(space, document)["spec"] == was["spec"], "it is corrected")
    space.kubectl("delete", kind_of(document), name, f"--timeout={LONG:g}s", deadline=LONG + 30)
    space.wait_no_pods()
    wait_until(lambda: not space.names(resources.BUDGETS), "the budget is deleted, too")


def lose_data(space: Space, pods: list[Document]) -> None:
    """Empty the volumes of running members, then end their processes: they start again in place."""
    for pod in pods:
        empty(space, pod)
    for pod in pods:
        try:
            space.testbed.fault("kill", f"{space.namespace}/{pod['metadata']['name']}")
        except TestbedError as error:
            # A member without its files may have ended by itself: that is what was wanted.
            if "no running container" not in str(error):
                raise


@each_kind()
def test_two_emptied_initial_members_bootstrap_nothing_while_the_third_with_the_data_is_away(
    space: Space, kind: Any
) -> None:
    space.require_local("volumes can be emptied on the local Kubernetes only")
    document = space.created(kind())
    wait_all_serve(space, document)
    space.put(document, b"foo", b"bar")
    pods = space.pods(document)
    frozen = pods[2]["status"]["podIP"]
    with space.frozen(pods[2]["metadata"]["name"]):
        lose_data(space, pods[:2])

        def is_empty_cluster() -> bool:
            """Whether one of the two answers a client: without data it must not.

            The pods of persistent members are replaced meanwhile, and have other addresses then.
            """
            with Members(deadline=0.5) as members:
                others = [at for at in space.addresses(document) if at != frozen]
                return any(members.client(at).has_quorum(deadline=0.3) for at in others)

        # The kubelet starts them again at once and after 10 s; etcd needs 3 s to elect.
        hold_for(20, lambda: not is_empty_cluster(), "no empty cluster serves", every=0.3)
        wait_until(
            lambda: "DataLost" in space.wait_condition(document, "Degraded", "QuorumLost")["message"],
            "the status reports why two are away",
        )

    def what_is_served() -> bytes | None:
        with Members() as members:
            for address in space.addresses(document):
                try:
                    found = members.client(address).get(b"foo", serializable=True)
                except OperatorError:
                    continue
                return found.value if found is not None else b""
        return None

    served: set[bytes | None] = set()

    def has_answered() -> bool:
        served.add(what_is_served())
        return served != {None}

    wait_until(has_answered, "the third answers again")
    hold_for(5, has_answered, "it has answered", every=0.5)
    assert served <= {None, b"bar"}, served


@each_kind()
def test_a_member_whose_volume_is_emptied_under_it_is_replaced_while_clients_write(
    space: Space, kind: Any
) -> None:
    """A persistent one must not come back empty as who it was: that would forget its votes."""
    space.require_local("volumes can be emptied on the local Kubernetes only")
    document = space.settled(kind())
    wait_all_serve(space, document)
    before = member_ids(space, document)
    target = space.pods(document)[1]
    with written_to(space, document):
        began = time.monotonic()
        lose_data(space, [target])
        uid = target["metadata"]["uid"]
        space.wait_for(
            document,
            lambda: uid not in [pod["metadata"]["uid"] for pod in space.pods(document)],
            f"{member_of(target)} is replaced",
        )
        wait_all_serve(space, document)
        seconds = time.monotonic() - began
    print(f"healed in {seconds:.1f} s")
    space.wait_settled(document)
    assert member_ids(space, document).get(member_of(target)) != before[member_of(target)]
