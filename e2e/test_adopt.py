"""Members of ours join an etcd cluster that runs already, and take its place, while a client writes."""

from collections.abc import Callable
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.external import External, external
from e2e.support.resizing import kind_of, settle
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import LONG, wait_until
from e2e.support.writer import Writer
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.values import MemberList


def listed(address: str) -> MemberList:
    """The member list of a quorum, from the member at that address."""
    channels = Channels()
    try:
        return EtcdClient(channels, f"{address}:2379", deadline=LONG).member_list(linearizable=True)
    finally:
        channels.close()


def members_of(address: str) -> list[str]:
    """The names of the members."""
    return sorted(member.name for member in listed(address).members)


def is_finished(space: Space, document: Document) -> bool:
    return bool(space.status(document).get("adoption", {}).get("finished"))


def of_all(space: Space, theirs: External, document: Document) -> Callable[[], list[str]]:
    """The addresses of the members that there are, as a function."""

    def addresses() -> list[str]:
        ours = space.addresses(document)
        return ours if is_finished(space, document) else [*theirs.addresses(), *ours]

    return addresses


def adopted(space: Space, theirs: External, document: Document) -> Writer:
    """Adopt a cluster while a client writes to whatever member there is."""
    with Writer(of_all(space, theirs, document), per_second=50.0) as writer:
        wait_until(lambda: writer.acknowledged > 10, LONG, "the external members take writes")
        before = listed(theirs.addresses()[0]).cluster_id
        space.create(document)
        wait_until(
            lambda: is_finished(space, document),
            LONG,
            lambda: f"the adoption is finished: {space.status(document)}",
        )
        settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before
    print(f"{writer.acknowledged} writes acknowledged, longest gap {writer.longest_gap:.2f} s")
    return writer


@pytest.mark.capability("adopt")
def test_the_documents_boot_member_is_replaced(space: Space) -> None:
    theirs = external(space, 1)
    endpoint = f"http://{theirs.addresses()[0]}:2379"
    document = ephemeral(version="3.6.16", selfHosted={"bootMemberClientEndpoint": endpoint})

    adopted(space, theirs, document)
    assert_at_rest(space, 10)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(ephemeral, id="ephemeral", marks=pytest.mark.long),
        pytest.param(persistent, id="persistent"),
    ],
)
def test_a_cluster_of_three_is_adopted(space: Space, kind: Any) -> None:
    theirs = external(space, 3)
    adopted(space, theirs, kind(version="3.6.16", adopt={"endpoints": theirs.endpoints}))


@pytest.mark.long
@pytest.mark.parametrize("kind", [ephemeral, persistent], ids=["ephemeral", "persistent"])
def test_an_adoption_is_stopped_and_turned_back(space: Space, kind: Any) -> None:
    """The external members are left as they were, with every write."""
    theirs = external(space, 3)
    with Writer(theirs.addresses, per_second=50.0) as writer:
        wait_until(lambda: writer.acknowledged > 10, LONG, "the external members take writes")
        document = kind(version="3.6.16", adopt={"endpoints": theirs.endpoints, "mode": "Join"})
        space.create(document)
        wait_until(lambda: progress(space, document) == "Joined", LONG, lambda: str(space.status(document)))
        assert len(members_of(theirs.addresses()[0])) == 6

        space.kubectl("patch", kind_of(document), document["metadata"]["name"], *TURN_BACK)
        wait_until(
            lambda: progress(space, document) == "TurnedBack", LONG, lambda: str(space.status(document))
        )
        assert members_of(theirs.addresses()[0]) == theirs.names
        space.kubectl("delete", kind_of(document), document["metadata"]["name"])
    writer.verify()
    print(f"{writer.acknowledged} writes acknowledged, longest gap {writer.longest_gap:.2f} s")


@pytest.mark.long
def test_an_adoption_goes_on_after_its_resource_was_created_again(space: Space) -> None:
    """Until ours are back on their claims, the external members have no quorum."""
    theirs = external(space, 3)
    document = persistent(version="3.6.16", adopt={"endpoints": theirs.endpoints, "mode": "Join"})
    space.create(document)
    wait_until(lambda: progress(space, document) == "Joined", LONG, lambda: str(space.status(document)))
    before = listed(theirs.addresses()[0]).cluster_id
    with Writer(of_all(space, theirs, document), per_second=50.0) as writer:
        wait_until(lambda: writer.acknowledged > 10, LONG, "the six members take writes")
        space.kubectl("delete", kind_of(document), document["metadata"]["name"])
        space.create(document)
        wait_until(lambda: progress(space, document) == "Joined", LONG, lambda: str(space.status(document)))
        assert len(members_of(theirs.addresses()[0])) == 6
        joined = writer.acknowledged
        wait_until(lambda: writer.acknowledged > joined + 10, LONG, "the six members take writes again")
        space.kubectl("patch", kind_of(document), document["metadata"]["name"], *COMPLETE)
        wait_until(lambda: is_finished(space, document), LONG, lambda: str(space.status(document)))
        settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before


COMPLETE = ("--type=merge", "--patch", '{"spec":{"adopt":{"mode":"Complete"}}}')
TURN_BACK = ("--type=merge", "--patch", '{"spec":{"adopt":{"mode":"Leave"}}}')


def progress(space: Space, document: Document) -> str:
    """The reason of the condition Progressing."""
    found = condition(space.stored(document), "Progressing")
    return str(found.get("reason", ""))
