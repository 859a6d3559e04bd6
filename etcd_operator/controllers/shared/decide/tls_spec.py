"""What `spec.tls` and `spec.auth` of a cluster mean, and what is wrong with them."""

from collections.abc import Iterator
from datetime import timedelta

from etcd_operator.api.cluster_spec import Auth
from etcd_operator.api.definitions import tls_validations as rules
from etcd_operator.api.tls import CertManager, ClientTls, PeerTls, Tls
from etcd_operator.formats import duration_text, seconds_of
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import refusal
from etcd_operator.pki.names import address, dns_name

LEAF, CA = timedelta(days=90), timedelta(days=3650)
"""How long certificates are valid, unless the spec says otherwise."""

SHORTEST_LEAF = timedelta(minutes=10)
"""The kubelet needs a minute or two to show a member its new certificate."""

SHORTEST_OF_CERT_MANAGER = timedelta(hours=1)
"""cert-manager refuses shorter ones."""


def leaf_duration(side: PeerTls) -> timedelta:
    """How long leafs are valid. Raises ValueError for a text that is no duration."""
    return timedelta(seconds=seconds_of(side.leaf_duration)) if side.leaf_duration else LEAF


def ca_duration(side: PeerTls) -> timedelta:
    """How long the CA is valid. Raises ValueError for a text that is no duration."""
    return timedelta(seconds=seconds_of(side.ca_duration)) if side.ca_duration else CA


def problems(tls: Tls) -> Iterator[str]:
    """What is wrong, each after the path below the spec that it is about."""
    if tls.peer is None and tls.client is None:
        yield f"tls: {rules.EMPTY}"
    for name, side in (("peer", tls.peer), ("client", tls.client)):
        if side is not None:
            yield from (f"tls.{name}{text}" for text in _side_problems(side))
    if tls.client is not None:
        yield from (f"tls.client: {text}" for text in _client_problems(tls.client))
        yield from (f"tls.client.{text}" for text in _names_problems(tls.client))


def _client_problems(client: ClientTls) -> Iterator[str]:
    has_own = client.secret_ref is not None
    if (has_own or client.cert_manager is not None) and client.mode == "Disabled":
        yield rules.NOT_DISABLED
    if has_own and (client.extra_dns_names or client.extra_ips):
        yield rules.OWN_NAMES
    if (client.operator_secret_ref is not None) != (has_own and client.client_cert_auth):
        yield rules.OPERATOR
    if client.cipher_suites:
        yield from _suites_problems(client)


def _suites_problems(client: ClientTls) -> Iterator[str]:
    """Lists with which etcd does not start, or refuses all clients that use TLS 1.2."""
    suites, required = set(client.cipher_suites), set(rules.EITHER_KEY)
    if client.min_version == "TLS1.3":
        yield rules.SUITES_VERSION
    if client.secret_ref is not None:
        if not required <= suites:
            yield rules.OWN_SUITES
    elif rules.EITHER_KEY[0] not in suites or not all("_ECDSA_" in suite for suite in suites):
        yield rules.ISSUED_SUITES


def auth_problem(auth: Auth | None, tls: Tls | None) -> str:
    """What is wrong with `spec.auth`; empty if nothing is."""
    client = tls.client if tls is not None else None
    if auth is None or not auth.enabled:
        return ""
    if client is None or not client.client_cert_auth or client.mode != "Require":
        return f"auth: {rules.AUTH}"
    return f"auth: {rules.AUTH_ISSUES}" if client.auto is None else ""


def _side_problems(side: PeerTls) -> Iterator[str]:
    if [side.auto, side.cert_manager, side.secret_ref].count(None) != 2:
        yield f": {rules.SOURCE}"
    if side.secret_ref is not None and (side.leaf_duration or side.ca_duration):
        yield f": {rules.ONLY_AUTO}"
    if side.cert_manager is not None:
        yield from _issuer_problems(side, side.cert_manager)
    for field, read in ((".leafDuration", leaf_duration), (".caDuration", ca_duration)):
        try:
            read(side)
        except (ValueError, OverflowError) as error:
            yield f"{field}: {error}"
            return
    shortest = SHORTEST_LEAF if side.cert_manager is None else SHORTEST_OF_CERT_MANAGER
    if leaf_duration(side) < shortest:
        least = duration_text(int(shortest.total_seconds()))
        yield f".leafDuration: must be at least {least}: members need minutes to notice a renewed certificate"
    wrong = refusal(leaf_duration(side), ca_duration(side))
    if wrong and side.cert_manager is None:
        yield f".caDuration: {wrong}"


def _issuer_problems(side: PeerTls, source: CertManager) -> Iterator[str]:
    if source.issuer_ref.kind != "Issuer" and source.shared_issuer != "Accepted":
        yield f".certManager: {rules.SHARED}"
    if side.ca_duration:
        yield f": {rules.ONLY_OWN_CA}"


def _names_problems(client: ClientTls) -> Iterator[str]:
    for field, read, texts in (
        ("extraDNSNames", dns_name, client.extra_dns_names),
        ("extraIPs", address, client.extra_ips),
    ):
        for text in texts:
            try:
                read(text)
            except BadCertificate as error:
                yield f"{field}: {error}"
