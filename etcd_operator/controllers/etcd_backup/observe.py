"""Joins the caches into one `BackupState`."""

from dataclasses import dataclass, replace

from etcd_operator.api.backups import COMPLETE, COMPLETED, VERIFIED, BackupSpec, EtcdBackup
from etcd_operator.api.meta import Condition, ObjectMeta, condition_of
from etcd_operator.controllers.etcd_backup.decide.plan import NOT_STARTED, gives_up_source, rests_on_absence
from etcd_operator.controllers.etcd_backup.decide.state import BackupState, SourceCluster
from etcd_operator.controllers.etcd_backup.manifests.backup_job import job_name
from etcd_operator.controllers.etcd_backup.source import Sources
from etcd_operator.controllers.shared.decide.backup_spec import problem, rendered_url
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.decoding import parsed
from etcd_operator.keys import Key


@dataclass(frozen=True, kw_only=True)
class ObservedBackup:
    """An EtcdBackup as stored, and its state."""

    key: Key
    backup: EtcdBackup
    spec: BackupSpec | None  # None for an invalid one
    state: BackupState


@dataclass(frozen=True, kw_only=True)
class BackupObserver:
    """Observes EtcdBackups, from the caches.

    What seems to be missing is read from the API server where a decision rests on that: a Job, the end or the
    start of its pod, the cluster.
    """

    jobs: JobReader
    sources: Sources
    waits: Waits

    def observe(self, key: Key, backup: EtcdBackup, objects: Objects) -> ObservedBackup:
        """The observed state of one EtcdBackup. objects: reads live. Raises the errors of `Client`."""
        spec, wrong = parsed(backup.spec, BackupSpec, problem)
        status = backup.status
        state = BackupState(
            phase=status.phase,
            is_deleting=backup.metadata.is_deleting,
            problem=wrong,
            url=status.url or _url(spec, backup.metadata),
            source=self.sources.find(spec.source, key.namespace) if spec else SourceCluster(),
            waited=self.waits.seconds(key, f"{backup.metadata.uid} {status.phase == COMPLETED}"),
            verify=_level(spec, backup),
            has_verdict=status.verification is not None and bool(status.verification.completion_time),
            sha256=status.sha256,
            etcd_version=status.etcd_version,
        )
        if state.phase and (state.is_to_be_verified or not state.is_final):
            state = self._with_job(key, backup, state, objects)
        if not state.is_final and spec is not None and gives_up_source(state):
            state = replace(state, source=self.sources.find_live(spec.source, objects))
        return ObservedBackup(key=key, backup=backup, spec=spec, state=state)

    def _with_job(self, key: Key, backup: EtcdBackup, state: BackupState, objects: Objects) -> BackupState:
        """The same, with the Job that stores the backup, or that verifies it."""
        verification = backup.status.verification
        if state.is_to_be_verified and verification is not None:
            recorded, about = verification.job_name, VERIFIED
        else:
            recorded, about = backup.status.job_name, COMPLETE
        verdict = condition_of(backup.status.conditions, about)
        name = job_name(backup.metadata, is_verification=about == VERIFIED)
        return replace(
            state,
            is_job_recorded=bool(recorded),
            stopped=_stopped(verdict),
            message=verdict.message if verdict is not None else "",
            job=self.jobs.read(key, backup.metadata.uid, name, objects, is_in_doubt=rests_on_absence),
        )


def _url(spec: BackupSpec | None, metadata: ObjectMeta) -> str:
    return rendered_url(spec.destination.object_url_template, metadata) if spec is not None else ""


def _level(spec: BackupSpec | None, backup: EtcdBackup) -> str:
    """How it is to be verified: of a stored backup, as its status requests."""
    if backup.status.phase != COMPLETED:
        return (spec.verify or "") if spec is not None else ""
    verification = backup.status.verification
    return verification.level if verification is not None else ""


def _stopped(verdict: Condition | None) -> tuple[str, str]:
    """Why the operator stopped the Job, as it wrote before."""
    if verdict is None or verdict.reason != NOT_STARTED:
        return "", ""
    return verdict.reason, verdict.message
