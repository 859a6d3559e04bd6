"""Which resources the fake serves, and how each differs: a table, not branches.

Promises: a path resolves to exactly one kind or to none; a kind that a test (or a CRD) registers is
served at once; a kind that is taken away answers 404 as an uninstalled CRD does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One resource. The flags are where kinds differ on a real server."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    has_generation: bool = False
    custom: bool = False
    put_creates: bool = False
    put_needs_version: bool = False

    @property
    def api_version(self) -> str:
        """As objects carry it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base(self) -> str:
        """The path below which the resource is served."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def qualified(self) -> str:
        """As error messages name it: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def custom_kind(group: str, version: str, plural: str, kind: str, *, has_status: bool = True) -> Kind:
    """A namespaced custom resource, as a CRD with a status subresource makes it."""
    return Kind(
        group=group, version=version, plural=plural, kind=kind,
        has_status=has_status, has_generation=True, custom=True, put_needs_version=True,
    )  # fmt: skip


_ADMISSION = "admissionregistration.k8s.io"

PODS = Kind(plural="pods", kind="Pod", has_status=True, has_generation=True)
SERVICES = Kind(plural="services", kind="Service", has_status=True, put_creates=True)
CLAIMS = Kind(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", has_status=True)
VOLUMES = Kind(plural="persistentvolumes", kind="PersistentVolume", namespaced=False, has_status=True)
NODES = Kind(plural="nodes", kind="Node", namespaced=False, has_status=True)
NAMESPACES = Kind(plural="namespaces", kind="Namespace", namespaced=False, has_status=True)
EVENTS = Kind(plural="events", kind="Event", put_creates=True)
CONFIG_MAPS = Kind(plural="configmaps", kind="ConfigMap")
SECRETS = Kind(plural="secrets", kind="Secret")
REPLICA_SETS = Kind(
    group="apps", plural="replicasets", kind="ReplicaSet", has_status=True, has_generation=True
)
JOBS = Kind(group="batch", plural="jobs", kind="Job", has_status=True, has_generation=True)
ENDPOINT_SLICES = Kind(group="discovery.k8s.io", plural="endpointslices", kind="EndpointSlice")
BUDGETS = Kind(
    group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget",
    has_status=True, has_generation=True, put_needs_version=True,
)  # fmt: skip
NETWORK_POLICIES = Kind(
    group="networking.k8s.io", plural="networkpolicies", kind="NetworkPolicy", has_generation=True
)
STORAGE_CLASSES = Kind(group="storage.k8s.io", plural="storageclasses", kind="StorageClass", namespaced=False)
LEASES = Kind(
    group="coordination.k8s.io", plural="leases", kind="Lease", put_creates=True, put_needs_version=True
)
CRDS = Kind(
    group="apiextensions.k8s.io", plural="customresourcedefinitions", kind="CustomResourceDefinition",
    namespaced=False, has_status=True, has_generation=True, put_needs_version=True,
)  # fmt: skip

BUILT_IN = (
    PODS, SERVICES, CLAIMS, VOLUMES, NODES, NAMESPACES, EVENTS, CONFIG_MAPS, SECRETS,
    REPLICA_SETS, JOBS, BUDGETS, NETWORK_POLICIES, ENDPOINT_SLICES, STORAGE_CLASSES, LEASES, CRDS,
    *(
        Kind(group=_ADMISSION, plural=plural, kind=kind, namespaced=False, has_generation=True)
        for plural, kind in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
            ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        )
    ),
)  # fmt: skip

OPERATOR_KINDS = (
    custom_kind("coreos.com", "v1", "etcdclusters", "EtcdCluster"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdclusters", "EtcdCluster"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdpeers", "EtcdPeer"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdbackups", "EtcdBackup"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdbackupschedules", "EtcdBackupSchedule"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdrestores", "EtcdRestore"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdroles", "EtcdRole"),
    custom_kind("etcd.improbable.io", "v1alpha1", "etcdusers", "EtcdUser"),
)


class Target(NamedTuple):
    """What a path points at; an empty name is the collection, an empty namespace all of them."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


EPHEMERAL_CONTAINERS = "ephemeralcontainers"


def _has(kind: Kind, subresource: str) -> bool:
    if subresource == EPHEMERAL_CONTAINERS:
        return kind == PODS
    return subresource == "status" and kind.has_status


class Kinds:
    """The kinds served now."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str], Kind] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> None:
        """Serve `kind` from now on (again: replaces the entry)."""
        self._kinds[kind.base, kind.plural] = kind

    def withdraw(self, kind: Kind) -> None:
        """Stop serving `kind`: its paths answer 404."""
        self._kinds.pop((kind.base, kind.plural), None)

    def of_group(self, group: str) -> list[Kind]:
        """The kinds of one API group, in all its versions."""
        return [kind for kind in self._kinds.values() if kind.group == group]

    def at(self, base: str) -> list[Kind]:
        """The kinds below one `/api/v1` or `/apis/group/version`."""
        return [kind for (below, _), kind in self._kinds.items() if below == base]

    def all(self) -> list[Kind]:
        """Every kind, in no particular order."""
        return list(self._kinds.values())

    def resolve(self, path: str) -> Target | None:
        """The resource, object or subresource that `path` names, or None."""
        parts = path.strip("/").split("/")
        length = 2 if parts[0] == "api" else 3
        base, rest = "/" + "/".join(parts[:length]), parts[length:]
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces" and (base, rest[2]) in self._kinds:
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((base, rest[0])) if rest else None
        if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
            return None
        name, subresource = (*rest[1:], "", "")[:2]
        if subresource and not _has(kind, subresource):
            return None
        return Target(kind, namespace, name, subresource)
