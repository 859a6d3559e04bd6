"""For how long members have been missed, a quorum has served, and an attempt to recover has been under way,
as this process has seen it.

What is counted is decided in `recovery.authority`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import (
    Missing,
    Moment,
    Serving,
    count_missed,
    count_served,
    missed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Absence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.errors import OperatorError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written


@dataclass(eq=False, kw_only=True)
class Absences:
    """Of the clusters of one API group; only passes over a key ask for it."""

    client: Client
    resource: Resource
    clock: Clock
    epoch: Epoch
    may_act: Callable[[], bool]
    _missing: dict[Key, Missing | None] = field(default_factory=dict)
    _serving: dict[Key, Serving | None] = field(default_factory=dict)
    _attempts: dict[Key, tuple[str, float]] = field(default_factory=dict)

    def missed_for(self, key: Key, state: ClusterState) -> Absence:
        """For how long those have been missed that are missed now."""
        memory = self._missing.pop(key, None)  # a pass that fails has seen nothing
        is_asked = bool(missed(state)) and state.unseen is None and self.may_act()
        may_count = is_asked and self._exists(key, state.desired.uid)
        self._missing[key], absence = count_missed(memory, state, self._now(), may_count=may_count)
        return absence

    def served_for(self, key: Key, state: ClusterState) -> float:
        """Seconds for which a quorum has answered since an automatic recovery; 0 after any other."""
        self._serving[key], seconds = count_served(self._serving.get(key), state, self._now())
        return seconds

    def attempted_for(self, key: Key, state: ClusterState) -> float:
        """Seconds for which the attempt to recover that is under way is known; 0 without one."""
        attempt, now = state.persisted.recovery_under_way, self.clock.monotonic()
        if attempt is None:
            self._attempts.pop(key, None)
            return 0.0
        token, since = self._attempts.get(key, ("", now))
        since = since if token == attempt.token else now
        self._attempts[key] = attempt.token, since
        return now - since

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._missing.pop(key, None)
        self._serving.pop(key, None)
        self._attempts.pop(key, None)

    def _now(self) -> Moment:
        now = timestamp(self.clock.now())
        return Moment(epoch=self.epoch(), monotonic=self.clock.monotonic(), time=now)

    def _exists(self, key: Key, uid: str) -> bool:
        """Whether the API server answers: while it does not, neither nodes nor volumes come back."""
        try:
            return self.client.get(self.resource, key, Written).metadata.uid == uid
        except OperatorError:
            return False
