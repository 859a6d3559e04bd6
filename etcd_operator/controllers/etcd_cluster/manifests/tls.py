"""The objects with a cluster's certificates, and where members find them. Keys are only in Secrets.

CAs       a Secret in the namespace of the operator, by the UID of the cluster: both CAs with their keys
members   a Secret for each, in the namespace of the cluster, which the pod mounts: no key of a CA
clients   the ConfigMap NAME-ca, with the certificate of the client CA, and the Secret NAME-client-tls, with
          a certificate for them
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from etcd_operator.api.cluster_spec import ClientTls, MemberTls, PeerTls, Tls
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import Survivor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.shared.decide.tls_spec import LEAF, ca_duration, leaf_duration
from etcd_operator.controllers.shared.manifests.command import PodVolume
from etcd_operator.pki.authority import KeyPair, issue, new_ca
from etcd_operator.pki.description import Description, describe
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import is_due, renewal
from etcd_operator.pki.names import Names, names_of
from etcd_operator.pki.profiles import PEER, PEER_DIALING, Leaf, peer_server, server
from etcd_operator.pki.profiles import client as client_leaf

DAY = timedelta(days=1)

SEED_LASTS = DAY
"""How long a seed may copy data from a survivor: as `root`, for clusters with etcd's authentication."""

USER = "root"
"""etcd's name for the user that may do everything, once its authentication is on."""

SEED_FILE = "seed.crt"

BCRYPT_COST = "4"
"""The least. Passwords are generated, of 32 random bytes: nobody guesses one, however fast."""

FOLDER = "/etc/etcd-tls"
VOLUME = "etcd-tls"
SERVER_FLAG = f"--cacert={FOLDER}/client-ca.crt"
"""How a command in the pod of a member verifies what serves clients."""

_MOUNT: RawObject = {"mountPath": FOLDER, "readOnly": True}

CA_LABEL = "etcd.improbable.io/authorities-of"
"""On the Secret with the CAs of a cluster: its UID. A label, so that `kubectl` finds it."""

CLIENT = "client"
"""The common name of the leaf for clients: of no user, once etcd's authentication is on."""

CLUSTER_ANNOTATION = "etcd.improbable.io/cluster"
"""On the same Secret: API version, namespace and name of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """The CAs of a cluster, with their keys."""

    peer: KeyPair
    client: KeyPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A leaf in a Secret: the name of its files, the CA that issues it and its file, what it certifies."""

    file: str
    ca: KeyPair
    ca_file: str
    leaf: Leaf
    duration: timedelta


# The CAs


def authorities_name(uid: str) -> str:
    """The name of the Secret with the CAs of a cluster."""
    return f"etcd-authorities-{uid}"


def new_authorities(cluster: DesiredCluster, now: datetime) -> Authorities:
    """The CAs of a cluster: two, because each leaf of one may do what the other must not (docs/tls.md)."""
    tls = cluster.tls
    peer, client = (tls.peer, tls.client) if tls is not None else (None, None)
    name = f"{cluster.namespace}/{cluster.name}"
    return Authorities(
        peer=new_ca(_ca_name("peers", name), now=now, duration=ca_duration(peer or PeerTls())),
        client=new_ca(_ca_name("clients", name), now=now, duration=ca_duration(client or PeerTls())),
    )


def _ca_name(what: str, cluster: str) -> str:
    return f"etcd {what} {cluster}"[:64]


