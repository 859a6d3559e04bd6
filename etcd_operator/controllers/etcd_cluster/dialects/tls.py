"""What `spec.tls` asks for, and what it cannot be combined with yet; the API server applies most of it."""

from collections.abc import Iterator

from etcd_operator.api.cluster_spec import ClientTls, PeerTls, SharedSpec, Tls
from etcd_operator.api.definitions import tls_validations as rules
from etcd_operator.api.persisted import ClusterStatus
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.manifests.tls import SHORTEST_LEAF, ca_duration, leaf_duration
from etcd_operator.errors import InvalidSpec
from etcd_operator.formats import duration_text
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import refusal
from etcd_operator.pki.names import address, dns_name
from etcd_operator.versions import parse_version


def tls_of(spec: SharedSpec, status: ClusterStatus, version: str) -> Tls | None:
    """The TLS of a cluster; None for plain members. Raises InvalidSpec, also for a change of what runs."""
    if spec.tls is not None:
        wrong = next(_problems(spec.tls, spec, version), "")
        if wrong:
            raise InvalidSpec(wrong)
    has_begun = bool(status.cluster_id) or status.bootstrap is not None or status.recovery is not None
    recorded = status.tls.of_members if status.tls is not None else None
    if has_begun and recorded != (members_of(spec.tls) if spec.tls is not None else None):
        raise InvalidSpec(f"spec.tls: {rules.UNCHANGED}")
    return spec.tls


def _problems(tls: Tls, spec: SharedSpec, version: str) -> Iterator[str]:
    if tls.peer is None and tls.client is None:
        yield f"spec.tls: {rules.EMPTY}"
    if spec.adopt is not None:
        yield f"spec.adopt: {rules.NO_ADOPTION}"
    if parse_version(version).minor < rules.OLDEST_MINOR:
        yield f"spec.tls: {rules.VERSION}"
    for name, side in (("peer", tls.peer), ("client", tls.client)):
        if side is not None:
            yield from (f"spec.tls.{name}{text}" for text in _side_problems(side))
    if tls.client is not None:
        yield from (f"spec.tls.client.{text}" for text in _names_problems(tls.client))


def _side_problems(side: PeerTls) -> Iterator[str]:
    if side.auto is None:
        yield f": {rules.SOURCE}"
    for field, read in ((".leafDuration", leaf_duration), (".caDuration", ca_duration)):
        try:
            read(side)
        except (ValueError, OverflowError) as error:
            yield f"{field}: {error}"
            return
    if leaf_duration(side) < SHORTEST_LEAF:
        least = duration_text(int(SHORTEST_LEAF.total_seconds()))
        yield f".leafDuration: must be at least {least}: members need minutes to notice a renewed certificate"
    wrong = refusal(leaf_duration(side), ca_duration(side))
    if wrong:
        yield f".caDuration: {wrong}"


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
