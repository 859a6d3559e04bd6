"""Clients of etcd that notice what must never happen: lost writes, stale reads, a lost quorum."""

import time
from dataclasses import dataclass, field
from itertools import pairwise

from e2e.support.addresses import Addresses, LookUp
from e2e.support.intervals import Interval
from e2e.support.keys import KeyClient, KeyValue
from e2e.support.members import Members
from e2e.support.pace import Paced
from e2e.support.waiting import LONG, answered, wait_until
from etcd_operator.errors import OperatorError

KEYS = 100
"""Keys in turn, so that a long scenario overwrites as well as adds."""


@dataclass
class Key:
    """What was written to one key.

    `unknown` are the numbers whose answer did not come. Each may take effect at any later time, also after a
    younger one was acknowledged: a member that hangs executes what lies in its sockets when it goes on.
    """

    acknowledged: int = -1
    revision: int = 0
    unknown: set[int] = field(default_factory=set)

    def is_explained(self, number: int, revision: int) -> bool:
        """Whether the key may hold `number`, written at `revision`, without a lost write."""
        if number == self.acknowledged:
            return revision == self.revision
        return number in self.unknown and revision > self.revision


class Writer:
    """Writes numbered keys through all members in turn and reads each back through another one.

    An answer that did not come is neither written nor unwritten: both are right afterwards. `failed`
    has the puts without one; a put is tried at one member only, where etcd's own clients try the next.
    Use it in a `with`, call `verify` after it.
    """

    def __init__(self, addresses: LookUp, *, per_second: float = 20.0, prefix: str = "writer") -> None:
        self._look_up = addresses
        self._addresses = Addresses(addresses)
        self._prefix = prefix
        self._pace = Paced(self._step, interval=1.0 / per_second, name="writer")
        self._members = Members(deadline=1.0)
        self._keys = [Key() for _ in range(KEYS)]
        self._number = 0
        self._count = 0
        self.failed: list[str] = []
        self._violations: list[str] = []
        self._moments: list[float] = []

    def __enter__(self) -> "Writer":
        self._moments.append(time.monotonic())
        self._pace.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.stop(within=LONG)
        self._moments.append(time.monotonic())

    @property
    def acknowledged(self) -> int:
        """How many writes were acknowledged by now."""
        return self._count

    @property
    def newest_key(self) -> str:
        """The key of the youngest acknowledged write; empty before the first."""
        newest = max(range(KEYS), key=lambda index: self._keys[index].acknowledged)
        return self._name(newest).decode() if self._keys[newest].acknowledged >= 0 else ""

    def go_on(self, more: int = 10) -> None:
        """Wait until so many more writes are acknowledged."""
        before = self.acknowledged
        wait_until(lambda: self.acknowledged >= before + more, f"{more} writes are acknowledged")

    def gaps(self, least: float) -> list[tuple[float, float]]:
        """The times of at least `least` seconds without an acknowledged write: begin (monotonic), length."""
        return [
            (before, after - before) for before, after in pairwise(self._moments) if after - before >= least
        ]

    @property
    def longest_gap(self) -> float:
        """The longest time without an acknowledged write, in seconds, from start to end."""
        moments = self._moments
        return max((after - before for before, after in pairwise(moments)), default=0.0)

    def verify(self) -> None:
        """Read everything back through every member: nothing acknowledged is lost, nothing went back."""
        print(f"{self.acknowledged} writes acknowledged, longest gap {self.longest_gap:.2f} s")
        assert self._count > 0, "not one write was acknowledged"
        with Members() as members:
            for address in self._look_up():
                client = members.client(address)
                for index, key in enumerate(self._keys):
                    if key.acknowledged < 0:
                        continue
                    found = _read(client, self._name(index))
                    assert found is not None, f"{self._name(index)!r} is lost (read at {address})"
                    number = int(found.value)
                    assert key.is_explained(number, found.mod_revision), (
                        f"{self._name(index)!r} is {number} of revision {found.mod_revision} at {address}; "
                        f"acknowledged: {key.acknowledged} of revision {key.revision}"
                    )
        assert not self._violations, "\n".join(self._violations)
        self._members.close()

    def _name(self, index: int) -> bytes:
        return f"{self._prefix}/{index}".encode()

    def _step(self) -> None:
        number, self._number = self._number, self._number + 1
        key = self._keys[number % KEYS]
        address = self._addresses.of(number)
        if address is None:
            return
        try:
            revision = self._members.client(address).put(self._name(number % KEYS), str(number).encode())
        except OperatorError as error:
            key.unknown.add(number)
            self.failed.append(f"{address}: {error}")
            self._addresses.refresh()
            return
        if revision <= key.revision:
            self._violations.append(f"{number} was written at revision {revision}, after {key.revision}")
        key.acknowledged, key.revision = number, revision
        self._count += 1
        self._moments.append(time.monotonic())
        self._read_back(number, key)

    def _read_back(self, number: int, key: Key) -> None:
        """A linearizable read through another member must see what has just been acknowledged."""
        address = self._addresses.of(number + 1)
        if address is None:
            return
        try:
            found = self._members.client(address).get(self._name(number % KEYS))
        except OperatorError:
            self._addresses.refresh()
            return
        if found is None or found.mod_revision < key.revision:
            self._violations.append(f"a read through {address} went back behind revision {key.revision}")


def _read(client: KeyClient, name: bytes) -> KeyValue | None:
    """A key as a quorum has it; a member that is slow, or elects, is asked again."""
    return answered(lambda: client.get(name), f"{name!r} is read")


class QuorumWatch:
    """Checks every 200 ms whether a quorum answers; `outages` are the times without, monotonic."""

    def __init__(self, addresses: LookUp) -> None:
        self._addresses = addresses
        self._known = addresses()
        self._pace = Paced(self._step, interval=0.2, name="quorum-watch")
        self._members = Members(deadline=1.0)
        self._lost_at: float | None = None
        self.outages: list[Interval] = []

    @property
    def losses(self) -> list[float]:
        """How long each outage lasted, in seconds."""
        return [outage.length for outage in self.outages]

    def __enter__(self) -> "QuorumWatch":
        self._pace.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.stop(within=LONG)
        self._note(has_quorum=True)
        self._members.close()

    def _step(self) -> None:
        began = time.monotonic()
        for address in self._known:
            if self._members.client(address).has_quorum(deadline=0.5):
                self._note(has_quorum=True)
                return
        self._note(has_quorum=False, since=began)
        try:
            self._known = self._addresses()
        except OperatorError:
            return  # the API server is away

    def _note(self, *, has_quorum: bool, since: float = 0.0) -> None:
        if has_quorum and self._lost_at is not None:
            self.outages.append(Interval(self._lost_at, time.monotonic()))
            self._lost_at = None
        elif not has_quorum and self._lost_at is None:
            self._lost_at = since
