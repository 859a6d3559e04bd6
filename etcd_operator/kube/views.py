"""The fields of built-in objects that the operator reads, and nothing else.

Decoding only these costs a few MiB per thousand pods where typed clients cost eighty, and
an unknown field can never be lost, because views are never written back.
"""

from typing import Any

import msgspec

from etcd_operator.api.meta import Lean, ObjectMeta, Stored, Value, condition_of
from etcd_operator.decoding import from_json


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


class CertificateCondition(PodCondition, frozen=True, kw_only=True):
    """A condition of a Certificate."""

    observed_generation: int = 0  # of the spec that it is about; 0 if cert-manager does not say


class CertificateStatus(Value, frozen=True, kw_only=True):
    """What cert-manager says of a Certificate."""

    conditions: tuple[CertificateCondition, ...] = ()


class Certificate(Value, frozen=True, kw_only=True):
    """A Certificate of cert-manager; `spec` is kept raw, to be compared with the rendered one."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: CertificateStatus = CertificateStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its Secret has what it asks for now."""
        found = condition_of(self.status.conditions, "Ready")
        is_current = found is not None and found.observed_generation in (0, self.metadata.generation)
        return found is not None and found.status == "True" and is_current

    @property
    def failure(self) -> CertificateCondition | None:
        """Why the last request to the issuer failed; None if it did not."""
        found = condition_of(self.status.conditions, "Issuing")
        return found if found is not None and found.status == "False" and found.reason == "Failed" else None
