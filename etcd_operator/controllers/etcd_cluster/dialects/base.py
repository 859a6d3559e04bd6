"""The protocol of a dialect, what all dialects share, and where the members that it describes serve."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from etcd_operator.api import cluster_spec
from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, condition_of
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.shared_keys import (
    ADOPTABLE_ANNOTATION,
    ROTATE_CLIENT_ANNOTATION,
    ROTATE_PEER_ANNOTATION,
)
from etcd_operator.api.tls import PeerMode
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt, DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.starts import Start
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ClusterResource, Defaults
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, endpoint, url
from etcd_operator.decoding import convert
from etcd_operator.errors import InvalidSpec, Unavailable
from etcd_operator.versions import parse_version

Spec = TypeVar("Spec")

Cluster_contra = TypeVar("Cluster_contra", bound=ClusterResource, contravariant=True)


class Dialect(Protocol[Cluster_contra]):
    """One API group: converts its resource to the desired state, objects and status. Pure."""

    def desired(self, cluster: Cluster_contra) -> DesiredCluster:
        """The desired state. A problem of the spec is in `problem`, never raised."""

    def status(self, cluster: Cluster_contra, state: ClusterState, plan: Plan, *, now: str) -> RawObject:
        """The complete status to write; `now` is RFC 3339."""

    def member_host(self, cluster: DesiredCluster, name: str) -> str:
        """The DNS name of a member for its peers."""

    def member_at(self, cluster: DesiredCluster, host: str) -> str:
        """The member with this host name; empty for an unknown member."""

    def member_labels(self, cluster: DesiredCluster, name: str) -> dict[str, str]:
        """The labels that identify a member's pod and claim, for caches and selectors."""

    def is_of_other_operator(self, pod: ObjectMeta) -> bool:
        """Whether a pod with the label of a cluster is that of a member which another operator created."""

    def client_selector(self, cluster: DesiredCluster) -> dict[str, str]:
        """The labels of the pods that the client Service selects."""

    def services(self, cluster: DesiredCluster) -> tuple[RawObject, ...]:
        """The Services of the whole cluster; the last one is the client Service."""

    def budget(self, cluster: DesiredCluster, min_available: int) -> RawObject:
        """The disruption budget of the cluster."""

    @property
    def pod_keys(self) -> PodKeys:
        """The keys that the operator writes on members' pods."""

    def client_label(self, cluster: DesiredCluster) -> str:
        """The label by which only the client Service selects: without it a pod gets no clients."""

    def member(self, cluster: DesiredCluster, name: str, start: Start) -> RawObject:
        """The object of a member: a Pod or an EtcdPeer."""


def desired_of(
    cluster: ClusterResource,
    read_spec: Callable[[], dict[str, Any]],
    *,
    api_version: str,
    kind: Kind,
    label: str,
    next_ordinal: int = 0,
    cluster_version: str | None = None,
) -> DesiredCluster:
    """The desired state of a resource.

    read_spec: converts the spec to fields of DesiredCluster; an InvalidSpec that it raises becomes `problem`.
    label: names the cluster on all of its objects.
    next_ordinal, cluster_version: as last written, where the status has them.
    """
    metadata, status = cluster.metadata, cluster.status
    try:
        fields = read_spec()
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
        selector=f"{label}={metadata.name}",
        persisted=PersistedState(
            bootstrap=status.bootstrap,
            cluster_id=status.cluster_id,
            next_ordinal=next_ordinal,
            recovery=status.recovery,
            upgrade=status.upgrade,
            adoption=status.adoption,
            tls=status.tls,
            auth=status.auth,
        ),
        unavailable_since=unavailable_since(status.conditions),
        available_reason=available_reason(status.conditions),
        cluster_version=cluster_version,
        rotate_peer_ca=metadata.annotations.get(ROTATE_PEER_ANNOTATION, ""),
        rotate_client_ca=metadata.annotations.get(ROTATE_CLIENT_ANNOTATION, ""),
        is_deleting=metadata.is_deleting,
        is_adoptable=ADOPTABLE_ANNOTATION in metadata.annotations,
        **fields,
    )


def parse_spec(raw: dict[str, Any], kind: type[Spec]) -> Spec:
    """Parse a raw spec. Raises InvalidSpec with one sentence that names the field."""
    try:
        return convert(raw, kind)
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"spec: {error}") from error


def adopt_of(spec: cluster_spec.Adopt | None, namespace: str) -> Adopt | None:
    """The cluster to be adopted, if any. Raises InvalidSpec for an endpoint that cannot be used."""
    if spec is None:
        return None
    at = tuple(_endpoint(url, namespace) for url in spec.endpoints)
    if not at:
        raise InvalidSpec("spec.adopt.endpoints: name the client URL of each member of the cluster")
    return Adopt(endpoints=at, mode=spec.mode)


def _endpoint(url: str, namespace: str) -> str:
    """`host:port`; a name without dots is that of a Service in the namespace of the resource."""
    if cluster_spec.ENDPOINT.fullmatch(url) is None:
        raise InvalidSpec(f"spec.adopt: the endpoint {url!r} {cluster_spec.ENDPOINT_FORM}")
    host, _, port = urlsplit(url).netloc.rpartition(":")
    is_name = "." not in host and not host.startswith("[")
    return f"{host}.{namespace}.svc:{port}" if is_name else f"{host}:{port}"


def version_for(defaults: Defaults, version: str) -> str:
    """The version of etcd without `v`; the default for an empty one. Raises InvalidSpec."""
    return str(parse_version(version or defaults.version))


def persisted_fields(persisted: PersistedState, *, now: str) -> dict[str, Any]:
    """The persisted state, as fields of the status types of both groups."""
    upgrade = persisted.upgrade
    if upgrade is not None and not upgrade.since:
        upgrade = msgspec.structs.replace(upgrade, since=now)
    return {
        "bootstrap": persisted.bootstrap,
        "cluster_id": persisted.cluster_id,
        "recovery": persisted.recovery,
        "upgrade": upgrade,
        "adoption": persisted.adoption,
        "tls": persisted.tls,
        "auth": persisted.auth,
    }


def unavailable_since(conditions: tuple[Condition, ...]) -> str:
    """When the condition Available became False; empty while it is not."""
    found = condition_of(conditions, "Available")
    return found.last_transition_time if found is not None and found.status == "False" else ""


def available_reason(conditions: tuple[Condition, ...]) -> str:
    """The reason of the condition Available; empty where it is not there yet."""
    found = condition_of(conditions, "Available")
    return found.reason if found is not None else ""


def client_endpoints(members: Iterable[Member]) -> dict[str, str]:
    """Where those members that have an address serve clients (`host:port`), by name."""
    found = {member.name: _served_at(member) for member in members}
    return {name: at for name, at in found.items() if at}


def _served_at(member: Member) -> str:
    pod = member.pod
    return endpoint(pod.ip, CLIENT_PORT) if pod is not None and pod.ip else member.endpoint


def client_endpoint(member: Member) -> str:
    """Where a member serves clients. Raises Unavailable if it has no address."""
    found = client_endpoints((member,))
    if not found:
        raise Unavailable(f"{member.name} has no address")
    return found[member.name]


def peer_url(dialect: Dialect[Any], desired: DesiredCluster, name: str, mode: PeerMode | None = None) -> str:
    """The URL under which the other members of a cluster are to reach a member.

    mode: how its etcd was started; None for what is on record.
    """
    is_secure = (mode or desired.secured.peer_mode) == "Require"
    return url(dialect.member_host(desired, name), PEER_PORT, is_secure=is_secure)
