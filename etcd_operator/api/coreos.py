"""`coreos.com/v1`: EtcdCluster with ephemeral members.

Its oldest version has `size` at the top level instead of inside `spec`. Both are read; `spec.size`
takes precedence.
"""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api import persisted
from etcd_operator.api.cluster_spec import MOST_MEMBERS, SharedSpec
from etcd_operator.api.coreos_backup import BackupPolicy, ClusterBackupStatus, RestorePolicy
from etcd_operator.api.meta import RawObject, SecurityContext, Stored, Value, of_schema, written_if_zero
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.tls import ClientTls, PeerTls, SecretRef, Tls

GROUP = "coreos.com"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"

APP_LABEL = "app"
CLUSTER_LABEL = "etcd_cluster"
NODE_LABEL = "etcd_node"
VERSION_ANNOTATION = "etcd.version"
POD_KEYS = PodKeys(GROUP)


class PodPolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the members' pods."""

    #: The security context of the pods, with the fields of a pod's security context. It replaces the whole
    #: default, which complies with the Pod Security Standard restricted: user, group and fsGroup 65532,
    #: seccomp profile RuntimeDefault.
    security_context: SecurityContext | None = None


class SelfHosted(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of `Adopt` for a cluster with one member, in the group coreos.com."""

    boot_member_client_endpoint: str  #: The client URL of the only member of the cluster to join.


class StaticMember(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Secrets of the members."""

    #: A Secret with a certificate for all members among themselves, with the keys peer.crt, peer.key and
    #: peer-ca.crt.
    peer_secret: str = ""
    #: A Secret with a certificate for all members for clients, with the keys server.crt, server.key and
    #: server-ca.crt.
    server_secret: str = ""


class StaticTls(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates of the user."""

    member: StaticMember  #: The Secrets of the members.
    #: With member.serverSecret: a Secret with the certificate with which the operator connects to members,
    #: with the keys etcd-client.crt, etcd-client.key and etcd-client-ca.crt.
    operator_secret: str = ""


class TlsPolicy(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS in the form of CoreOS' operator."""

    static: StaticTls  #: Certificates of the user.

    @property
    def tls(self) -> Tls:
        """The same in the form of spec.tls."""
        member, operator = self.static.member, self.static.operator_secret
        server = SecretRef(name=member.server_secret)
        client = ClientTls(secret_ref=server, operator_secret_ref=SecretRef(name=operator))
        return Tls(
            peer=PeerTls(secret_ref=SecretRef(name=member.peer_secret)) if member.peer_secret else None,
            client=client if member.server_secret else None,
        )


class ClusterSpec(SharedSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired state."""

    #: The number of members: 1 for tests, otherwise 3 or 5. Even numbers, and more than 7, cause a warning.
    size: Annotated[int, msgspec.Meta(ge=1, le=MOST_MEMBERS)] | None = None
    #: The version of etcd, like v3.5.35. Default of a new cluster: --default-etcd-version of the operator.
    version: str = ""
    #: While true, the operator changes nothing in this cluster and only reports its status.
    paused: bool = False
    node_selector: dict[str, str] = {}  #: Labels of the nodes that the pods may run on.
    anti_affinity: bool = False  #: While true, two members of the cluster never run on the same node.
    pod: PodPolicy = PodPolicy()  #: Settings of the members' pods.
    # Raw: see `api.coreos_backup`.
    #: Regular backups of the cluster. Without this field, or with maxBackups: 0, no backups are taken.
    backup: Annotated[RawObject, of_schema(BackupPolicy)] | None = None
    #: Short form of spec.adopt for a cluster with one member. Mutually exclusive with spec.adopt and
    #: spec.restore.
    self_hosted: SelfHosted | None = None
    #: TLS with certificates of the user, in the form of CoreOS' operator: an alternative to spec.tls. It
    #: cannot be changed once the cluster is created.
    tls_policy: TlsPolicy | None = msgspec.field(default=None, name="TLS")
    restore: RestorePolicy | None = None  #: The backup with which a new cluster begins.


class MembersStatus(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The names of the members."""

    ready: tuple[str, ...] = ()  #: Members that serve.
    unready: tuple[str, ...] = ()  #: Members that do not serve.


class ClusterStatus(persisted.ClusterStatus, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    phase: Literal["", "Creating", "Running", "Failed"] = ""  #: Creating, Running or Failed.
    size: int = written_if_zero()  #: The number of members.
    target_version: str = ""  #: The desired version of etcd, during an upgrade.
    members: MembersStatus = MembersStatus()  #: The members by name.
    #: The number of the next member; numbers are never reused. Persisted state of the operator.
    next_ordinal: int = 0
    # Written only by the passes for backups.
    #: The newest backup, and the number and total size of all backups.
    backup: ClusterBackupStatus | None = None


class EtcdCluster(Stored, frozen=True, kw_only=True):
    """An etcd cluster with ephemeral members: their data exists as long as their pods."""

    size: int | None = None
    status: ClusterStatus = ClusterStatus()
