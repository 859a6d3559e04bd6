"""The one reader of Jobs and their pods: for backups, verifications, restores and removals of old backups."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from etcd_operator.api.backup_schedules import PRUNE_ANNOTATION
from etcd_operator.api.backups import SECRET_ANNOTATION
from etcd_operator.api.restores import CLAIM_UID_ANNOTATION
from etcd_operator.controllers.shared.decide.job_report import LONGEST_MESSAGE, read
from etcd_operator.controllers.shared.decide.job_state import (
    LINGER,
    REFUSED_AFTER,
    Evictions,
    JobEnd,
    JobPod,
    JobState,
)
from etcd_operator.controllers.shared.jobs import JobCaches, in_order
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.errors import Forbidden
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.pod_views import ContainerStatus, Pod
from etcd_operator.kube.views import EventSeen, Job
from etcd_operator.pods.reports import Progress

CONTAINERS = ("backup", "verify", "restore")
"""The names of the containers that run a command; no pod of a Job has two of them."""

FAILED_CREATE = "FailedCreate"
"""The reason of the Event with which the Job controller reports that."""

_POD_NAME = re.compile(r'(Error creating: )?(pods "[^"]*" is forbidden: )?')

_ENDS = {"Complete": JobEnd.SUCCEEDED, "Failed": JobEnd.FAILED}


def lacks_report(job: JobState) -> bool:
    """Whether a Job has ended, and no pod was seen that reported."""
    return job.end is not JobEnd.RUNS and job.report is None


@dataclass(frozen=True, kw_only=True)
class JobReader:
    """Reads Jobs from the caches, and live what seems to be missing where a decision rests on it."""

    caches: JobCaches[Any]
    waits: Waits
    progress: Callable[[Key, Pod], Progress | None] = lambda _key, _pod: None

    def read(
        self,
        key: Key,
        uid: str,
        name: str,
        objects: Objects,
        *,
        finds: bool = True,
        is_in_doubt: Callable[[JobState], bool] = lacks_report,
    ) -> JobState | None:
        """The Job of this name of the object with this key and UID; anybody else's is none.

        finds: a Job that the caches do not show is read live. is_in_doubt: whether a decision would rest on
        pods that they do not show. Raises the errors of `Client`.
        """
        job = self.caches.jobs.store.get(Key(key.namespace, name))
        if job is None and finds:
            job = objects.find(resources.JOBS, name, Job)
        if job is None or job.metadata.controller_uid != uid:
            return None
        state = self._state(key, job, self.caches.pods_of(job.metadata))
        state = self._state(key, job, _live_pods(job, objects)) if is_in_doubt(state) else state
        is_pending = state.end is JobEnd.RUNS and not (state.pods or state.is_suspended)
        if not is_pending or state.age < REFUSED_AFTER:
            return state
        refusal = _refusal(state.uid, objects)
        return replace(state, refusal=refusal, waits_for=refusal or state.waits_for)

    def cached(self, key: Key, uid: str, name: str) -> JobState | None:
        """The same where nothing rests on its absence, nor on what it reports: from the caches alone."""
        job = self.caches.jobs.store.get(Key(key.namespace, name))
        if job is None or job.metadata.controller_uid != uid:
            return None
        return self._state(key, job, self.caches.pods_of(job.metadata))

    def in_turn(self, key: Key, jobs: Iterable[JobState]) -> None:
        """One of them runs: on a volume for one node the others wait for it, and are not late."""
        for job in jobs:
            self.waits.end(key, _to_run(job.uid))

    def forget(self, key: Key) -> None:
        """No Job of this object is waited for any more."""
        self.waits.forget(key)

    def _state(self, key: Key, job: Job, pods: tuple[Pod, ...]) -> JobState:
        state, to_run = job_state(job, pods), _to_run(job.metadata.uid)
        stopping, waited, lingering, progress = 0.0, 0.0, 0.0, None
        if state.lingers:
            lingering = self.waits.seconds(key, f"{state.pod} of {state.uid} to end")
        if state.is_stopping:
            stopping = self.waits.seconds(key, f"{state.uid} to stop")
        if state.is_running:
            self.waits.end(key, to_run)
        else:
            waited = self.waits.seconds(key, to_run)
        if state.pods and state.pods[-1].has_started and state.pods[-1].exit_code is None:
            progress = self.progress(key, pods[-1])
        age = self.waits.seconds(key, state.uid)
        return replace(
            ended_by_command(state) if lingering >= LINGER else state,
            age=age,
            stopping=stopping,
            waited=waited,
            lingering=lingering,
            progress=progress,
        )


def _to_run(uid: str) -> str:
    return f"{uid} to run"


def _live_pods(job: Job, objects: Objects) -> tuple[Pod, ...]:
    """Its pods from the API server: they may have lost their label. Raises the errors of `Client`."""
    found = objects.client.list(resources.PODS, Pod, namespace=objects.namespace).whole()
    return in_order(pod for pod in found if pod.metadata.controller_uid == job.metadata.uid)


def _refusal(uid: str, objects: Objects) -> str:
    """Why Kubernetes could not create the pod of a Job: only its Events have that. Empty if nothing is known.

    Raises the errors of `Client`, but for a missing right.
    """
    selector = f"involvedObject.uid={uid},reason={FAILED_CREATE}"
    try:
        listed = objects.client.list(
            resources.EVENTS, EventSeen, namespace=objects.namespace, field_selector=selector
        )
    except Forbidden:
        return ""
    last = max(listed.items, key=lambda event: event.last_timestamp or "", default=None)
    if last is None:
        return ""
    # The name of the pod is another one at each try.
    why = _POD_NAME.sub("", last.message)[:LONGEST_MESSAGE]
    return f"its pod cannot be created ({FAILED_CREATE}): {why}"


def job_state(job: Job, pods: Sequence[Pod]) -> JobState:
    """A Job and its pods, the oldest first, but for how long they have been observed."""
    states = tuple(map(pod_state, pods))
    end, message = _end_of(job)
    if end is JobEnd.RUNS and _has_succeeded(states):
        end = JobEnd.SUCCEEDED
    newest = pods[-1] if pods else None
    return JobState(
        name=job.metadata.name,
        uid=job.metadata.uid,
        end=end,
        message=message,
        is_terminating=job.metadata.is_deleting,
        is_suspended=job.spec.suspend,
        is_running=any(pod.is_running for pod in states),
        waits_for=_waits_for(job, newest),
        report=next((pod.report for pod in reversed(states) if pod.report is not None), None),
        why=_why(states[-1]) or message if states else message,
        claim_uid=job.metadata.annotations.get(CLAIM_UID_ANNOTATION, ""),
        request=job.metadata.annotations.get(PRUNE_ANNOTATION, ""),
        secret=job.metadata.annotations.get(SECRET_ANNOTATION, ""),
        pod=newest.metadata.name if newest is not None else "",
        node=newest.spec.node_name if newest is not None else "",
        evictions=_evictions(pods),
        pods=states,
    )


def pod_state(pod: Pod) -> JobPod:
    """What Kubernetes reports of a pod of a Job, and what its command reported."""
    container = pod.container(*CONTAINERS)
    ended = container.state.terminated if container is not None else None
    return JobPod(
        name=pod.metadata.name,
        has_started=container is not None and (ended is not None or container.state.running is not None),
        is_terminating=pod.metadata.is_deleting,
        has_failed=pod.status.phase == "Failed",
        is_finished=pod.is_finished,
        waits_for=_pod_waits_for(pod, container),
        exit_code=ended.exit_code if ended is not None else None,
        reason=(ended.reason if ended is not None else "") or pod.status.reason,
        message=(pod.out_of_memory(container) if container is not None else "") or pod.status.message,
        report=read(ended.message) if ended is not None else None,
    )


def _end_of(job: Job) -> tuple[JobEnd, str]:
    """Whether a Job has ended, and Kubernetes' message about that."""
    for condition in job.status.conditions:
        if condition.status == "True" and condition.type in _ENDS:
            return _ENDS[condition.type], condition.message
    return JobEnd.RUNS, ""


