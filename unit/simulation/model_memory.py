"""What a process of the model world remembers from pass to pass, by the reducers of the real operator."""

from dataclasses import dataclass, field

from etcd_operator.controllers.etcd_cluster.decide.fact import extended
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import (
    Missing,
    Moment,
    Serving,
    count_missed,
    count_served,
    missed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.inquiry import Inquiry, inquire, known_backups
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import NO_TOOL_BACKUPS, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import Resource
from unit.simulation.model_backups import Questions

PASS = 4.0
"""Seconds between two passes."""

SERVED = 1200.0
"""Seconds between two passes of a cluster that serves after an automatic recovery."""


@dataclass
class Memory:
    """Of one process."""

    missing: Missing | None = None
    serving: Serving | None = None
    inquiry: Inquiry | None = None
    questions: Questions = field(default_factory=Questions)
    passes: int = 0

    def counted(self, state: ClusterState) -> ClusterState:
        """As `recovery.absences` does, with a clock for each of the two."""
        self.passes += 1
        now, later = (Moment(epoch=0, monotonic=self.passes * gap, time="then") for gap in (PASS, SERVED))
        self.missing, absence = count_missed(self.missing, state, now, may_count=True)
        self.serving, served_for = count_served(self.serving, state, later)
        return extended(state, missed, absence=absence, served_for=served_for)

    def tool_backups(self, state: ClusterState, resource: Resource) -> ToolBackups:
        """As `recovery.tool_backups` does."""
        self.inquiry, is_anew = inquire(self.inquiry, state, self.questions.report)
        if is_anew:
            self.questions = Questions()
        if self.inquiry is None or not resource.keeps_backups:
            return NO_TOOL_BACKUPS
        self.questions.ask(state.persisted.cluster_id)
        found = known_backups(
            self.inquiry,
            state,
            self.questions.report,
            is_answered=not self.questions.problem,
            problem=self.questions.problem,
            waited=self.questions.waited,
            recorded=resource.backup_revision,
        )
        self.questions.wait()
        return found
