"""Growing, shrinking and replacing members while a client writes, as the documents show it."""

import threading
import time
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.measuring import assert_at_most
from e2e.support.members import MORE_THAN_APPLIED, Members
from e2e.support.proxy import put_whole
from e2e.support.resizing import (
    GAP_SECONDS,
    RATE,
    assert_claims_are_their_members,
    gap_while,
    members_of,
    resize,
    scale,
    settle,
    sized,
)
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until
from e2e.support.writer import Writer
from etcd_operator.kube import resources

KINDS = [pytest.param(ephemeral, id="ephemeral"), pytest.param(persistent, id="persistent")]


@pytest.mark.parametrize("kind", KINDS)
def test_no_acknowledged_write_is_lost_while_a_cluster_grows_and_shrinks(space: Space, kind: Any) -> None:
    untouched, document = space.created(kind(name="untouched")), space.created(kind(name="resized"))
    for each in (untouched, document):
        settle(space, each)
    before = assert_consistent(space, document)

    def change(_: Writer) -> None:
        for size in (5, 3, 1, 3):
            resize(space, document, size)

    gap = gap_while(space, document, untouched, change)
    assert_at_most(GAP_SECONDS, gap, "seconds without a write, which an untouched cluster took")
    assert assert_consistent(space, document) == before
    assert_at_rest(space, 10)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(ephemeral, id="ephemeral"),
        pytest.param(persistent, id="persistent", marks=pytest.mark.long),
    ],
)
def test_a_member_joins_a_cluster_with_a_long_log_in_which_nobody_writes(space: Space, kind: Any) -> None:
    """etcd lets it wait for the next entry (decision 036), after a request that is lost for 7 s."""
    document = space.created(sized(kind(), 1))
    settle(space, document)
    with Members() as members:
        [address] = space.addresses(document)
        members.client(address).append_nothing(MORE_THAN_APPLIED, within=LONG)

    begin = time.monotonic()
    resize(space, document, 2)
    print(f"joined after {time.monotonic() - begin:.1f} s")


@pytest.mark.capability("resize")
@pytest.mark.walkthrough("CoreOS README", "Resize an etcd cluster")
def test_the_documents_resize_by_whole_object_puts_leaves_the_listed_pods(space: Space) -> None:
    document = space.created(ephemeral())
    settle(space, document)
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
    document = space.created(ephemeral())
    settle(space, document)
    with Writer(lambda: space.addresses(document), per_second=RATE) as writer:
        space.kubectl("delete", "pod", "example-etcd-cluster-0000", "--now")
        expected = [f"example-etcd-cluster-{number:04}" for number in (1, 2, 3)]
        wait_until(lambda: members_of(space, document) == expected, LONG, "0003 takes the place of 0000")
        settle(space, document)
    writer.verify()

    assert_consistent(space, document)


def test_scaling_down_removes_the_highest_claims_and_keeps_the_others(space: Space) -> None:
    document = space.created(persistent())
    settle(space, document)
    document = resize(space, document, 1)

    selector = "etcd.improbable.io/cluster-name=my-cluster"
    wait_until(
        lambda: space.names(resources.CLAIMS, selector) == ["my-cluster-0"], LONG, "two claims are removed"
    )
    assert space.names(resources.PEERS, selector) == ["my-cluster-0"]
    space.wait_events(
        "my-cluster", *[("Normal", each) for each in ("MemberRemoved", "PeerRemoved", "PVCRemoved")]
    )


def test_a_lost_claim_is_healed_by_a_new_member_of_the_same_number(space: Space) -> None:
    document = space.created(persistent())
    settle(space, document)
    before = space.api.all_of(resources.CLAIMS, space.namespace)
    with Writer(lambda: space.addresses(document), per_second=RATE) as writer:
        space.kubectl("delete", "pvc", "my-cluster-1", "--wait=false")
        space.kubectl("delete", "pod", "-l", "etcd.improbable.io/peer-name=my-cluster-1", "--wait=false")

        def is_new() -> bool:
            uids = {c["metadata"]["name"]: c["metadata"]["uid"] for c in before}
            now = space.api.all_of(resources.CLAIMS, space.namespace)
            return any(
                c["metadata"]["name"] == "my-cluster-1" and c["metadata"]["uid"] != uids["my-cluster-1"]
                for c in now
            )

        wait_until(is_new, LONG, "the member has a new claim")
        settle(space, document)
    writer.verify()

    assert members_of(space, document) == ["my-cluster-0", "my-cluster-1", "my-cluster-2"]
    assert_consistent(space, document)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_edited_while_a_change_is_under_way_end_at_the_last_one(space: Space, kind: Any) -> None:
    document = space.created(kind(name="hasty"))
    settle(space, document)
    pause = threading.Event()
    with Writer(lambda: space.addresses(document), per_second=RATE) as writer:
        for size in (1, 3, 5, 3, 5):
            document = scale(space, document, size)
            pause.wait(1.0)  # the length of one step: the next edit comes in the middle of it
        settle(space, document)
    writer.verify()
    print(f"{writer.acknowledged} writes acknowledged, longest gap {writer.longest_gap:.2f} s")

    assert_consistent(space, document)
    if kind is persistent:
        assert_claims_are_their_members(space, document)
