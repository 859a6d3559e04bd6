"""The fields of pods that the operator reads, and nothing else (see `views`)."""

from typing import Any

import msgspec

from etcd_operator.api.meta import Lean, Value, condition_of
from etcd_operator.kube.views import PodCondition, true_condition

OOM_KILLED = "OOMKilled"
"""Kubernetes' word for the end of a container for lack of memory."""


BACK_OFF = "CrashLoopBackOff"
"""Kubernetes' word for a container that ended, and is started again after a pause."""


class StateReason(Value, frozen=True, kw_only=True):
    """Why a container waits, or has ended and when; `message` is the end of its log where it failed."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: str = ""


class Running(Value, frozen=True, kw_only=True):
    """Since when a container runs; empty where the kubelet does not report it."""

    started_at: str = ""


class ContainerState(Value, frozen=True, kw_only=True):
    """At most one of the three is set."""

    waiting: StateReason | None = None
    running: Running | None = None
    terminated: StateReason | None = None


class ContainerStatus(Value, frozen=True, kw_only=True):
    """A container as the kubelet sees it."""

    name: str
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Value, frozen=True, kw_only=True):
    """A pod's status."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class Volume(Value, frozen=True, kw_only=True):
    """A volume of a pod; only claims and Secrets are read, also those of projected volumes."""

    persistent_volume_claim: dict[str, Any] | None = None
    secret: dict[str, Any] | None = None
    projected: dict[str, Any] | None = None


class EphemeralContainer(Value, frozen=True, kw_only=True):
    """A container that was added to a running pod."""

    name: str


class Resources(Value, frozen=True, kw_only=True):
    """The limits of a container."""

    limits: dict[str, Any] = {}


class Container(Value, frozen=True, kw_only=True):
    """How much a container may use."""

    name: str
    resources: Resources = Resources()


class PodSpec(Value, frozen=True, kw_only=True):
    """Where a pod runs, under which name, on which claims, its readiness gates, and what was added to it."""

    node_name: str = ""
    hostname: str = ""
    volumes: tuple[Volume, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[dict[str, str], ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()


class Pod(Lean, frozen=True, kw_only=True):
    """A pod: of a member, a Job or a backup tool."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def container(self, *names: str) -> ContainerStatus | None:
        """The status of the first container with one of these names; None without one."""
        return next((each for each in self.status.container_statuses if each.name in names), None)

    def init_container(self, name: str) -> ContainerStatus | None:
        """The same of an init container."""
        return next((each for each in self.status.init_container_statuses if each.name == name), None)

    def ended(self, *names: str) -> StateReason | None:
        """How the first container or init container with one of these names has ended, if it has."""
        statuses = (*self.status.container_statuses, *self.status.init_container_statuses)
        found = next((each for each in statuses if each.name in names), None)
        return found.state.terminated if found is not None else None

    def waits_for(self, *containers: ContainerStatus) -> str:
        """What the first of these containers that reports so waits for, or why the pod has no node."""
        for each in containers:
            waiting = each.state.waiting
            if waiting is not None and waiting.reason == BACK_OFF and (memory := self.out_of_memory(each)):
                return f"{OOM_KILLED}: {memory}"
            if waiting is not None and waiting.message:
                return f"{waiting.reason}: {waiting.message}"
        unscheduled = self.unscheduled
        return f"{unscheduled.reason}: {unscheduled.message}" if unscheduled is not None else ""

    def out_of_memory(self, status: ContainerStatus) -> str:
        """That the last process of a container was killed for lack of memory; empty if it was not."""
        ended = status.state.terminated or status.last_state.terminated
        if ended is None or ended.reason != OOM_KILLED:
            return ""
        found = (*self.spec.containers, *self.spec.init_containers)
        limits = next((each.resources.limits for each in found if each.name == status.name), {})
        limit = limits.get("memory")
        if limit is None:
            return f"the container {status.name} was killed: its node ran out of memory"
        return f"the container {status.name} was killed: it reached its memory limit of {limit}"

    @property
    def is_ready(self) -> bool:
        """Its `Ready` condition."""
        return true_condition(self.status.conditions, "Ready") is not None

    @property
    def is_finished(self) -> bool:
        """Whether none of its containers will ever run again."""
        return self.status.phase in ("Failed", "Succeeded")

    @property
    def unscheduled(self) -> PodCondition | None:
        """Why it has no node; None if it has one."""
        found = condition_of(self.status.conditions, "PodScheduled")
        return found if found is not None and found.status == "False" else None

    @property
    def claims(self) -> frozenset[str]:
        """The names of the claims that it uses."""
        sources = (volume.persistent_volume_claim for volume in self.spec.volumes)
        return frozenset(source.get("claimName", "") for source in sources if source is not None)
