"""What happens to three real members in the middle of a snapshot, and the backup after it.

Nothing is visible that is not whole, the error is one sentence, and the next backup works.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.archive import catalog, source
from etcd_operator.archive.catalog import State
from etcd_operator.archive.create import create
from etcd_operator.archive.errors import SourceError
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.source import Source
from etcd_operator.archive.verify import verify
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.errors import UnhealthyCluster
from etcd_operator.storage.protocol import Store
from unit.archive.samples import folder
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster
from unit.waiting import eventually

pytestmark = pytest.mark.etcd

VALUE = bytes(1 << 20)
VALUES = 32
"""More than what connections, gRPC and the pipeline hold: the member still sends when it is faulty."""

STALL = 2.0


@dataclass(frozen=True, slots=True)
class Setup:
    """Three members with data, and a folder for backups."""

    members: RealEtcdCluster
    store: Store

    def client(self, channels: Channels, name: str) -> KeyClient:
        return KeyClient(channels, self.members.endpoint(name))

    def back_up(self, name: str, fault: Callable[[Source], None] = lambda _: None) -> Manifest:
        """One backup; `fault` is called once the first chunks of the snapshot have come."""
        channels = Channels()
        try:
            chosen = source.choose(channels, self.members.endpoints)
            chunks = source.read(channels, chosen, stall=STALL)
            faulty = _with_fault(chunks, lambda: fault(chosen))
            return create(self.store, name, faulty, chosen, time=datetime.now(UTC))
        finally:
            channels.close()

    def name_of(self, chosen: Source) -> str:
        return next(each for each in self.members.names if self.members.endpoint(each) == chosen.endpoint)

    def states(self) -> dict[str, State]:
        return {entry.name: entry.state for entry in catalog.entries(self.store, "")}


def _with_fault(chunks: Iterator[bytes], fault: Callable[[], None]) -> Iterator[bytes]:
    first = [next(chunks) for _ in range(4)]
    fault()
    yield from chain(first, chunks)


def _removed(client: KeyClient, chosen: Source) -> bool:
    """etcd refuses until each member has been connected to the others for five seconds."""
    try:
        client.member_remove(chosen.status.member_id)
    except UnhealthyCluster:
        return False
    return True


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    members, channels = RealEtcdCluster(programs("3.6.16"), tmp_path), Channels()
    try:
        members.bootstrap("m0", "m1", "m2")
        client = KeyClient(channels, members.endpoint("m0"))
        eventually(lambda: client.has_quorum(deadline=1.0))
        for index in range(VALUES):
            client.put(b"%d" % index, VALUE)
        yield Setup(members, folder(tmp_path / "backups"))
    finally:
        channels.close()
        members.close()


def check_next(setup: Setup) -> None:
    """The backup after the fault has all keys."""
    manifest = setup.back_up("next.db")
    assert manifest.keys >= VALUES
    assert verify(setup.store, "next.db", KeyRing()) == manifest


def test_the_source_is_killed(setup: Setup) -> None:
    with pytest.raises(SourceError, match="broke, run the backup again"):
        setup.back_up("one.db", lambda chosen: setup.members.kill(setup.name_of(chosen)))
    assert setup.states() == {}
    check_next(setup)


def test_the_source_is_frozen(setup: Setup) -> None:
    with pytest.raises(SourceError, match=r"stopped answering, run the backup again: .* no data for 2 s"):
        setup.back_up("one.db", lambda chosen: setup.members.freeze(setup.name_of(chosen)))
    assert setup.states() == {}
    check_next(setup)


def test_the_source_is_removed(setup: Setup) -> None:
    """etcd may end before it has sent all, or after."""

    def remove(chosen: Source) -> None:
        channels = Channels()
        other = next(each for each in setup.members.names if each != setup.name_of(chosen))
        try:
            eventually(lambda: _removed(setup.client(channels, other), chosen))
        finally:
            channels.close()

    try:
        manifest = setup.back_up("one.db", remove)
    except SourceError:
        assert setup.states() == {}
    else:
        assert verify(setup.store, "one.db", KeyRing()) == manifest
    check_next(setup)


def test_the_leader_changes(setup: Setup) -> None:
    def move(_: Source) -> None:
        channels = Channels()
        try:
            statuses = {each: setup.client(channels, each).status() for each in setup.members.names}
            leader = next(each for each, status in statuses.items() if status.is_leader)
            target = next(status.member_id for each, status in statuses.items() if each != leader)
            setup.client(channels, leader).move_leader(target)
        finally:
            channels.close()

    manifest = setup.back_up("one.db", move)
    assert (manifest.keys, manifest.revision) == (VALUES, VALUES + 1)
    assert verify(setup.store, "one.db", KeyRing()) == manifest
    check_next(setup)


def test_the_database_is_compacted_and_defragmented(setup: Setup) -> None:
    """The snapshot is that of its begin: a transaction of the database keeps it."""

    def compact(chosen: Source) -> None:
        setup.members.ctl("put", "0", "new", endpoint=chosen.endpoint)
        setup.members.ctl("compact", "--physical", str(VALUES + 2), endpoint=chosen.endpoint)
        for endpoint in setup.members.endpoints:
            if endpoint != chosen.endpoint:  # there it would wait for the snapshot
                setup.members.ctl("defrag", endpoint=endpoint)

    manifest = setup.back_up("one.db", compact)
    assert (manifest.keys, manifest.revision) == (VALUES, VALUES + 1)
    assert verify(setup.store, "one.db", KeyRing()) == manifest
    after = setup.back_up("next.db")
    assert (after.keys, after.revision) == (VALUES, VALUES + 2)
