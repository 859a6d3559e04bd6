"""How a member serves clients, as a value: of its pod, of the record, or of the spec."""

from dataclasses import dataclass, replace

from etcd_operator.api.tls import ClientMode, MemberTls


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How a member serves clients: what can be changed by a restart."""

    mode: ClientMode  # Disabled: without TLS only
    min_version: str = ""  # of TLS; empty for the default of etcd
    # None where no restart of the pod changes that: it is of an earlier build
    client_cert_auth: bool | None = False  # whether clients need a certificate
    cipher_suites: tuple[str, ...] | None = ()  # empty for those of etcd

    @classmethod
    def of(cls, tls: MemberTls) -> "Serving":
        """How a member that is started with these settings serves."""
        if not tls.client:
            return WITHOUT_TLS
        return cls(
            mode=tls.mode,
            min_version=tls.min_version or "",
            client_cert_auth=tls.client_cert_auth,
            cipher_suites=tls.cipher_suites,
        )

    def is_as(self, wanted: "Serving") -> bool:
        """Whether this is wanted, as far as a restart changes it."""
        if self.client_cert_auth is None:
            wanted = replace(wanted, client_cert_auth=None)
        if self.cipher_suites is None:
            wanted = replace(wanted, cipher_suites=None)
        return self == wanted

    def is_fixed(self, now: "Serving", wanted: "Serving") -> bool:
        """Whether no restart changes this from one to the other. TLS of a pod of the first builds remains."""
        keeps_tls = "Disabled" not in (now.mode, wanted.mode)
        asks_alike = keeps_tls and now.client_cert_auth == wanted.client_cert_auth
        has_same_suites = now.cipher_suites == wanted.cipher_suites
        return (self.client_cert_auth is None and not asks_alike) or (
            self.cipher_suites is None and not has_same_suites
        )


WITHOUT_TLS = Serving(mode="Disabled")
