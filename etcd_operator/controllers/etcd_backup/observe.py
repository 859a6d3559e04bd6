"""Joins the caches into one `BackupState`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from etcd_operator.api.backups import BackupSpec, EtcdBackup
from etcd_operator.api.meta import Condition, ObjectMeta, condition_of
from etcd_operator.controllers.etcd_backup.decide import result
from etcd_operator.controllers.etcd_backup.decide.plan import NOT_STARTED, gives_up_source, rests_on_absence
from etcd_operator.controllers.etcd_backup.decide.spec import problem, rendered_url
from etcd_operator.controllers.etcd_backup.decide.state import (
    COMPLETED,
    BackupJobState,
    BackupPodState,
    BackupState,
    SourceCluster,
)
from etcd_operator.controllers.etcd_backup.decide.status import COMPLETE, VERIFIED
from etcd_operator.controllers.etcd_backup.manifests.backup_job import CONTAINER, VERIFY_CONTAINER, job_name
from etcd_operator.controllers.etcd_backup.source import Sources
from etcd_operator.controllers.shared.jobs import JobCaches, end_of, live_pods
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.decoding import parsed
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ContainerStatus, Job, Pod


@dataclass(frozen=True, kw_only=True)
class ObservedBackup:
    """An EtcdBackup as stored, its spec (None for an invalid one), and its state."""

    key: Key
    backup: EtcdBackup
    spec: BackupSpec | None
    state: BackupState


@dataclass(frozen=True, kw_only=True)
class BackupObserver:
    """Observes EtcdBackups, from the caches.

    What seems to be missing is read from the API server where a decision rests on that: a Job, the end or the
    start of its pod, the cluster.
    """

    caches: JobCaches[EtcdBackup]
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
        if state.is_to_be_verified or not state.is_final:
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
        return replace(
            state,
            is_job_recorded=bool(recorded),
            stopped=_stopped(verdict),
            message=verdict.message if verdict is not None else "",
            job=self._job(key, backup, objects, is_verification=about == VERIFIED),
        )

    def _job(
        self, key: Key, backup: EtcdBackup, objects: Objects, *, is_verification: bool
    ) -> BackupJobState | None:
        """The Job that was made for this very EtcdBackup; anybody else's of that name is none."""
        name = job_name(backup.metadata, is_verification=is_verification)
        found = self.caches.jobs.store.get(Key(key.namespace, name))
        if found is None and backup.status.phase:
            found = objects.find(resources.JOBS, name, Job)  # not in a cache is not absent
        if found is None or found.metadata.controller_uid != backup.metadata.uid:
            return None
        state = self._job_state(key, found, self.caches.pods_of(found.metadata))
        if not rests_on_absence(state):
            return state
        return self._job_state(key, found, live_pods(found, objects))

    def _job_state(self, key: Key, job: Job, pods: Iterable[Pod]) -> BackupJobState:
        end, message = end_of(job)
        state = BackupJobState(
            name=job.metadata.name,
            uid=job.metadata.uid,
            end=end,
            message=message,
            is_terminating=job.metadata.is_deleting,
            age=self.waits.seconds(key, job.metadata.uid),
            pods=tuple(map(pod_state, pods)),
        )
        if not state.is_stopping:
            return state
        return replace(state, stopping=self.waits.seconds(key, f"{job.metadata.uid} to stop"))


def pod_state(pod: Pod) -> BackupPodState:
    """What Kubernetes reports of the pod of a backup, and what its command reported."""
    container = pod.container(CONTAINER, VERIFY_CONTAINER)
    ended = container.state.terminated if container is not None else None
    return BackupPodState(
        name=pod.metadata.name,
        has_started=container is not None and (ended is not None or container.state.running is not None),
        is_terminating=pod.metadata.is_deleting,
        has_failed=pod.status.phase == "Failed",
        waits_for=_waits_for(pod, container),
        exit_code=ended.exit_code if ended is not None else None,
        reason=(ended.reason if ended is not None else "") or pod.status.reason,
        message=pod.status.message,
        report=result.read(ended.message) if ended is not None else None,
    )


def _waits_for(pod: Pod, container: ContainerStatus | None) -> str:
    own = (container,) if container is not None else ()
    why = pod.waits_for(*own, *pod.status.init_container_statuses)
    if why or container is None or container.state.waiting is None:
        return why
    return f"{container.state.waiting.reason}, see `kubectl describe pod {pod.metadata.name}`"


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
