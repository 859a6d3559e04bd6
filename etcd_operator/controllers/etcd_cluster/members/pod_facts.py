"""The pods of members turned into the facts that rules read. Pure."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import Value, condition_of
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.shared_keys import LOADED_ANNOTATION, RESTARTING_ANNOTATION, STOPPED_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.members import FetchedBackup, PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS, Serving
from etcd_operator.controllers.etcd_cluster.manifests.options import peers_of, serving_of
from etcd_operator.controllers.etcd_cluster.manifests.steps import FETCH, SKIP_STEPS
from etcd_operator.controllers.etcd_cluster.manifests.survivor_reader import READER
from etcd_operator.controllers.etcd_cluster.members.etcd_log import (
    BROKEN_DATA,
    NEVER_LET_IN,
    NO_DATA,
    NO_RIGHTS,
    QUOTED,
    failure_tail,
    found_nothing,
    last_failure,
    reports,
)
from etcd_operator.controllers.shared.manifests.pod import ETCD_CONTAINER
from etcd_operator.decoding import reported
from etcd_operator.formats import instant, moment, seconds_of, timestamp
from etcd_operator.kube.pod_views import (
    BACK_OFF,
    OOM_KILLED,
    ContainerState,
    ContainerStatus,
    Pod,
    StateReason,
)
from etcd_operator.pods.reports import FOLLOWED_A_LEADER


class _StepReport(Value, frozen=True, kw_only=True):
    """As `etcd-operator seed` writes it."""

    name: str = ""
    time: str = ""
    revision: int = 0
    sha256: str = ""
    error: str = ""


def has_fetched(pod: Pod) -> bool:
    """Whether the first step of a seed has ended well (see `manifests.steps`)."""
    ended = pod.ended(FETCH)
    return ended is not None and ended.reason == "Completed"


def fetched_by(pod: Pod, now: datetime) -> FetchedBackup | None:
    """What the first step of a seed reported, if it has fetched a backup (see `commands.seed`)."""
    ended = pod.ended(FETCH)
    report = reported(ended.message, _StepReport) if ended is not None else None
    if report is None or not report.name:
        return None
    return FetchedBackup(
        name=report.name,
        time=report.time,
        revision=report.revision,
        sha256=report.sha256,
        age=max(0, int((now - instant(report.time)).total_seconds())) if report.time else 0,
    )


def failure_of(pod: Pod) -> str:
    """Why the first step of a seed failed, as it reported it; empty where it reports nothing."""
    step = pod.init_container(FETCH)
    ended = (step.state.terminated or step.last_state.terminated) if step is not None else None
    report = reported(ended.message, _StepReport) if ended is not None else None
    return report.error[:QUOTED] if report is not None else ""


KEYS = (coreos.POD_KEYS, improbable.POD_KEYS)

_REFUSAL = PodProblem(
    reason="DataLost", message="etcd refuses to start: its data directory is empty, which it was not before"
)

PASSING_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons that every start goes through."""

SCHEDULING_GRACE = timedelta(seconds=5)
"""A pod is unschedulable for a moment while its claim is bound; only later is it a problem."""

LOST_NODE_GRACE = timedelta(seconds=60)
"""How long a node may be silent before ephemeral members on it are given up."""

CLIENTS_RETURN = timedelta(seconds=2)
"""How old a process must be for clients to have reconnected to it.

A gRPC client that loses a member tries again after 1 s, then after 1.6 s more (each give or take a fifth,
gRPC's connection back-off). The kubelet reports whole seconds, so it is 1 to 2 s in fact.
"""

NOT_ITS_OWN = (
    "the volume does not belong to the user that etcd runs as, probably because its storage class does not "
    "apply fsGroup: its data is not touched; see 'User that etcd runs as' in docs/operations.md"
)