def ended_by_command(job: JobState) -> JobState:
    """The Job as if Kubernetes had noted the end of its newest pod, whose command has ended."""
    if job.end is not JobEnd.RUNS:
        return job
    return replace(job, end=JobEnd.FAILED if job.pods[-1].exit_code else JobEnd.SUCCEEDED)


def _has_succeeded(pods: Sequence[JobPod]) -> bool:
    """Whether the command of the newest pod has ended with 0, and a report that names no error.

    A container that has ended never runs again. Kubernetes notes the end of the pod, and then that of its
    Job, seconds later.
    """
    report = pods[-1].report if pods and pods[-1].exit_code == 0 else None
    return report is not None and not report.error


def _why(pod: JobPod) -> str:
    return ": ".join(filter(None, (pod.reason if pod.reason != "Error" else "", pod.message)))


def _pod_waits_for(pod: Pod, container: ContainerStatus | None) -> str:
    own = (container,) if container is not None else ()
    why = pod.waits_for(*own, *pod.status.init_container_statuses)
    if why or container is None or container.state.waiting is None:
        return why
    return f"{container.state.waiting.reason}, see `kubectl describe pod {pod.metadata.name}`"


def _waits_for(job: Job, newest: Pod | None) -> str:
    """Why nothing of a Job runs."""
    if newest is None:
        return f"its pod does not exist yet, see `kubectl describe job {job.metadata.name}`"
    if _is_evicted(newest):
        name, why = newest.metadata.name, _eviction_message(newest)
        return f"the pod {name} was evicted: {why}; waiting for the next one"
    states = (*newest.status.init_container_statuses, *newest.status.container_statuses)
    return newest.waits_for(*states) or f"waiting for the pod {newest.metadata.name} to start"


def _evictions(pods: Sequence[Pod]) -> Evictions | None:
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
