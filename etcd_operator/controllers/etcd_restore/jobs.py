"""A Job of an EtcdRestore and its pods, as values."""

from collections.abc import Iterable
from dataclasses import dataclass

from etcd_operator.api.restores import CLAIM_UID_ANNOTATION, EtcdRestore
from etcd_operator.controllers.etcd_backup.decide.result import LONGEST_MESSAGE
from etcd_operator.controllers.etcd_restore.decide import result
from etcd_operator.controllers.etcd_restore.decide.result import RestoreReport
from etcd_operator.controllers.etcd_restore.decide.state import Evictions, JobState
from etcd_operator.controllers.etcd_restore.manifests.restore_job import CHECK_CONTAINER, CONTAINER
from etcd_operator.controllers.etcd_restore.progress import ProgressReader
from etcd_operator.controllers.shared.decide.job_end import JobEnd
from etcd_operator.controllers.shared.jobs import JobCaches, end_of, live_pods
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ContainerStatus, Job, Pod, StateReason
from etcd_operator.pods.reports import Progress


@dataclass(frozen=True, kw_only=True)
class JobReader:
    """Reads Jobs from the caches, and live what seems to be missing where a decision rests on it."""

    caches: JobCaches[EtcdRestore]
    waits: Waits
    progress: ProgressReader | None = None

    def read(self, key: Key, uid: str, name: str, objects: Objects) -> JobState | None:
        """The Job of this name of the EtcdRestore with this UID; anybody else's is none."""
        job = self.caches.jobs.store.get(Key(key.namespace, name))
        if job is None:
            job = objects.find(resources.JOBS, name, Job)
        if job is None or job.metadata.controller_uid != uid:
            return None
        pods = self.caches.pods_of(job.metadata)
        if end_of(job)[0] is not JobEnd.RUNS and _report_of(pods) is None:
            pods = live_pods(job, objects)
        return self._state(key, job, pods)

    def cached(self, key: Key, uid: str, name: str) -> JobState | None:
        """The same where nothing rests on its absence, nor on what it reports: from the caches alone."""
        job = self.caches.jobs.store.get(Key(key.namespace, name))
        if job is None or job.metadata.controller_uid != uid:
            return None
        return self._state(key, job, self.caches.pods_of(job.metadata))

    def _state(self, key: Key, job: Job, pods: tuple[Pod, ...]) -> JobState:
        is_running = any(_is_running(pod) for pod in pods)
        what = _to_run(job.metadata.uid)
        if is_running:
            self.waits.end(key, what)
        end, message = end_of(job)
        if end is JobEnd.RUNS and _has_succeeded(pods):
            end = JobEnd.SUCCEEDED
        return JobState(
            name=job.metadata.name,
            uid=job.metadata.uid,
            end=end,
            is_terminating=job.metadata.is_deleting,
            is_running=is_running,
            waited=0.0 if is_running else self.waits.seconds(key, what),
            waits_for=_waits_for(job, pods),
            report=_report_of(pods),
            why=_why(pods) or message,
            progress=self._progress(key, pods),
            claim_uid=job.metadata.annotations.get(CLAIM_UID_ANNOTATION, ""),
            pod=pods[-1].metadata.name if pods else "",
            node=pods[-1].spec.node_name if pods else "",
            evictions=_evictions(pods),
        )

    def in_turn(self, key: Key, jobs: Iterable[JobState]) -> None:
        """One of them runs: on a volume for one node the others wait for it, and are not late."""
        for job in jobs:
            self.waits.end(key, _to_run(job.uid))

    def _progress(self, key: Key, pods: tuple[Pod, ...]) -> Progress | None:
        """Of the newest pod, while its command runs."""
        container = _container(pods[-1]) if pods else None
        if self.progress is None or container is None or container.state.running is None:
            return None
        return self.progress.of(key, pods[-1])

    def forget(self, key: Key) -> None:
        """Nothing is restored any more."""
        self.waits.forget(key)
        if self.progress is not None:
            self.progress.forget(key)


def _to_run(uid: str) -> str:
    return f"{uid} to run"


def _container(pod: Pod) -> ContainerStatus | None:
    return pod.container(CHECK_CONTAINER, CONTAINER)


def _ended(pod: Pod) -> StateReason | None:
    return pod.ended(CHECK_CONTAINER, CONTAINER)


def _is_running(pod: Pod) -> bool:
    """Whether its command runs, or has just succeeded, on a node that has not been given up."""
    container = _container(pod)
    if container is None or pod.metadata.is_deleting:
        return False
    ended = container.state.terminated
    return container.state.running is not None or (ended is not None and ended.exit_code == 0)


def _has_succeeded(pods: tuple[Pod, ...]) -> bool:
    """Whether the command of the newest pod has ended with 0, and a report that names no error.

    A container that has ended never runs again. Kubernetes notes the end of the pod, and then that of its
    Job, seconds later.
    """
    ended = _ended(pods[-1]) if pods else None
    if ended is None or ended.exit_code != 0:
        return False
    report = result.read(ended.message)
    return report is not None and not report.error


def _report_of(pods: tuple[Pod, ...]) -> RestoreReport | None:
    """What the newest pod that reported has reported."""
    for pod in reversed(pods):
        ended = _ended(pod)
        report = result.read(ended.message) if ended is not None else None
        if report is not None:
            return report
    return None


def _why(pods: tuple[Pod, ...]) -> str:
    """How the newest pod failed, as Kubernetes reports it."""
    if not pods:
        return ""
    status, ended = pods[-1].status, _ended(pods[-1])
    reason = (ended.reason if ended is not None else "") or status.reason
    return ": ".join(filter(None, (reason if reason != "Error" else "", status.message)))


def _waits_for(job: Job, pods: tuple[Pod, ...]) -> str:
    """Why nothing of a Job runs."""
    if not pods:
        return f"its pod does not exist yet, see `kubectl describe job {job.metadata.name}`"
    pod = pods[-1]
    if _is_evicted(pod):
        return f"the pod {pod.metadata.name} was evicted: {_eviction_message(pod)}; waiting for the next one"
    states = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return pod.waits_for(*states) or f"waiting for the pod {pod.metadata.name} to start"


def _evictions(pods: tuple[Pod, ...]) -> Evictions | None:
    """The pods that a kubelet ended to get room on its node; Kubernetes keeps them as long as their Job."""
    found = [pod for pod in pods if _is_evicted(pod)]
    if not found:
        return None
    last = found[-1]
    return Evictions(
        count=len(found), pod=last.metadata.name, node=last.spec.node_name, message=_eviction_message(last)
    )


def _is_evicted(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.status.reason == "Evicted"


def _eviction_message(pod: Pod) -> str:
    """The kubelet's message, as a part of a sentence."""
    return pod.status.message.rstrip(" .")[:LONGEST_MESSAGE] or "the kubelet gives no reason"
