"""A majority is lost for good: the rest is recovered (persistent: on request), and it is reported."""

import json
import time

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import Document, ephemeral, persistent, size_of
from e2e.support.members import Members
from e2e.support.resizing import RATE, resize
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import hold_for, wait_until
from e2e.support.watching import assert_compacted
from e2e.support.writer import Writer
from etcd_operator.kube import resources

NAME = "example-etcd-cluster"
KIND = "etcdclusters.coreos.com"
EVENTS = [("Warning", reason) for reason in ("QuorumLost", "RecoveryStarted", "Recovered")]


def names(*numbers: int) -> list[str]:
    return [f"{NAME}-{number:04}" for number in numbers]


def available(space: Space, document: Document) -> str:
    return str(condition(space.stored(document), "Available")["status"])


def pause(space: Space, document: Document, *, is_paused: bool) -> None:
    """Edit `spec.paused`, and wait until the operator has seen it."""
    patch = json.dumps({"spec": {"paused": is_paused}})
    space.kubectl("patch", KIND, NAME, "--type=merge", f"--patch={patch}")

    def is_seen() -> bool:
        stored = space.stored(document)
        return bool(stored["status"]["observedGeneration"] == stored["metadata"]["generation"])

    wait_until(is_seen, "the edit is seen")


def restart(space: Space, pod: str) -> None:
    """Kill the etcd in a pod: the kubelet starts another one in the same pod, on the same data."""

    def restarts() -> int:
        found = space.kubectl("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
        return int(found)

    before = restarts()
    space.testbed.fault("kill", f"{space.namespace}/{pod}")
    wait_until(lambda: restarts() > before, f"etcd in {pod} is restarted")


def lose(space: Space, document: Document, *numbers: int, restarted: int | None = None) -> None:
    """Delete pods together, and see the loss reported; then the operator may act.

    restarted: a survivor whose etcd is killed in its pod, and finds no quorum when it starts again.

    It is paused meanwhile: a leader tries for seconds to transfer its leadership, enough for the operator to
    replace the members one after the other, and no quorum would be lost.
    """
    pause(space, document, is_paused=True)
    addresses = space.addresses(document)
    space.kubectl("delete", "pod", *names(*numbers), "--wait=false")
    began = 0.0

    def is_lost() -> bool:
        nonlocal began
        began = time.monotonic()
        return not any(members.client(address).has_quorum(deadline=0.5) for address in addresses)

    with Members() as members:
        wait_until(is_lost, "the quorum is lost")
    wait_until(lambda: available(space, document) == "False", "the loss is reported")
    print(f"loss reported after {time.monotonic() - began:.2f} s")
    await_loss(space, document, *numbers)
    if restarted is not None:
        restart(space, *names(restarted))
    pause(space, document, is_paused=False)


def await_loss(space: Space, document: Document, *numbers: int) -> None:
    """Wait until these pods are deleted, and the status explains why the cluster is not available."""

    def reason() -> str:
        return str(condition(space.stored(document), "Available")["reason"])

    space.wait_for(document, lambda: reason() == "QuorumLost", "the loss is explained")
    deleted = set(names(*numbers))
    wait_until(lambda: not deleted & set(space.names(resources.PODS)), "the pods are deleted")


def await_recovered(space: Space, document: Document, *numbers: int) -> None:
    """These members (by default 0003 to 0005) replace all others."""
    began = time.monotonic()
    space.wait_for(document, lambda: available(space, document) == "True", "it serves")
    back = time.monotonic() - began
    expected = names(*(numbers or (3, 4, 5)))
    space.wait_for(
        document, lambda: [pod["metadata"]["name"] for pod in space.pods(document)] == expected, f"{expected}"
    )
    space.wait_settled(document)
    print(f"served again after {back:.2f} s, settled after {time.monotonic() - began:.2f} s")


def await_in_step(space: Space, document: Document) -> int:
    """Wait until all members have applied the same writes, so know that these are committed; the revision."""
    with Members() as members:

        def revision() -> int:
            reports = members.reports(space.pods(document))
            revisions = {each.status.revision for each in reports}
            return revisions.pop() if len(reports) == size_of(document) and len(revisions) == 1 else 0

        return wait_until(revision, "all members have the same revision")


def written(space: Space, document: Document) -> tuple[Document, str, Writer]:
    """A settled cluster, its ID, and a writer that has ended: all members know all keys as committed."""
    space.settled(document)
    before = assert_consistent(space, document)
    with Writer(lambda: space.addresses(document), per_second=RATE) as writer:
        writer.go_on(100)
    await_in_step(space, document)
    return document, before, writer


def test_two_of_three_pods_deleted_together_are_recovered_from_the_third_without_a_loss(space: Space) -> None:
    document, before, writer = written(space, ephemeral())
    lose(space, document, 0, 1)
    await_recovered(space, document)
    writer.verify()

    assert assert_consistent(space, document) != before
    status = space.status(document)
    address = space.kubectl("get", "service", NAME, "-o", "jsonpath={.spec.clusterIP}")
    assert_compacted(space, address, status["recovery"]["revision"])
    assert status["recovery"]["source"]["name"] == names(2)[0]
    assert status["recovery"]["replaces"] == before
    reported = condition(space.stored(document), "DataLossPossible")
    assert (reported["status"], names(2)[0] in reported["message"]) == ("True", True)
    space.wait_events(NAME, *EVENTS)
    assert_at_rest(space, 10)


def test_two_of_four_lost_right_after_the_fourth_was_added_are_recovered_from_the_others(
    space: Space,
) -> None:
    document = space.settled(ephemeral(size=2))
    before = assert_consistent(space, document)
    with Writer(lambda: space.addresses(document), per_second=RATE) as writer:
        document = resize(space, document, 4)
    await_in_step(space, document)
    lose(space, document, 0, 3)
    await_recovered(space, document, 4, 5, 6, 7)
    writer.verify()

    assert assert_consistent(space, document) != before
    assert space.status(document)["recovery"]["source"]["name"] in names(1, 2)


def test_a_cluster_whose_data_is_all_gone_is_left_alone_until_it_is_deleted(space: Space) -> None:
    document = space.settled(ephemeral())
    lose(space, document, 0, 1, 2)
    space.wait_condition(document, "Degraded", "NoBackup")
    hold_for(8.0, lambda: not space.pods(document), "no new cluster is bootstrapped", every=0.5)

    space.kubectl("delete", KIND, NAME)
    wait_until(lambda: space.stored(document) == {}, "the resource is deleted")
    assert_consistent(space, space.created(document))


@pytest.mark.capability("recover on request")
def test_persistent_members_are_given_up_only_by_name_and_their_claims_are_kept(space: Space) -> None:
    document, before, writer = written(space, persistent())
    lose_volumes(space, document, "my-cluster-0", "my-cluster-1")

    name = f"{before}/my-cluster-2/1"
    space.wait_for(document, lambda: name in held(space, document)["message"], "it is offered")
    assert (reported := held(space, document))["reason"] == "QuorumLost", reported
    annotate(space, f"{before}/my-cluster-1/1")
    wait_until(lambda: held(space, document)["reason"] == "RecoveryRefused", "another name is refused")
    hold_for(5.0, lambda: "recovery" not in space.status(document), "nothing is begun", every=0.5)
    assert metrics(space) == {"available": 0, "held": 1}

    began = time.monotonic()
    annotate(space, name)
    space.wait_for(document, lambda: available(space, document) == "True", "it serves")
    print(f"served again {time.monotonic() - began:.2f} s after the request")
    space.wait_for(
        document,
        lambda: space.names(resources.PEERS) == [f"my-cluster-{number}" for number in (0, 1, 3)],
        "members 0, 1 and the seed",
    )
    space.wait_settled(document)
    print(f"settled {time.monotonic() - began:.2f} s after the request")
    writer.verify()
    assert assert_consistent(space, document) != before
    status = space.status(document)
    assert status["keptClaims"] == ["my-cluster-2"]
    assert "my-cluster-2" in space.names(resources.CLAIMS)
    space.wait_events("my-cluster", ("Normal", "PVCKept"))
    space.kubectl("delete", "pvc", "my-cluster-2")
    wait_until(lambda: "keptClaims" not in space.status(document), "the kept claim is deleted")
    assert_nothing_doubled(space, document, members=[f"my-cluster-{number}" for number in (0, 1, 3)])
    assert (status["recovery"]["source"]["name"], status["recovery"]["replaces"]) == ("my-cluster-2", before)
    assert condition(space.stored(document), "DataLossPossible")["status"] == "True"
    space.wait_events("my-cluster", *EVENTS)
    assert_at_rest(space, 10)  # with the annotation still there
    assert metrics(space) == {"available": 1}
    space.kubectl("delete", "etcd", "my-cluster")
    wait_until(lambda: metrics(space) == {}, "metrics of a deleted cluster are gone")


def metrics(space: Space) -> dict[str, float]:
    """What metrics show of the cluster."""
    return space.operator.metrics("cluster", space.namespace, "my-cluster")


def held(space: Space, document: Document) -> Document:
    return condition(space.stored(document), "Degraded")


def annotate(space: Space, name: str) -> None:
    """Request a recovery."""
    request = f"etcd.improbable.io/recover={name}"
    space.kubectl("annotate", "etcdclusters.etcd.improbable.io", "my-cluster", request, "--overwrite")


def lose_volumes(space: Space, document: Document, *members: str) -> None:
    """Claims and pods are deleted together, while the operator is paused: see `lose`."""
    paused = "etcd.improbable.io/paused"
    kind = "etcdclusters.etcd.improbable.io"
    space.kubectl("annotate", kind, "my-cluster", f"{paused}=true")
    wait_until(lambda: condition(space.stored(document), "Progressing")["reason"] == "Paused", "it is paused")
    space.kubectl("delete", "pvc", *members, "--wait=false")
    of = f"etcd.improbable.io/peer-name in ({','.join(members)})"
    space.kubectl("delete", "pod", "-l", of, "--wait=false")
    wait_until(lambda: not set(members) & set(space.names(resources.CLAIMS)), "the claims are deleted")
    wait_until(lambda: available(space, document) == "False", "the loss is reported")
    space.kubectl("annotate", kind, "my-cluster", f"{paused}-")
