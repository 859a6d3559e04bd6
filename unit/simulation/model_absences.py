"""For how long an operator of the model world has missed members, as `recovery.absences` counts it."""

from dataclasses import dataclass, field, replace

from etcd_operator.controllers.etcd_cluster.decide.recovery.absence import NO_ABSENCE, Absence
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import (
    committed_by_others,
    is_stabilizing,
    missed,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

PASS = 4.0
"""Seconds between two passes."""

SERVED = 1200.0
"""Seconds between two passes of a cluster that serves after a recovery without a person."""


@dataclass
class Absences:
    """In the memory of one process. passes: in how many each member was missed, without interruption.

    committed: see `automatic.committed_by_others`.
    """

    passes: dict[str, int] = field(default_factory=dict)
    committed: int = 0
    served: tuple[str, float] = ("", 0.0)

    def of(self, state: ClusterState) -> ClusterState:
        """The state with what was counted until now."""
        committed = committed_by_others(state)
        known = self.passes if committed <= self.committed else {}
        self.passes = {name: known.get(name, -1) + 1 for name in missed(state)}
        self.committed = max(committed, self.committed) if self.passes else 0
        shortest = min(self.passes.values(), default=0)
        absence = Absence(seconds=shortest * PASS, since="then") if self.passes else NO_ABSENCE
        return replace(state, absence=absence, served_for=self._served_for(state))

    def _served_for(self, state: ClusterState) -> float:
        recovery = state.persisted.recovery
        if recovery is None or not is_stabilizing(state):
            self.served = "", 0.0
            return 0.0
        token, seconds = self.served
        self.served = recovery.token, seconds + SERVED if token == recovery.token else 0.0
        return self.served[1]
