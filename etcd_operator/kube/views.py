"""The fields of built-in objects that the operator reads, and nothing else.

Decoding only these costs a few MiB per thousand pods where typed clients cost eighty, and
an unknown field can never be lost, because views are never written back.
"""

from typing import Any

import msgspec

from etcd_operator.api.meta import Lean, ObjectMeta, Stored, Value, condition_of
from etcd_operator.decoding import from_json

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


class PodCondition(Value, frozen=True, kw_only=True):
    """A condition of a pod, a node, a ReplicaSet or a Job; its time is empty where its writer gave none."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


def true_condition(conditions: tuple[PodCondition, ...], kind: str) -> PodCondition | None:
    """The condition of that type, if it is true."""
    found = condition_of(conditions, kind)
    return found if found is not None and found.status == "True" else None


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


class Budget(Value, frozen=True, kw_only=True):
    """A disruption budget; `spec` is kept raw, to be compared with the rendered one."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}


class Isolation(Value, frozen=True, kw_only=True):
    """Which pods a NetworkPolicy selects, and for which directions."""

    pod_selector: dict[str, Any] = {}
    policy_types: tuple[str, ...] = ()


class NetworkPolicy(Stored, frozen=True, kw_only=True):
    """A NetworkPolicy. The spec of one of a cluster is kept whole, to be compared with the rendered one.

    Of all others only the fields of `Isolation` are kept: their rules may be long, and are of no interest.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_of_cluster:
            kept = msgspec.Raw(msgspec.json.encode(from_json(self.stored_spec, Isolation)))
            msgspec.structs.force_setattr(self, "stored_spec", kept)

    @property
    def is_of_cluster(self) -> bool:
        """Whether the operator made it for a cluster, of any group."""
        return any(o.controller and o.kind == "EtcdCluster" for o in self.metadata.owner_references)


class ServiceSpec(Value, frozen=True, kw_only=True):
    """What a Service selects."""

    selector: dict[str, str] = {}


class Service(Value, frozen=True, kw_only=True):
    """A Service with what it selects."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class EndpointTarget(Value, frozen=True, kw_only=True):
    """The object behind an endpoint."""

    uid: str = ""


class Endpoint(Value, frozen=True, kw_only=True):
    """Where a Service sends connections."""

    target_ref: EndpointTarget | None = None


class EndpointSlice(Value, frozen=True, kw_only=True):
    """Some of the endpoints of a Service; `endpoints` is null where there are none."""

    metadata: ObjectMeta
    endpoints: tuple[Endpoint, ...] | None = None

    @property
    def pods(self) -> frozenset[str]:
        """The UIDs of the pods behind them."""
        found = (each.target_ref for each in self.endpoints or ())
        return frozenset(target.uid for target in found if target is not None)


class ClaimStatus(Value, frozen=True, kw_only=True):
    """A claim's status."""

    phase: str = ""


class Written(Value, frozen=True, kw_only=True):
    """Any object of which only the metadata matters: a Service, or the response to a write."""

    metadata: ObjectMeta


class ClaimResources(Value, frozen=True, kw_only=True):
    """What a claim requests."""

    requests: dict[str, Any] = {}


class ClaimSpec(Value, frozen=True, kw_only=True):
    """The size of a claim, and which volumes it takes."""

    resources: ClaimResources = ClaimResources()
    storage_class_name: str | None = None


class Claim(Lean, frozen=True, kw_only=True):
    """A persistent volume claim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class Secret(Value, frozen=True, kw_only=True):
    """A Secret of the operator's own; values in base64, which no representation shows."""

    metadata: ObjectMeta
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"


class ConfigMap(Value, frozen=True, kw_only=True):
    """A ConfigMap of the operator's own."""

    metadata: ObjectMeta
    data: dict[str, str] = {}


class Conditions(Value, frozen=True, kw_only=True):
    """A status of which only the conditions matter."""

    conditions: tuple[PodCondition, ...] = ()


class Node(Value, frozen=True, kw_only=True):
    """A node: whether it is ready."""

    status: Conditions = Conditions()

    @property
    def is_ready(self) -> bool:
        """Its `Ready` condition, as the control plane reports it."""
        return true_condition(self.status.conditions, "Ready") is not None


class ReplicaSetSpec(Value, frozen=True, kw_only=True):
    """How many pods a ReplicaSet is to have."""

    replicas: int = 1


class ReplicaSet(Value, frozen=True, kw_only=True):
    """A ReplicaSet; its condition `ReplicaFailure` explains why no pod can be created."""

    metadata: ObjectMeta
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: Conditions = Conditions()

    @property
    def failure(self) -> PodCondition | None:
        """Why it cannot make its pod: quota, admission, missing rights; None if it can."""
        return true_condition(self.status.conditions, "ReplicaFailure")


class EventSeen(Value, frozen=True, kw_only=True):
    """An Event that another controller wrote."""

    metadata: ObjectMeta
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


class JobSpec(Value, frozen=True, kw_only=True):
    """Whether a Job has to wait."""

    suspend: bool = False


class Job(Lean, frozen=True, kw_only=True):
    """A Job: by its conditions `Complete` and `Failed`, whether it has ended, and how."""

    spec: JobSpec = JobSpec()
    status: Conditions = Conditions()
