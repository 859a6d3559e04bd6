"""How a member serves clients, as a value: of its pod, of the record, or of the spec."""

from dataclasses import dataclass, replace

from etcd_operator.api.cluster_spec import ClientMode, MemberTls


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How a member serves clients: what can be changed by a restart."""

    mode: ClientMode  # Disabled: without TLS only
    min_version: str = ""  # of TLS; empty for the default of etcd
    # whether clients need a certificate; None where no restart of the pod changes that
    client_cert_auth: bool | None = False

    @classmethod
    def of(cls, tls: MemberTls) -> "Serving":
        """How a member that is started with these settings serves."""
        if not tls.client:
            return WITHOUT_TLS
        return cls(mode=tls.mode, min_version=tls.min_version or "", client_cert_auth=tls.client_cert_auth)

    @property
    def has_fixed_tls(self) -> bool:
        """Whether the pod is one of the first builds with TLS, in which only mode and version can change."""
        return self.client_cert_auth is None

    def is_as(self, wanted: "Serving") -> bool:
        """Whether this is wanted, as far as a restart changes it."""
        return self == (replace(wanted, client_cert_auth=None) if self.has_fixed_tls else wanted)


WITHOUT_TLS = Serving(mode="Disabled")
