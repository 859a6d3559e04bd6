"""Parts of the spec of a cluster that do not depend on the API group."""

import re
from typing import Annotated, Literal

import msgspec

from etcd_operator.api.meta import Affinity, RawObject, SecurityContext, Value, of_schema
from etcd_operator.api.tls import Tls

Mode = Literal["Complete", "Join", "Leave"]

ENDPOINT = re.compile(r"http://([-.a-zA-Z0-9]+|\[[:0-9a-fA-F]+\]):[0-9]{1,5}/?")
ENDPOINT_FORM = (
    "must be the client URL of a member, with its port and without TLS, "
    "like http://my-etcd-0.my-etcd.ns.svc:2379"
)


class Adopt(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A running etcd cluster that the members of a resource join."""

    endpoints: tuple[str, ...]  #: The client URL of each member of the cluster to join.
    #: Complete (the default): the members of this resource join, then the external members are removed. Join:
    #: they join, and the external members are kept. Leave: they leave that cluster again; possible until the
    #: first external member is removed.
    mode: Mode = "Complete"


class Auth(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """etcd's authentication: whether requests need a user."""

    #: Whether requests need a user in etcd, such as an EtcdUser. Needs TLS for clients, with clientCertAuth
    #: and the mode Require.
    enabled: bool


RecoveryMode = Literal["Manual", "Automatic"]

AUTOMATIC: RecoveryMode = "Automatic"

MOST_MEMBERS = 100

SHORTEST = 10
"""Seconds: an election, or the restart of a member, takes less."""

DEFAULT_AFTER = 600
"""Seconds: nodes restart, and volumes are attached to other nodes, in less."""


_Peer = Annotated[RawObject, of_schema("NetworkPolicyPeer")]


class NetworkAccess(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may connect to the pods of a cluster: the operator writes a NetworkPolicy (decision 040)."""

    #: false: the operator writes no NetworkPolicy for this cluster, and deletes its own. Default: true. It
    #: also writes none while another NetworkPolicy selects members that existed before its own.
    enabled: bool = True
    #: Who may connect to the client port, 2379, in the form of a peer of a NetworkPolicy. Without this field
    #: everybody may. The operator, the members, and the pods of backups in the same namespace always may.
    clients: tuple[_Peer, ...] | None = None
    #: Who may read the metrics of etcd at port 2381, in addition to the operator, in the same form.
    metrics: tuple[_Peer, ...] = ()


class SharedSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a cluster's spec in both groups."""

    #: A running etcd cluster to join instead of bootstrapping a new one. The existing (external) members are
    #: removed afterwards, unless the mode is Join or Leave. Cannot be set once the cluster is bootstrapped,
    #: except to continue an adoption.
    adopt: Adopt | None = None
    #: TLS between the members and for clients. Once the cluster is created, the source of certificates cannot
    #: be changed.
    tls: Tls | None = None
    #: Whether etcd requires users. Without this field, authentication remains as it is; if the operator has
    #: enabled authentication, removing the field disables it.
    auth: Auth | None = None
    #: Manual (the default): members that do not answer are given up only on request. Automatic: if the quorum
    #: is lost, and stays lost for recoveryAfterSeconds, the operator gives up the members that do not answer,
    #: and recovers the cluster without a request. Writes that only these members have are then lost.
    recovery: RecoveryMode = "Manual"
    #: How many seconds the quorum must be lost, and each member that is given up must be silent, before an
    #: automatic recovery starts. Default: 600. The count restarts if the operator restarts or cannot reach
    #: the API server.
    recovery_after_seconds: Annotated[int, msgspec.Meta(ge=SHORTEST)] | None = None
    #: Who may connect to the pods of the cluster. By default the client port is open to everybody, the peer
    #: port to the members, and the port of etcd's metrics to the operator.
    network_policy: NetworkAccess = NetworkAccess()

    @property
    def recovers_after(self) -> float | None:
        """After how many seconds without a quorum a recovery begins by itself; None for never."""
        if self.recovery != AUTOMATIC:
            return None
        return float(self.recovery_after_seconds or DEFAULT_AFTER)


class TemplateMetadata(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Labels and annotations of the members' pods."""

    annotations: dict[str, str] = {}  #: Annotations of the pods, for example for Prometheus.
    labels: dict[str, str] = {}  #: Labels of the pods.


_SpreadConstraint = Annotated[RawObject, of_schema("TopologySpreadConstraint")]


class PodTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the members' pods; immutable."""

    #: Labels and annotations of the pods. Names that begin with etcd.improbable.io/, and the labels
    #: app.kubernetes.io/name, etcd_cluster and etcd_node, are reserved.
    metadata: TemplateMetadata = TemplateMetadata()
    #: Requests and limits of the etcd container, as in a pod.
    resources: Annotated[RawObject, of_schema("ResourceRequirements")] = {}
    affinity: Affinity = {}  #: Node and pod affinity of the pods, as in a pod.
    node_selector: dict[str, str] = {}  #: Labels of the nodes that the pods may run on.
    #: Taints that the pods tolerate, as in a pod.
    tolerations: tuple[Annotated[RawObject, of_schema("Toleration")], ...] = ()
    #: How the pods spread over zones and nodes, as in a pod.
    topology_spread_constraints: tuple[_SpreadConstraint, ...] = ()
    priority_class_name: str = ""  #: The PriorityClass of the pods.
    #: The security context of the pods, with the fields of a pod's security context. It replaces the whole
    #: default, which complies with the Pod Security Standard restricted: user, group and fsGroup 65532,
    #: seccomp profile RuntimeDefault.
    security_context: SecurityContext | None = None


class S3Target(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder of a bucket of S3, and the access to it."""

    s3_bucket: str  #: The name of the bucket, which must exist.
    prefix: str = ""  #: The folder in the bucket; objects are named PREFIX/v1/NAMESPACE/NAME/FILE.
    aws_secret: str = ""  #: A Secret with the files credentials and config as keys, as in ~/.aws.
    region: str = ""  #: The region of the bucket, if the file config does not have it.
    endpoint: str = ""  #: The URL of a service that is compatible with S3.


class Encryption(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an encrypted backup (`archive.keys`)."""

    #: A Secret with one key of 32 bytes, raw or in base64, in each entry. docs/backup.md describes which of
    #: these keys encrypts a backup.
    secret_name: str
