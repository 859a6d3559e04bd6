"""Puts under load, each of which can be found missing afterwards: for losses that a recovery permits."""

from itertools import count

from e2e.support.addresses import Addresses, LookUp
from e2e.support.members import Members
from e2e.support.pace import Paced
from e2e.support.resizing import RATE
from e2e.support.shell import etcdctl
from e2e.support.testbed import Testbed
from e2e.support.waiting import LONG, answered, wait_until
from etcd_operator.errors import OperatorError

BUMP = 1_000_000_000
"""What every restore adds to the revision of its source."""

PREFIX = "load/"


class Load:
    """Puts each key once, through all members in turn, and remembers what was acknowledged.

    `addresses`: see `Addresses`. `acknowledged` has the revision of each key.
    """

    def __init__(self, addresses: LookUp, *, per_second: float = RATE) -> None:
        self.acknowledged: dict[str, int] = {}
        self._addresses = Addresses(addresses)
        self._numbers = count()
        self._members = Members(deadline=1.0)
        self._pace = Paced(self._put, interval=1.0 / per_second, name="load")

    def __enter__(self) -> "Load":
        self._pace.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.stop(within=LONG)
        self._members.close()

    @property
    def newest(self) -> int:
        """The highest revision that was acknowledged; 0 before the first."""
        return max(list(self.acknowledged.values()), default=0)

    def go_on(self, more: int = 100) -> None:
        """Wait until so many more writes are acknowledged."""
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= before + more, f"{more} writes are acknowledged")

    def lost(self, revision: int) -> set[str]:
        """What a recovery from a source of this revision loses: written later, but not since."""
        return {key for key, at in self.acknowledged.items() if revision < at <= revision + BUMP}

    def judge(self, testbed: Testbed, addresses: list[str], revision: int) -> int:
        """See that every member has all but what a source of this revision lacks; how much that is."""
        expected = self.lost(revision)
        for address in addresses:
            missing = set(self.acknowledged) - stored(testbed, address)
            assert missing == expected, (
                f"{address} lacks {_shown(self.acknowledged, missing - expected)}, though the source has it; "
                f"it has {_shown(self.acknowledged, expected - missing)}, though the source lacks it "
                f"(revision {revision})"
            )
        print(f"{len(self.acknowledged)} writes acknowledged, {len(expected)} missing, all after {revision}")
        return len(expected)

    def _put(self) -> None:
        """One put. Without an answer it is unknown: may be there or not."""
        number = next(self._numbers)
        address = self._addresses.of(number)
        if address is None:
            return
        key = f"{PREFIX}{number}"
        try:
            self.acknowledged[key] = self._members.client(address).put(key.encode(), b"value")
        except OperatorError:
            self._addresses.refresh()


def stored(testbed: Testbed, address: str) -> set[str]:
    """The keys of loads that a quorum has, read through the member at that address with etcdctl."""
    get = (f"--endpoints=http://{address}:2379", "get", PREFIX, "--prefix", "--keys-only")

    def read() -> set[str]:
        done = etcdctl(testbed, *get)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    return answered(read, f"the keys are read at {address}")


def _shown(acknowledged: dict[str, int], keys: set[str]) -> dict[str, int]:
    return {key: acknowledged[key] for key in sorted(keys)[:20]}
