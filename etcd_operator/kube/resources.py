"""The API resources that the operator uses, and the path of each in the API server.

A `Resource` is a name, not a client: it builds its URL and does nothing else.
Paths follow the Kubernetes API conventions: the core group lives under `/api/v1`, every
other one under `/apis/<group>/<version>`.
"""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object; `plural` is its name in URLs, `kind` its name in documents."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """What documents carry as `apiVersion`: `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection (no name) or of one object.

        An empty namespace means all namespaces, which only a collection can have. The
        namespace of a cluster-wide resource is ignored.
        """
        if self.namespaced and name and not namespace:
            msg = f"{self} {name}: an object of a namespaced resource needs its namespace"
            raise ValueError(msg)
        parts = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a resource: of one namespace or of all (`""`), with these labels or fields or any."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group="", version="v1", plural=plural, kind=kind, namespaced=namespaced)


def _admission(plural: str, kind: str) -> Resource:
    group = "admissionregistration.k8s.io"
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=False)


def _improbable(plural: str, kind: str) -> Resource:
    return Resource(group="etcd.improbable.io", version="v1alpha1", plural=plural, kind=kind)


PODS = _core("pods", "Pod")
SERVICES = _core("services", "Service")
CLAIMS = _core("persistentvolumeclaims", "PersistentVolumeClaim")
NODES = _core("nodes", "Node", namespaced=False)
EVENTS = _core("events", "Event")
NAMESPACES = _core("namespaces", "Namespace", namespaced=False)
SECRETS = _core("secrets", "Secret")
CONFIG_MAPS = _core("configmaps", "ConfigMap")
REPLICA_SETS = Resource(group="apps", version="v1", plural="replicasets", kind="ReplicaSet")
JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
NETWORK_POLICIES = Resource(
    group="networking.k8s.io", version="v1", plural="networkpolicies", kind="NetworkPolicy"
)
ENDPOINT_SLICES = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice"
)
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
CERTIFICATES = Resource(group="cert-manager.io", version="v1", plural="certificates", kind="Certificate")
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
STORAGE_CLASSES = Resource(
    group="storage.k8s.io", version="v1", plural="storageclasses", kind="StorageClass", namespaced=False
)
COREOS_CLUSTERS = Resource(group="coreos.com", version="v1", plural="etcdclusters", kind="EtcdCluster")
IMPROBABLE_CLUSTERS = _improbable("etcdclusters", "EtcdCluster")
BACKUPS = _improbable("etcdbackups", "EtcdBackup")
SCHEDULES = _improbable("etcdbackupschedules", "EtcdBackupSchedule")
RESTORES = _improbable("etcdrestores", "EtcdRestore")
ROLES = _improbable("etcdroles", "EtcdRole")
USERS = _improbable("etcdusers", "EtcdUser")
PEERS = _improbable("etcdpeers", "EtcdPeer")
MUTATING_POLICIES = _admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
MUTATING_POLICY_BINDINGS = _admission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
VALIDATING_POLICIES = _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
VALIDATING_POLICY_BINDINGS = _admission(
    "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
