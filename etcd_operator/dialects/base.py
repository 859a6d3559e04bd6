"""What every dialect can do, and what all of them read in the same way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.core.actions import Plan
from etcd_operator.core.desired import DesiredCluster, PersistedState
from etcd_operator.core.kinds.protocol import Kind
from etcd_operator.core.starts import Start
from etcd_operator.core.state import ClusterState
from etcd_operator.core.versions import parse_version
from etcd_operator.decoding import convert
from etcd_operator.errors import InvalidSpec

Spec = TypeVar("Spec")


class Resource(Protocol):
    """A stored cluster resource of either group."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""
        ...

    @property
    def status(self) -> Value:
        """Its status, of the group's own shape."""
        ...


Cluster_contra = TypeVar("Cluster_contra", bound=Resource, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What the operator's settings decide for all clusters.

    repository: of etcd's images, without tag. version: for specs that name none.
    """

    repository: str
    version: str


class Dialect(Protocol[Cluster_contra]):
    """One API group: resource in, objects and status out. Pure."""

    def desired(self, cluster: Cluster_contra) -> DesiredCluster:
        """What the resource asks for; what is wrong with it is in `problem`, never raised."""
        ...

    def status(self, cluster: Cluster_contra, state: ClusterState, plan: Plan, *, now: str) -> RawObject:
        """The whole status as written; `now` is RFC 3339."""
        ...

    def member_host(self, cluster: DesiredCluster, name: str) -> str:
        """The DNS name under which peers reach a member."""
        ...

    def member_at(self, cluster: DesiredCluster, host: str) -> str:
        """The member that peers reach under a host name; empty for an unknown member's."""
        ...

    def member_labels(self, cluster: DesiredCluster, name: str) -> dict[str, str]:
        """By which a member's pod and claim are known: to caches, and to what selects them."""
        ...

    def client_service(self, cluster: DesiredCluster) -> RawObject:
        """The address for clients."""
        ...

    def member_service(self, cluster: DesiredCluster, name: str) -> RawObject:
        """The address of one member."""
        ...

    def budget(self, cluster: DesiredCluster, min_available: int) -> RawObject:
        """The disruption budget over all members."""
        ...

    @property
    def pod_keys(self) -> PodKeys:
        """The names of what is written on members' pods."""
        ...

    @property
    def route_label(self) -> str:
        """The label without which the Service for clients does not select a pod, and nothing else differs."""
        ...

    def member(self, cluster: DesiredCluster, name: str, start: Start) -> RawObject:
        """The object that runs a member: a Pod or an EtcdPeer."""
        ...


def desired_of(
    metadata: ObjectMeta,
    asked: Callable[[], dict[str, Any]],
    *,
    api_version: str,
    kind: Kind,
    persisted: PersistedState,
    conditions: tuple[Condition, ...] = (),
    cluster_version: str | None = None,
) -> DesiredCluster:
    """The cluster that a resource asks for.

    asked: reads the spec into fields of DesiredCluster; the InvalidSpec it raises becomes `problem`.
    conditions, cluster_version: those last written.
    """
    try:
        fields = asked()
    except InvalidSpec as error:
        fields = {"size": 0, "repository": "", "version": "", "problem": str(error)}
    return DesiredCluster(
        api_version=api_version,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        created=metadata.creation_timestamp,
        kind=kind,
        persisted=persisted,
        unavailable_since=unavailable_since(conditions),
        cluster_version=cluster_version,
        is_deleting=metadata.deletion_timestamp is not None,
        **fields,
    )


def parse_spec(raw: dict[str, Any], kind: type[Spec]) -> Spec:
    """Read a raw spec. Raises InvalidSpec with one sentence naming the field."""
    try:
        return convert(raw, kind)
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"spec: {error}") from error


def version_for(defaults: Defaults, version: str) -> str:
    """The version of etcd without `v`; the default for an empty one. Raises InvalidSpec."""
    return str(parse_version(version or defaults.version))


def persisted_fields(persisted: PersistedState, *, now: str) -> dict[str, Any]:
    """The operator's memory as the status types of both groups spell it."""
    upgrade = persisted.upgrade
    if upgrade is not None and not upgrade.since:
        upgrade = msgspec.structs.replace(upgrade, since=now)
    return {
        "bootstrap": persisted.bootstrap,
        "cluster_id": persisted.cluster_id,
        "recovery": persisted.recovery,
        "upgrade": upgrade,
    }


def unavailable_since(conditions: tuple[Condition, ...]) -> str:
    """Since when a status says that its cluster does not answer; empty while it says that it does."""
    found = next((c for c in conditions if c.type == "Available" and c.status == "False"), None)
    return found.last_transition_time if found is not None else ""
