"""TLS between members is added to, and removed from, a cluster while clients write."""

import time
from typing import Any

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.resizing import RATE
from e2e.support.shell import etcdctl
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from e2e.support.writer import QuorumWatch, Writer
from e2e.test_live_tls import change
from e2e.test_tls import settled

GAP_SECONDS = 6.0
"""Without a write. With two URLs of one member, some versions of etcd are without one for seven."""


PEER: Any = {"peer": {"auto": {}}}


@pytest.mark.parametrize(
    ("kind", "add"),
    [
        (ephemeral, True),
        (persistent, False),
        pytest.param(ephemeral, False, marks=pytest.mark.long),
        pytest.param(persistent, True, marks=pytest.mark.long),
    ],
)
def test_tls_between_members_is_changed_while_clients_write(space: Space, kind: Any, add: bool) -> None:
    """Not there and back: Kubernetes delays each restart of a container more that was restarted lately."""
    document = space.create(kind() if add else kind(tls=PEER))
    space.kubectl.apply(document)  # so that the next one removes what it lacks
    settled(space, document)
    before = assert_consistent(space, document)
    switch(space, document, PEER if add else None, "https" if add else "http")
    assert assert_consistent(space, document) == before


def switch(space: Space, document: Document, tls: Any, scheme: str) -> None:
    """One change, with its figures."""
    began = time.monotonic()
    with (
        QuorumWatch(lambda: space.addresses(document)) as watch,
        Writer(lambda: space.addresses(document), per_second=RATE, prefix=scheme) as writer,
    ):
        change(space, document, tls)
        wait_until(lambda: schemes(space, document) == [scheme] * 3, f"peer URLs with {scheme}")
        settled(space, document)
        seconds = time.monotonic() - began
    writer.verify()
    print(
        f"to {scheme}: {seconds:.1f} s, {writer.acknowledged} puts, {len(writer.failed)} failed, "
        f"longest gap {writer.longest_gap:.2f} s, without quorum: {[f'{loss:.1f}' for loss in watch.losses]}"
    )
    assert writer.longest_gap <= GAP_SECONDS
    assert ("tls" in space.status(document)) is bool(tls)


def schemes(space: Space, document: Document) -> list[str]:
    """Of the peer URLs in etcd's list."""
    address = space.addresses(document)[0]
    listed = etcdctl(space.testbed, f"--endpoints=http://{address}:2379", "member", "list").stdout
    return [line.split(", ")[3].partition(":")[0] for line in listed.splitlines()]
