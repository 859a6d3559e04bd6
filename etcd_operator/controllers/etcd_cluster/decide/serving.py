"""How a member serves clients, as a value: of its pod, of the record, or of the spec."""

from dataclasses import dataclass

from etcd_operator.api.cluster_spec import ClientMode, MemberTls


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How a member serves clients: what can be changed by a restart."""

    mode: ClientMode  # Disabled: without TLS only
    min_version: str  # of TLS; empty for the default of etcd

    @classmethod
    def of(cls, tls: MemberTls) -> "Serving":
        """How a member that is started with these settings serves."""
        if not tls.client:
            return WITHOUT_TLS
        return cls(mode=tls.mode, min_version=tls.min_version or "")


WITHOUT_TLS = Serving(mode="Disabled", min_version="")
