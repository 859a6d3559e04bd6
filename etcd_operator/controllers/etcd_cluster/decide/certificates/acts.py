"""What is done for the TLS of a cluster (see `decide.actions`)."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import OnMember


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAuthorities:
    """Make the CAs of a cluster, in the namespace of the operator."""


class KeepCertificates(OnMember):
    """Make or renew the certificates of a member: etcd reads them at each handshake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishAuthority:
    """Write the bundle of CAs where clients find it: in the ConfigMap, and beside their certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCertificates:
    """Make, or change, what cert-manager is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterAuthorities:
    """Change the record of one CA, and make or renew what that needs, unless the Secret has changed."""

    side: Side
    change: Change
    request: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCertificates:
    """Delete the Secrets with the certificates of these members, and of clients."""

    members: tuple[str, ...]


TlsAction = (
    CreateAuthorities
    | RequestCertificates
    | KeepCertificates
    | PublishAuthority
    | AlterAuthorities
    | DropCertificates
)
"""What is written for TLS."""
