"""Counts for how long members have been missed, where a recovery may begin without a person.

Nothing may shorten that time. So it is in memory, by the monotonic clock of one process: another process
counts from zero. It begins again, too, whenever this process was not the leader, could not read the
EtcdCluster or all that belongs to it, or made no pass for long (`_longest_gap`); and whenever a learner shows
that a quorum which the operator does not reach has written something.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.recovery.absence import NO_ABSENCE, Absence
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import (
    committed_by_others,
    is_stabilizing,
    missed,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.errors import OperatorError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written

LONGEST_GAP = 60.0
"""Seconds between two passes; a pass that fails is repeated after 30 at most."""

LEAST_GAP = 8.0
"""Seconds that a pass of a busy operator, with a slow API server, may come later than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """at: of the last pass. since: when each member was first missed, by name; also as a time for people.

    committed: see `automatic.committed_by_others`.
    """

    epoch: int
    at: float
    committed: int
    since: dict[str, tuple[float, str]]


@dataclass(eq=False, kw_only=True)
class Absences:
    """Of the clusters of one API group; only passes over a key ask for it."""

    client: Client
    resource: Resource
    clock: Clock
    epoch: Epoch
    may_act: Callable[[], bool]
    _counts: dict[Key, _Count] = field(default_factory=dict)
    _served: dict[Key, tuple[tuple[int, str], float]] = field(default_factory=dict)

    def missed_for(self, key: Key, state: ClusterState) -> Absence:
        """For how long those have been missed that are missed now."""
        names = missed(state)
        former = self._counts.pop(key, None)
        if (
            not names
            or state.unseen is not None
            or not self.may_act()
            or not self._exists(key, state.desired.uid)
        ):
            return NO_ABSENCE
        epoch, now, committed = self.epoch(), self.clock.monotonic(), committed_by_others(state)
        longest = _longest_gap(state.desired.recovers_after or 0.0)
        known: dict[str, tuple[float, str]] = {}
        if former is not None:
            if former.epoch == epoch and now - former.at <= longest and committed <= former.committed:
                known = former.since
            committed = max(committed, former.committed)
        first = (now, timestamp(self.clock.now()))
        since_by_name = {name: known.get(name, first) for name in names}
        count = _Count(epoch=epoch, at=now, committed=committed, since=since_by_name)
        self._counts[key] = count
        last, since = max(count.since.values())
        return Absence(seconds=now - last, since=since)

    def served_for(self, key: Key, state: ClusterState) -> float:
        """Seconds for which a quorum has answered since a recovery without a person; 0 after any other."""
        recovery = state.persisted.recovery
        former = self._served.pop(key, None)
        if recovery is None or not is_stabilizing(state):
            return 0.0
        now, what = self.clock.monotonic(), (self.epoch(), recovery.token)
        since = former[1] if former is not None and former[0] == what else now
        self._served[key] = (what, since)
        return now - since

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._counts.pop(key, None)
        self._served.pop(key, None)

    def _exists(self, key: Key, uid: str) -> bool:
        """Whether the API server answers: while it does not, neither nodes nor volumes come back."""
        try:
            return self.client.get(self.resource, key, Written).metadata.uid == uid
        except OperatorError:
            return False


def _longest_gap(after: float) -> float:
    """Half of a short time: two moments of silence are not that much silence."""
    return min(LONGEST_GAP, max(LEAST_GAP, after / 2))
