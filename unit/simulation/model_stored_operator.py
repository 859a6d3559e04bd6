"""What an operator of the model world knows of EtcdBackups and of the Job of a seed.

See `recovery.stored_backups`.
"""

from dataclasses import dataclass
from typing import ClassVar

from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts, CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.job_state import JobState
from unit.simulation.model_operator import KINDS, Operator
from unit.simulation.model_stored import Stored

STORED_KINDS = ("backups", "jobs")
WAITED = 100.0
"""Seconds for which a Job that does not start is waited for in each pass."""


def stored_facts(found: Stored) -> CompletedBackup:
    """As the status of an EtcdBackup has it."""
    report = found.backup.report
    return CompletedBackup(
        name=report.name,
        uid=found.uid,
        cluster_id=report.cluster_id,
        revision=report.revision,
        etcd_version=report.etcd_version,
        sha256=report.sha256,
        time=report.time,
        age=60,
        url=f"s3://b/{report.name}",
        size=20512,
        spec={},
        is_damaged=found.is_known_damaged,
    )


@dataclass
class StoredOperator(Operator):
    """With the caches of EtcdBackups and Jobs. waited: for the start of the Job with this token."""

    kinds: ClassVar[tuple[str, ...]] = (*KINDS, *STORED_KINDS)
    waited: tuple[str, float] = ("", 0.0)

    def backups_of(self, state: ClusterState) -> BackupFacts:
        persisted, token = state.persisted, state.desired.token
        is_closed = self.cache["services"].get("db", token) != token
        may_restore = not state.has_quorum or persisted.is_recovering or state.desired.restore_in_place
        if not persisted.is_bootstrapped or not may_restore:
            return BackupFacts(job=self._job(state), is_closed=is_closed)
        stored = tuple(stored_facts(found) for found in self.cache["backups"].values())
        return BackupFacts(is_listed=True, stored=stored, job=self._job(state), is_closed=is_closed)

    def _job(self, state: ClusterState) -> JobState | None:
        recovery = state.persisted.recovery
        if recovery is None or recovery.stored_backup is None:
            return None
        seed, job = state.by_name.get(recovery.seed), self.cache["jobs"].get(recovery.token)
        if job is None or (state.persisted.is_recovering and seed is not None and seed.peer is not None):
            return None
        token, seconds = self.waited
        self.waited = job.token, 0.0 if job.is_running or token != job.token else seconds + WAITED
        return JobState(
            name=job.token,
            end=job.end,
            is_running=job.is_running,
            is_terminating=job.is_terminating,
            waited=self.waited[1],
            claim_uid=job.claim_uid,
        )
