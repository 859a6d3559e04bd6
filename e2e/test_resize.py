"""Growing, shrinking and replacing members while a client writes, as the documents show it."""

import threading
import time
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.measuring import assert_at_most
from e2e.support.members import MORE_THAN_APPLIED, Members
from e2e.support.newcomers import newcomers
from e2e.support.proxy import put_whole
from e2e.support.resizing import (
    GAP_SECONDS,
    assert_claims_are_their_members,
    gap_while,
    members_of,
    resize,
    scale,
    settle,
    sized,
    written_to,
)
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until
from e2e.support.writer import KEYS, Writer
from etcd_operator.kube import resources


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((3, 5, 3, 1, 3), id="3-5-3-1-3"),
        pytest.param((1, 3, 5, 7, 5, 3, 1), id="from-one-to-seven", marks=pytest.mark.long),
    ],
)
@each_kind()
def test_no_acknowledged_write_is_lost_while_a_cluster_grows_and_shrinks(
    space: Space, kind: Any, sizes: tuple[int, ...]
) -> None:
    untouched = space.settled(kind(name="untouched"))
    document = space.settled(sized(kind(name="resized"), sizes[0]))
    before = assert_consistent(space, document)

    def change(writer: Writer) -> None:
        for size in sizes[1:]:
            resize(space, document, size)
            writer.go_on(2 * KEYS)

    gap = gap_while(space, document, untouched, change)
    assert_at_most(GAP_SECONDS, gap, "seconds without a write, which an untouched cluster took")
    assert assert_consistent(space, document) == before
    assert_at_rest(space, 10)


@each_kind(persistents=pytest.mark.long)
def test_a_member_joins_a_cluster_with_a_long_log_in_which_nobody_writes(space: Space, kind: Any) -> None:
    """etcd lets it wait for the next entry (decision 036), after a request that is lost for 7 s."""
    document = space.settled(sized(kind(), 1))
    with Members() as members:
        [address] = space.addresses(document)
        members.client(address).append_nothing(MORE_THAN_APPLIED, within=LONG)

    begin = time.monotonic()
    resize(space, document, 2)
    print(f"joined after {time.monotonic() - begin:.1f} s")


@each_kind()
def test_new_connections_reach_no_learner_and_no_member_that_stops(space: Space, kind: Any) -> None:
    document = space.settled(kind(version="3.5.34"))
    size = "size" if "size" in document["spec"] else "replicas"
    with newcomers(space, document) as client:
        for change in ({size: 5}, {"version": "3.5.35"}, {size: 3}):
            began = time.monotonic()
            client.go_on()
            document = {**document, "spec": {**document["spec"], **change}}
            space.kubectl.apply(document)
            settle(space, document)
            client.go_on()
            print(f"{change}: {time.monotonic() - began:.1f} s, {client.done()} requests so far")
        failed = client.failures()
    assert not failed, failed


@pytest.mark.capability("resize")
@pytest.mark.walkthrough("CoreOS README", "Resize an etcd cluster")
def test_the_documents_resize_by_whole_object_puts_leaves_the_listed_pods(space: Space) -> None:
    document = space.settled(ephemeral())
    for size, numbers in ((5, range(5)), (3, range(2, 5))):
        body: Document = {**document, "spec": {"size": size}}
        body["metadata"] = {**document["metadata"], "namespace": space.namespace}
        put_whole(space.kubectl, space.namespace, body)
        settle(space, body)
        assert members_of(space, body) == [f"example-etcd-cluster-{number:04}" for number in numbers]
    services = space.names(resources.SERVICES, "etcd_cluster=example-etcd-cluster")
    assert services == ["example-etcd-cluster", *members_of(space, body)]


@pytest.mark.capability("replace a lost member")
@pytest.mark.walkthrough("CoreOS README", "Member recovery")
def test_a_deleted_pod_is_replaced_by_the_next_number_and_nothing_is_lost(space: Space) -> None:
    document = space.settled(ephemeral())
    with written_to(space, document):
        space.kubectl("delete", "pod", "example-etcd-cluster-0000", "--now")
        expected = [f"example-etcd-cluster-{number:04}" for number in (1, 2, 3)]
        wait_until(lambda: members_of(space, document) == expected, "0003 takes the place of 0000")
        settle(space, document)


def test_a_lost_claim_is_healed_by_a_new_member_of_the_same_number(space: Space) -> None:
    document = space.settled(persistent())
    before = uid_of(space, "my-cluster-1")
    with written_to(space, document):
        space.kubectl("delete", "pvc", "my-cluster-1", "--wait=false")
        space.kubectl("delete", "pod", "-l", "etcd.improbable.io/peer-name=my-cluster-1", "--wait=false")
        wait_until(lambda: uid_of(space, "my-cluster-1") not in ("", before), "the member has a new claim")
        settle(space, document)
    assert members_of(space, document) == ["my-cluster-0", "my-cluster-1", "my-cluster-2"]


def uid_of(space: Space, claim: str) -> str:
    found = space.api.get(resources.CLAIMS, space.namespace, claim)
    return str(found["metadata"]["uid"]) if found is not None else ""


@pytest.mark.parametrize(
    "waits",
    [
        pytest.param((1.0,), id="once"),  # the length of one step: the next edit comes in the middle of it
        pytest.param((0.3, 0.7, 1.5, 3.0), id="many-times", marks=pytest.mark.long),
    ],
)
@each_kind()
def test_sizes_edited_while_a_change_is_under_way_end_at_the_last_one(
    space: Space, kind: Any, waits: tuple[float, ...]
) -> None:
    document = space.settled(kind(name="hasty"))
    pause = threading.Event()
    with written_to(space, document):
        for wait in waits:
            for size in (1, 3, 5, 3, 5):
                document = scale(space, document, size)
                pause.wait(wait)
            settle(space, document)
            if kind is persistent:
                assert_claims_are_their_members(space, document)