def pod_facts(pod: Pod, *, now: datetime) -> PodFacts:
    """What matters of a member's pod."""
    status = pod.container(ETCD_CONTAINER)
    state = status.state if status is not None else ContainerState()
    has_ended = status is not None and (status.restart_count > 0 or state.terminated is not None)
    keys = _keys_of(pod)
    is_existing_only = keys is not None and keys.is_existing_only(pod.metadata.annotations)
    has_no_data = status is not None and found_nothing(status, is_existing_only=is_existing_only)
    return PodFacts(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        ip=pod.status.pod_ip,
        is_running=state.running is not None,
        has_run=state.running is not None or has_ended,
        restarts=status.restart_count if status is not None else 0,
        has_restarted=has_ended,
        is_finished=pod.is_finished,
        is_on_lost_node=state.running is not None and _is_forsaken(pod, now),
        node=pod.spec.node_name if now - instant(pod.metadata.creation_timestamp) > LOST_NODE_GRACE else "",
        is_assigned=bool(pod.spec.node_name),
        creating_for=_creating_for(pod, now),
        created=moment(pod.metadata.creation_timestamp),
        is_terminating=pod.metadata.is_deleting,
        is_gated=keys is not None,
        serves=_serves(pod, keys) if keys is not None else None,
        is_existing_only=is_existing_only,
        has_no_data=has_no_data,
        never_joined=has_never_joined(pod),
        has_broken_data=status is not None and reports(status, BROKEN_DATA),
        can_never_join=status is not None and reports(status, NEVER_LET_IN),
        has_fetched=has_fetched(pod),
        fetched=fetched_by(pod, now),
        is_final_seed=pod.metadata.annotations.items() >= SKIP_STEPS.items(),
        started_lately=_started_lately(state, now),
        problem=_REFUSAL if has_no_data and state.running is None else _problem(pod, now),
        version=pod.metadata.annotations.get(coreos.VERSION_ANNOTATION, ""),
        is_stopped=STOPPED_ANNOTATION in pod.metadata.annotations,
        is_restarting=RESTARTING_ANNOTATION in pod.metadata.annotations,
        peers=peers_of(pod.metadata.annotations, keys),
        serving=_serving(pod, keys),
        loaded=pod.metadata.annotations.get(LOADED_ANNOTATION, ""),
        reader=reader_of(pod),
    )


def reader_of(pod: Pod) -> ReaderFacts | None:
    """The last reader that was added to a pod (see `manifests.survivor_reader`); None without one."""
    added = [each for each in pod.spec.ephemeral_containers if each.name.startswith(READER)]
    if not added:
        return None
    last = added[-1]
    status = next((c for c in pod.status.ephemeral_container_statuses if c.name == last.name), None)
    state = status.state if status is not None else ContainerState()
    waits = state.waiting is not None and state.waiting.reason not in PASSING_REASONS
    return ReaderFacts(
        name=last.name,
        number=len(added),
        is_running=state.running is not None,
        has_ended=state.terminated is not None,
        found_leader=state.terminated is not None and _found_leader(pod, state.terminated),
        problem=f"{state.waiting.reason}: {state.waiting.message}" if waits and state.waiting else "",
    )


def _found_leader(pod: Pod, ended: StateReason) -> bool:
    """Whether a reader ended because its member followed a leader, in the process that runs now.

    Both times are of the same kubelet, in whole seconds.
    """
    status = pod.container(ETCD_CONTAINER)
    running = status.state.running if status is not None else None
    is_restarted = running is not None and instant(running.started_at) >= instant(ended.finished_at)
    return ended.exit_code == FOLLOWED_A_LEADER and not is_restarted


def _serving(pod: Pod, keys: PodKeys | None) -> Serving | None:
    """Without annotations a pod has no TLS, and an ephemeral one cannot have any."""
    found = serving_of(pod.metadata.annotations, keys)
    if keys == coreos.POD_KEYS:
        return found
    if found is None:
        return WITHOUT_TLS
    # One of an earlier build does not show whether it asks for certificates: if it is to, it is restarted.
    asks = found.client_cert_auth is True
    return replace(found, client_cert_auth=asks, cipher_suites=found.cipher_suites or ())


def _keys_of(pod: Pod) -> PodKeys | None:
    """By its readiness gate; None for a pod of another operator."""
    gates = {gate.get("conditionType") for gate in pod.spec.readiness_gates}
    return next((keys for keys in KEYS if keys.serves in gates), None)


def _serves(pod: Pod, keys: PodKeys) -> bool | None:
    found = condition_of(pod.status.conditions, keys.serves)
    return found.status == "True" if found is not None else None