def authorities_secret(cluster: DesiredCluster, namespace: str, made: Authorities) -> RawObject:
    """Their Secret. It has no owner: owners are in the same namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": authorities_name(cluster.uid),
            "namespace": namespace,
            "labels": {CA_LABEL: cluster.uid},
            "annotations": {CLUSTER_ANNOTATION: f"{cluster.api_version} {cluster.namespace}/{cluster.name}"},
        },
        "type": "Opaque",
        "data": _encoded(
            {
                "peer-ca.crt": made.peer.certificate,
                "peer-ca.key": made.peer.key,
                "client-ca.crt": made.client.certificate,
                "client-ca.key": made.client.key,
            }
        ),
    }


def authorities_of(data: Mapping[str, str]) -> Authorities:
    """The CAs in such a Secret. Raises BadCertificate if it lacks one."""
    files = _decoded(data)
    try:
        peer = KeyPair(files["peer-ca.crt"], files["peer-ca.key"])
        client = KeyPair(files["client-ca.crt"], files["client-ca.key"])
    except KeyError as error:
        raise BadCertificate(f"it has no {error}") from None
    for ca in (peer, client):
        if not describe(ca.certificate).is_ca:
            raise BadCertificate("it has a certificate that is not that of a CA")
    return Authorities(peer=peer, client=client)


# Members


def secret_name(holder: str) -> str:
    """The name of the Secret of a member, or of clients."""
    return f"{holder}-tls"


def clients_of(cluster: DesiredCluster) -> str:
    """What is named like a member, and holds the leaf for clients; empty where they need none, or a user."""
    auth = cluster.persisted.auth
    needs_user = auth is not None and auth.enabled
    return f"{cluster.name}-client" if cluster.secured.client_cert_auth and not needs_user else ""


def leafs(cluster: DesiredCluster, made: Authorities, member: str, names: Names) -> tuple[Named, ...]:
    """The leafs of a member. names: by which it is dialed."""
    tls, recovery = cluster.tls or Tls(), cluster.persisted.recovery_under_way
    wanted: list[tuple[str, str, Leaf, timedelta]] = []
    copies = recovery is not None and recovery.seed == member and isinstance(recovery.source, Survivor)
    if copies and tls.client is not None:
        wanted.append(("seed", "client", client_leaf(USER), SEED_LASTS))
    if tls.client is not None:
        wanted.append(("server", "client", server(names), leaf_duration(tls.client)))
    if tls.peer is not None:
        lasts = leaf_duration(tls.peer)
        wanted += [
            ("peer", "peer", peer_server(names), lasts),
            ("peer-dial", "peer", PEER_DIALING, lasts),
        ]
    cas = {"client": made.client, "peer": made.peer}
    return tuple(
        Named(file=file, ca=cas[ca], ca_file=f"{ca}-ca.crt", leaf=leaf, duration=lasts)
        for file, ca, leaf, lasts in wanted
    )


def client_leafs(cluster: DesiredCluster, made: Authorities) -> tuple[Named, ...]:
    """The leaf for clients, under the keys of a Secret of the type kubernetes.io/tls."""
    client = (cluster.tls.client if cluster.tls is not None else None) or ClientTls()
    leaf, lasts = client_leaf(CLIENT), leaf_duration(client)
    return (Named(file="tls", ca=made.client, ca_file="ca.crt", leaf=leaf, duration=lasts),)


def client_flags(secured: MemberTls) -> list[str]:
    """How etcdctl in the pod of a seed reaches another member."""
    if not secured.client:
        return []
    own = [f"--cert={FOLDER}/seed.crt", f"--key={FOLDER}/seed.key"] if secured.client_cert_auth else []
    return [SERVER_FLAG, *own]


def member_names(cluster: DesiredCluster, hosts: tuple[str, ...], zone: str) -> Names:
    """The names by which a member is dialed: its own ones, those of the Service for clients, and more."""
    client = cluster.tls.client if cluster.tls is not None else None
    client = client if client is not None else ClientTls()
    return names_of(
        (*hosts, cluster.name),
        namespace=cluster.namespace,
        zone=zone,
        extra_dns=client.extra_dns_names,
        extra_ips=client.extra_ips,
    )


def secret(cluster: DesiredCluster, leafs: tuple[Named, ...], holder: str, now: datetime) -> RawObject:
    """The Secret, with new leafs. The owner is the cluster: a member may be created again."""
    data: dict[str, bytes] = {}
    for each in leafs:
        pair = issue(each.ca, each.leaf, now=now, duration=each.duration)
        data |= {f"{each.file}.crt": pair.certificate, f"{each.file}.key": pair.key}
        data[each.ca_file] = each.ca.certificate
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata_of(cluster, secret_name(holder), {}),
        "type": "Opaque",
        "data": _encoded(data),
    }


def due_at(data: Mapping[str, str], leafs: tuple[Named, ...], now: datetime) -> datetime | None:
    """When the Secret of a member is to be written again; None for now.

    Also where a leaf was issued by another CA, for other names, or for longer than is asked for.
    """
    try:
        files = _decoded(data)
        found = [describe(files[f"{each.file}.crt"]) for each in leafs]
        if any(_differs(each, leaf) or is_due(leaf, now) for each, leaf in zip(leafs, found, strict=True)):
            return None
        if any(not files.get(f"{each.file}.key") for each in leafs):
            return None
        if any(files.get(each.ca_file) != each.ca.certificate for each in leafs):
            return None
        if SEED_FILE in files and SEED_FILE not in {f"{each.file}.crt" for each in leafs}:
            return None  # the seed serves
    except (BadCertificate, KeyError):
        return None
    return min((renewal(leaf) for leaf in found), default=now + LEAF)


def _differs(wanted: Named, found: Description) -> bool:
    if found.issuer_key_id != describe(wanted.ca.certificate).key_id:
        return True
    lasts = found.not_after - found.not_before
    return set(found.names) != set(wanted.leaf.names.texts) or lasts > wanted.duration + DAY / 24


def volume(member: str) -> PodVolume:
    """The volume with its Secret: a folder, which the kubelet replaces as a whole when the Secret changes."""
    source = {"secret": {"secretName": secret_name(member), "defaultMode": 0o444}}
    return VOLUME, source, _MOUNT


def mount() -> PodVolume:
    """The same in one more container of that pod."""
    return VOLUME, {}, _MOUNT


def options(tls: MemberTls) -> dict[str, str]:
    """The options of etcd for it, by flag name."""
    found: dict[str, str] = {}
    if tls.client:
        found |= _files("", "server")
        if tls.client_cert_auth:
            found |= {"trusted-ca-file": f"{FOLDER}/client-ca.crt", "client-cert-auth": "true"}
            # Users may be required. Clients ask for tokens again all at once when a member restarts.
            found["bcrypt-cost"] = BCRYPT_COST
        # The gateway would dial etcd itself, with the leaf of the server.
        found["enable-grpc-gateway"] = "false"
        if tls.min_version is not None:
            found["tls-min-version"] = tls.min_version
    if tls.peer:
        found |= _files("peer-", "peer")
        found |= {
            "peer-client-cert-file": f"{FOLDER}/peer-dial.crt",
            "peer-client-key-file": f"{FOLDER}/peer-dial.key",
            "peer-trusted-ca-file": f"{FOLDER}/peer-ca.crt",
            "peer-client-cert-auth": "true",
            "peer-cert-allowed-cn": PEER,
        }
    return found


def _files(prefix: str, file: str) -> dict[str, str]:
    return {f"{prefix}cert-file": f"{FOLDER}/{file}.crt", f"{prefix}key-file": f"{FOLDER}/{file}.key"}


# Clients


def ca_config_map(cluster: DesiredCluster, made: Authorities) -> RawObject:
    """The ConfigMap with which clients verify members."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of(cluster, ca_config_map_name(cluster.name), {}),
        "data": {"ca.crt": made.client.certificate.decode()},
    }


def ca_config_map_name(cluster: str) -> str:
    """Its name."""
    return f"{cluster}-ca"


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in data.items()}


def _decoded(data: Mapping[str, str]) -> dict[str, bytes]:
    """Raises BadCertificate."""
    try:
        return {name: base64.b64decode(text, validate=True) for name, text in data.items()}
    except binascii.Error:
        raise BadCertificate("it has an entry that is not base64") from None
