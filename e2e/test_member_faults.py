"""Members die, hang and are deleted under a writing client: nothing acknowledged is lost.

No member is replaced whose data can come back.
"""

import time
from typing import Any

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.keys import KeyClient
from e2e.support.measuring import assert_at_most
from e2e.support.members import MORE_THAN_APPLIED, Members
from e2e.support.resizing import (
    assert_claims_are_their_members,
    leaders_pod,
    member_ids,
    members_of,
    resize,
    settle,
    written_to,
)
from e2e.support.space import Space
from e2e.support.status import is_available
from e2e.support.waiting import LONG, wait_until
from e2e.support.writer import KEYS
from etcd_operator.errors import OperatorError

REPORTED_SECONDS = 5.0
"""Until the status reports a lost quorum."""

BUSY_SECONDS = 3.0
"""More, on a machine that runs unit tests beside this one."""


@each_kind(persistents=pytest.mark.long)
def test_a_leader_that_is_killed_or_hangs_is_waited_for_and_nothing_is_lost(space: Space, kind: Any) -> None:
    space.require_local("the processes of this cluster are not ours to signal")
    document = space.settled(kind(name="led"))
    ids = member_ids(space, document)
    with written_to(space, document) as (writer,):
        writer.go_on(2 * KEYS)
        space.testbed.fault("kill", f"{space.namespace}/{leaders_pod(space, document)}")
        writer.go_on(2 * KEYS)
        space.wait_serving(document)

        frozen = leaders_pod(space, document)
        with space.frozen(frozen):
            wait_until(lambda: leaders_pod(space, document) != frozen, "another member leads")
            space.wait_condition(document, "Degraded", "MemberUnhealthy")
            writer.go_on()
        settle(space, document)
        writer.go_on(2 * KEYS)
    assert member_ids(space, document) == ids, "a member was replaced whose data was there"


@each_kind(persistents=pytest.mark.long)
def test_a_member_that_hangs_for_thousands_of_entries_takes_writes_though_nobody_else_writes(
    space: Space, kind: Any
) -> None:
    """It gets them as a raft snapshot, and refuses writes until there is another entry (decision 036)."""
    space.require_local("the processes of this cluster are not ours to signal")
    document = space.settled(kind(name="behind"))
    leader = leaders_pod(space, document)
    at = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in space.pods(document)}
    frozen = next(name for name in at if name != leader)
    with Members() as members:
        with space.frozen(frozen):
            members.client(at[leader]).append_nothing(MORE_THAN_APPLIED, within=LONG)
        behind = members.client(at[frozen])
        wait_until(lambda: accepts(behind), f"{frozen} takes writes")


def accepts(member: KeyClient) -> bool:
    try:
        member.put(b"after", b"value")
    except OperatorError as error:
        print(error)
        return False
    return True


@pytest.mark.exclusive
def test_the_status_reports_within_seconds_that_a_majority_hangs(space: Space) -> None:
    """Kubernetes notices nothing of it: no pod changes, no connection ends.

    Exclusive, because other tests would take its time, or the operator away.
    """
    space.require_local("the processes of this cluster are not ours to signal")
    document = space.settled(ephemeral(name="hung"))
    cluster_id = assert_consistent(space, document)

    def seconds_until_reported() -> float:
        settle(space, document)
        with space.frozen(*(pod["metadata"]["name"] for pod in space.pods(document)[:2])):
            began = time.monotonic()
            wait_until(lambda: not is_available(space.stored(document)), "the loss is reported")
            return time.monotonic() - began

    limit = REPORTED_SECONDS + BUSY_SECONDS
    seconds = assert_at_most(limit, seconds_until_reported, "seconds until a lost quorum was reported")
    print(f"the lost quorum was reported after {seconds:.1f} s")
    settle(space, document)
    assert assert_consistent(space, document) == cluster_id


def test_persistent_pods_deleted_one_two_and_all_come_back_on_their_data(space: Space) -> None:
    document = space.settled(persistent())
    ids = member_ids(space, document)
    with written_to(space, document) as (writer,):
        for count in (1, 2, 3):
            writer.go_on(2 * KEYS)
            pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in space.pods(document)[:count]}
            space.kubectl("delete", "pod", *pods, "--wait=false")
            wait_until(lambda old=pods: _are_replaced(space, document, old), "they are replaced")  # type: ignore[misc]
            settle(space, document)
        writer.go_on(2 * KEYS)
    assert member_ids(space, document) == ids, "a member was replaced whose data was there"
    assert_claims_are_their_members(space, document)


def _are_replaced(space: Space, document: Document, old: dict[str, str]) -> bool:
    pods = space.pods(document)
    return len(pods) == 3 and not {pod["metadata"]["uid"] for pod in pods} & set(old.values())


@pytest.mark.long
def test_ordinals_are_numbers_from_nine_to_eleven_and_back(space: Space) -> None:
    document = space.settled(persistent(replicas=9))
    with written_to(space, document):
        for size in (10, 11, 9):
            document = resize(space, document, size)
    assert members_of(space, document) == [f"my-cluster-{number}" for number in range(9)]
    assert_claims_are_their_members(space, document)
