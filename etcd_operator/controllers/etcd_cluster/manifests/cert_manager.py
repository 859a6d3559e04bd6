"""What cert-manager is asked for: a Certificate for each file of `manifests.issued.LEAFS`.

All members have the same ones, so the names of members are wildcards. Subjects and usages are those of the
certificates that the operator signs (`pki.profiles`), and members are started with the same options.
"""

from collections.abc import Mapping
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.api.tls import IssuerRef, PeerTls
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import issued
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.tls import USER, client_settings
from etcd_operator.controllers.shared.decide.tls_spec import leaf_duration
from etcd_operator.pki.names import Names, names_of
from etcd_operator.pki.profiles import PEER_DIALING, Leaf, Usage, peer_server, server
from etcd_operator.pki.profiles import client as client_leaf

LABEL = "etcd.improbable.io/certificates-of"
"""On Certificates, and on the Secrets that cert-manager makes for them: the name of the cluster."""

_USAGES = {Usage.SERVER: "server auth", Usage.CLIENT: "client auth"}


def selector(cluster: DesiredCluster) -> str:
    """Of the Certificates of a cluster, and their Secrets."""
    return f"{LABEL}={cluster.name}"


def certificate_name(cluster: DesiredCluster, file: str) -> str:
    """The name of a Certificate, and of its Secret."""
    return f"{cluster.name}-cert-manager-{file}"


def issuer_of(cluster: DesiredCluster, side: Side) -> IssuerRef | None:
    """Who signs the certificates of a side; None if it is not cert-manager."""
    secured = cluster.secured
    return secured.peer_issuer if side == "peer" else secured.client_issuer


def files_of(cluster: DesiredCluster, side: Side) -> tuple[str, ...]:
    """The files of a side that cert-manager issues; also where clients need no certificate yet."""
    return issued.LEAFS[side] if issuer_of(cluster, side) is not None else ()


def leaf_of(cluster: DesiredCluster, file: str, host: str, zone: str) -> Leaf:
    """What a file certifies. host: of a member, with a wildcard for its name, like *.c-peer.ns.svc."""
    match file:
        case "peer-dial":
            return PEER_DIALING
        case issued.OPERATOR:
            return client_leaf(USER)
        case "peer":
            return peer_server(Names(dns=_members(host, zone)))
        case _:
            return server(_serving(cluster, host, zone))


def _members(host: str, zone: str) -> tuple[str, ...]:
    return host, f"{host}.{zone}"


def _serving(cluster: DesiredCluster, host: str, zone: str) -> Names:
    client = client_settings(cluster)
    found = names_of(
        (cluster.name,),
        namespace=cluster.namespace,
        zone=zone,
        extra_dns=(*_members(host, zone), *client.extra_dns_names),
        extra_ips=client.extra_ips,
    )
    return Names(dns=found.dns, addresses=found.addresses)


def certificate(cluster: DesiredCluster, side: Side, file: str, leaf: Leaf) -> RawObject:
    """One Certificate. The Secret is that of cert-manager: members do not mount it."""
    issuer = issuer_of(cluster, side) or IssuerRef(name="")
    name, labels = certificate_name(cluster, file), {LABEL: cluster.name}
    seconds = int(leaf_duration(_settings(cluster, side)).total_seconds())
    spec: dict[str, Any] = {
        "secretName": name,
        "secretTemplate": {"labels": labels},
        "issuerRef": {"name": issuer.name, "kind": issuer.kind, "group": issuer.group},
        "duration": _go_duration(seconds),
        "renewBefore": _go_duration(seconds // 3),
        "usages": ["digital signature", _USAGES[leaf.usage]],
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
        **_subject(leaf),
    }
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": metadata_of(cluster, name, labels),
        "spec": spec,
    }


def _go_duration(seconds: int) -> str:
    """As Go writes it: some versions of cert-manager store a duration anew, and it must be the same then."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s"


def _settings(cluster: DesiredCluster, side: Side) -> PeerTls:
    if side == "client":
        return client_settings(cluster)
    return (cluster.tls.peer if cluster.tls is not None else None) or PeerTls()


def _subject(leaf: Leaf) -> Mapping[str, Any]:
    """An empty field is left out, as cert-manager's webhook would refuse some."""
    found: dict[str, Any] = {
        "commonName": leaf.common_name,
        "subject": {"organizations": [leaf.organization]} if leaf.organization else {},
        "dnsNames": list(leaf.names.dns),
        "ipAddresses": [str(each) for each in leaf.names.addresses],
    }
    return {field: value for field, value in found.items() if value}


def is_as_asked(found: RawObject, wanted: RawObject) -> bool:
    """Whether a spec has what is wanted. What cert-manager adds by itself does not count."""
    return not fields_changed(found, wanted)


def fields_changed(found: RawObject, wanted: RawObject) -> list[str]:
    """The fields of a spec that do not have what is wanted."""
    added = [name for name in ("dnsNames", "ipAddresses") if found.get(name) and name not in wanted]
    return [*added, *(name for name, value in wanted.items() if not _has(found.get(name), value))]


def _has(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_has(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted)