def has_never_joined(pod: Pod) -> bool:
    """Whether the etcd of a member that is to join does not run, and its last process found no data.

    etcd asks other members only where it has no log, without which it has never followed a leader.
    """
    status, keys = pod.container(ETCD_CONTAINER), _keys_of(pod)
    if status is None or keys is None or status.state.running is not None:
        return False
    return not keys.is_existing_only(pod.metadata.annotations) and NO_DATA in failure_tail(status)


def _started_lately(state: ContainerState, now: datetime) -> bool:
    """Whether its process has just been started; by a clock that is ahead of ours nobody waits."""
    if state.running is None:
        return False
    age = now - instant(state.running.started_at)
    return timedelta(0) <= age < CLIENTS_RETURN


def _is_forsaken(pod: Pod, now: datetime) -> bool:
    """Whether its node has been silent for too long.

    The node's own controller turns Ready off when the node stops reporting, and gives no reason;
    the kubelet gives one, ReadinessGatesNotReady for a member that does not serve. A pod that was not
    ready then shows nothing: see `observe.nodes`.
    """
    ready = condition_of(pod.status.conditions, "Ready")
    if ready is None or ready.status != "False" or ready.reason or not ready.last_transition_time:
        return False
    return now - instant(ready.last_transition_time) > LOST_NODE_GRACE


def _problem(pod: Pod, now: datetime) -> PodProblem | None:
    if pod.status.phase == "Failed":
        if pod.metadata.is_deleting and not pod.status.reason:
            return None  # etcd that is stopped before it serves ends with an error
        return PodProblem(
            reason=pod.status.reason or "PodFailed", message=pod.status.message or "the pod failed"
        )
    etcd = pod.container(ETCD_CONTAINER)
    for status in (*pod.status.init_container_statuses, *((etcd,) if etcd is not None else ())):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in PASSING_REASONS:
            memory = pod.out_of_memory(status) if waiting.reason == BACK_OFF else ""
            if memory:
                return PodProblem(reason=OOM_KILLED, message=memory)
            last = failure_of(pod) or last_failure(pod)
            if last.endswith(NO_RIGHTS):
                return PodProblem(reason="PermissionDenied", message=f"{last}: {NOT_ITS_OWN}")
            message = last or waiting.message or waiting.reason
            return PodProblem(reason=waiting.reason, message=message, until=_back_off_ends(status))
    unscheduled = pod.unscheduled
    if unscheduled is not None and now - instant(pod.metadata.creation_timestamp) > SCHEDULING_GRACE:
        return PodProblem(reason=unscheduled.reason or "Unschedulable", message=unscheduled.message)
    return None


_BACKS_OFF = re.compile(r"back-off ((?:[0-9]+[hms])+) restarting")


def _back_off_ends(status: ContainerStatus) -> str:
    """When the kubelet starts a container again that it keeps waiting; empty if that is not known.

    The kubelet reports the time from the end of the last process as text only.
    """
    waiting, ended = status.state.waiting, status.last_state.terminated
    found = _BACKS_OFF.match(waiting.message) if waiting is not None else None
    if found is None or ended is None or not ended.finished_at:
        return ""
    return timestamp(instant(ended.finished_at) + timedelta(seconds=seconds_of(found[1])))


def _creating_for(pod: Pod, now: datetime) -> float:
    """For how long the kubelet has prepared a pod: volumes, Secrets, its network, the first image.

    Or for how long no node has been found for it. While the kubelet tries, it gives the reasons in Events
    only. By a clock that is ahead of ours no time has passed.
    """
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    if pod.is_finished or not all(_is_created(each) for each in statuses):
        return 0.0
    scheduled = condition_of(pod.status.conditions, "PodScheduled")
    since = scheduled.last_transition_time if scheduled is not None else ""
    return max(0.0, (now - instant(since or pod.metadata.creation_timestamp)).total_seconds())


def _is_created(status: ContainerStatus) -> bool:
    """Whether a container was never started, and is not kept from it by anything that has a name."""
    if status.state.running is not None or status.state.terminated is not None:
        return False
    waiting = status.state.waiting
    return status.restart_count == 0 and (waiting is None or waiting.reason in PASSING_REASONS)
