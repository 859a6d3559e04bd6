"""Members of ours join an etcd cluster that runs already, and take its place, while a client writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.external import External, external
from e2e.support.members import Members
from e2e.support.resizing import kind_of, settle
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import LONG
from e2e.support.writer import Writer
from etcd_operator.etcd.values import MemberList


def listed(address: str) -> MemberList:
    """The member list of a quorum, from the member at that address."""
    with Members(deadline=LONG) as members:
        return members.client(address).member_list(linearizable=True)


def members_of(address: str) -> list[str]:
    """The names of the members."""
    return sorted(member.name for member in listed(address).members)


def is_finished(space: Space, document: Document) -> bool:
    return bool(space.status(document).get("adoption", {}).get("finished"))


def writer_to(space: Space, theirs: External, document: Document) -> Writer:
    """A client of whatever members there are."""

    def addresses() -> list[str]:
        ours = space.addresses(document)
        return ours if is_finished(space, document) else [*theirs.addresses(), *ours]

    return Writer(addresses, per_second=50.0)


@contextmanager
def adopted(space: Space, theirs: External, document: Document) -> Iterator[None]:
    """Adopt a cluster while a client writes; what happens in the `with` happens right after the beginning."""
    with writer_to(space, theirs, document) as writer:
        writer.go_on()
        before = listed(theirs.addresses()[0]).cluster_id
        space.create(document)
        yield
        space.wait_for(document, lambda: is_finished(space, document), "the adoption is finished")
        settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before


@pytest.mark.capability("adopt")
def test_the_documents_boot_member_is_replaced(space: Space) -> None:
    theirs = external(space, 1)
    endpoint = f"http://{theirs.addresses()[0]}:2379"
    document = ephemeral(version="3.6.16", selfHosted={"bootMemberClientEndpoint": endpoint})

    with adopted(space, theirs, document):
        pass
    assert_at_rest(space, 10)


@each_kind(ephemerals=pytest.mark.long)
def test_a_cluster_of_three_is_adopted(space: Space, kind: Any) -> None:
    theirs = external(space, 3)
    with adopted(space, theirs, kind(version="3.6.16", adopt={"endpoints": theirs.endpoints})):
        pass


@pytest.mark.long
@each_kind()
def test_an_adoption_is_stopped_and_turned_back(space: Space, kind: Any) -> None:
    """The external members are left as they were, with every write."""
    theirs = external(space, 3)
    with Writer(theirs.addresses, per_second=50.0) as writer:
        writer.go_on()
        document = kind(version="3.6.16", adopt={"endpoints": theirs.endpoints, "mode": "Join"})
        space.create(document)
        wait_progress(space, document, "Joined")
        assert len(members_of(theirs.addresses()[0])) == 6

        space.kubectl("patch", kind_of(document), document["metadata"]["name"], *TURN_BACK)
        wait_progress(space, document, "TurnedBack")
        assert members_of(theirs.addresses()[0]) == theirs.names
        space.kubectl("delete", kind_of(document), document["metadata"]["name"])
    writer.verify()


@pytest.mark.long
def test_an_adoption_goes_on_after_its_resource_was_created_again(space: Space) -> None:
    """Until ours are back on their claims, the external members have no quorum."""
    theirs = external(space, 3)
    document = persistent(version="3.6.16", adopt={"endpoints": theirs.endpoints, "mode": "Join"})
    space.create(document)
    wait_progress(space, document, "Joined")
    before = listed(theirs.addresses()[0]).cluster_id
    with writer_to(space, theirs, document) as writer:
        writer.go_on()
        space.kubectl("delete", kind_of(document), document["metadata"]["name"])
        space.create(document)
        wait_progress(space, document, "Joined")
        assert len(members_of(theirs.addresses()[0])) == 6
        writer.go_on()
        space.kubectl("patch", kind_of(document), document["metadata"]["name"], *COMPLETE)
        space.wait_for(document, lambda: is_finished(space, document), "the adoption is finished")
        settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before


COMPLETE = ("--type=merge", "--patch", '{"spec":{"adopt":{"mode":"Complete"}}}')
TURN_BACK = ("--type=merge", "--patch", '{"spec":{"adopt":{"mode":"Leave"}}}')


def wait_progress(space: Space, document: Document, reason: str) -> None:
    """Wait for the reason of the condition Progressing."""
    space.wait_for(
        document, lambda: condition(space.stored(document), "Progressing")["reason"] == reason, reason
    )
