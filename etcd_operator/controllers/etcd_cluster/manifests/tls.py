"""The objects with a cluster's certificates, and where members find them. Keys are only in Secrets.

CAs       see `manifests.authorities`
members   a Secret for each, in the namespace of the cluster, which the pod mounts: no key of a CA
clients   the ConfigMap NAME-ca, with the certificates of the client CAs, and the Secret NAME-client-tls,
          with a certificate for them
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from etcd_operator.api.cluster_spec import ClientTls, MemberTls, Tls, UserSecret
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import lacks_files
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Files, Side, Situation
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import MemberTls as Followed
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    DAY,
    Authorities,
    decoded,
)
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.shared.decide.tls_spec import leaf_duration
from etcd_operator.controllers.shared.manifests.command import PodVolume
from etcd_operator.controllers.shared.manifests.secret import secret as secret_of
from etcd_operator.pki.authority import KeyPair, check, issue
from etcd_operator.pki.description import Description, describe, describe_bundle
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import is_due
from etcd_operator.pki.names import Names, names_of
from etcd_operator.pki.profiles import PEER, PEER_DIALING, Leaf, peer_server, server
from etcd_operator.pki.profiles import client as client_leaf
from etcd_operator.pki.secrets import FileNames, file_names
from etcd_operator.versions import parse_version

SEED_LASTS = DAY
"""How long a seed may copy data from a survivor: as `root`, for clusters with etcd's authentication."""

LONGEST_GRACE = timedelta(hours=1)
"""See `grace`."""

USER = "root"
"""etcd's name for the user that may do everything, once its authentication is on."""

SEED_FILE = "seed.crt"
"""The certificate of root in the Secret of a seed, see `SEED_LASTS`."""

SEED_FILES = FileNames(SEED_FILE, "seed.key", "seed-ca.crt")
"""Where a seed finds the certificate of the operator, if that is the user's."""

BCRYPT_COST = "4"
"""The least. Passwords are generated, of 32 random bytes: nobody guesses one, however fast."""

PEER_FILES, SERVER_FILES = file_names("peer"), FileNames("server.crt", "server.key", "client-ca.crt")
"""Where members find the certificates, whoever has issued them."""

FOLDER = "/etc/etcd-tls"
VOLUME = "etcd-tls"
SERVER_FLAG = f"--cacert={FOLDER}/client-ca.crt"
"""How a command in the pod of a member verifies what serves clients."""

_MOUNT: RawObject = {"mountPath": FOLDER, "readOnly": True}

CLIENT = "etcd-client"
"""The common name of the leaf for clients: of no user, once etcd's authentication is on. It is reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A leaf in a Secret: the name of its files, the CA that issues it, the bundle, what it certifies."""

    file: str
    side: Side
    ca: KeyPair
    bundle: bytes
    ca_file: str
    leaf: Leaf
    duration: timedelta


def client_settings(cluster: DesiredCluster) -> ClientTls:
    """`spec.tls.client`; the defaults where the spec has none."""
    return (cluster.tls.client if cluster.tls is not None else None) or ClientTls()


def grace(client: ClientTls) -> timedelta:
    """How long clients have, in each phase of a rotation, to read again what is published."""
    return min(LONGEST_GRACE, leaf_duration(client) / 6)


# Members


def secret_name(holder: str) -> str:
    """The name of the Secret of a member, or of clients."""
    return f"{holder}-tls"


def clients_of(cluster: DesiredCluster) -> str:
    """The holder of the Secret for clients, beside the members; empty where there is no such Secret.

    There is none where clients need no certificate, and where they need the certificate of a user.
    """
    auth = cluster.persisted.auth
    needs_user = auth is not None and auth.enabled
    is_issued = cluster.secured.client_cert_auth and cluster.secured.client_secret is None
    return _holder(cluster.name) if is_issued and not needs_user else ""


def shared_secret(cluster: str) -> str:
    """The name of the Secret for clients."""
    return secret_name(_holder(cluster))


def _holder(cluster: str) -> str:
    return f"{cluster}-client"


def leafs(cluster: DesiredCluster, made: Authorities, member: str, names: Names) -> tuple[Named, ...]:
    """The leafs of a member. names: by which it is dialed."""
    tls, recovery = cluster.tls or Tls(), cluster.persisted.recovery_under_way
    wanted: list[tuple[str, Side, Leaf, timedelta]] = []
    if cluster.has_client_certificates:
        wanted.append(("server", "client", server(names), leaf_duration(client_settings(cluster))))
    is_seed = recovery is not None and recovery.seed == member and recovery.is_copied
    if is_seed and cluster.has_client_certificates:
        wanted.append(("seed", "client", client_leaf(USER), SEED_LASTS))
    if tls.peer is not None and tls.peer.secret_ref is None:
        lasts = leaf_duration(tls.peer)
        wanted += [
            ("peer", "peer", peer_server(names), lasts),
            ("peer-dial", "peer", PEER_DIALING, lasts),
        ]
    return tuple(named(file, side, made, f"{side}-ca.crt", leaf, lasts) for file, side, leaf, lasts in wanted)


def named(file: str, side: Side, made: Authorities, ca_file: str, leaf: Leaf, lasts: timedelta) -> Named:
    """A leaf of the CA of a side that signs."""
    ca, bundle = made.of(side).issuer, made.of(side).bundle
    return Named(file=file, side=side, ca=ca, bundle=bundle, ca_file=ca_file, leaf=leaf, duration=lasts)


def client_leafs(cluster: DesiredCluster, made: Authorities) -> tuple[Named, ...]:
    """The leaf for clients, under the keys of a Secret of the type kubernetes.io/tls."""
    client = client_settings(cluster)
    return (named("tls", "client", made, "ca.crt", client_leaf(CLIENT), leaf_duration(client)),)


def client_flags(secured: MemberTls) -> list[str]:
    """How etcdctl in the pod of a seed reaches another member."""
    if not secured.is_dialed:
        return []
    own = [f"--cert={FOLDER}/seed.crt", f"--key={FOLDER}/seed.key"] if secured.client_cert_auth else []
    return [SERVER_FLAG, *own]


def member_names(cluster: DesiredCluster, hosts: tuple[str, ...], zone: str) -> Names:
    """The names by which a member is dialed: its own ones, those of the Service for clients, and more."""
    client = client_settings(cluster)
    return names_of(
        (*hosts, cluster.name),
        namespace=cluster.namespace,
        zone=zone,
        extra_dns=client.extra_dns_names,
        extra_ips=client.extra_ips,
    )


def secret(cluster: DesiredCluster, leafs: tuple[Named, ...], holder: str, now: datetime) -> RawObject:
    """The Secret, with new leafs. The owner is the cluster: a member may be created again."""
    files: dict[str, bytes] = {}
    for each in leafs:
        pair = issue(each.ca, each.leaf, now=now, duration=each.duration)
        files |= {f"{each.file}.crt": pair.certificate, f"{each.file}.key": pair.key}
        files[each.ca_file] = each.bundle
    return secret_of(metadata_of(cluster, secret_name(holder), {}), files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a Secret has for one side."""

    files: Files | None  # None if something is missing, or cannot be read
    is_renamed: bool = False  # its leafs can be read, but are not those that are wanted (see `held`)


def held(data: Mapping[str, str], leafs: tuple[Named, ...], side: Side, now: datetime) -> Held:
    """What is there of these leafs, of which the first one of a side is that of its listener."""
    own = [each for each in leafs if each.side == side]
    try:
        files = decoded(data)
        pairs = [KeyPair(files[f"{each.file}.crt"], files[f"{each.file}.key"]) for each in own]
        found = [describe(pair.certificate) for pair in pairs]
        bundle = describe_bundle(files[own[0].ca_file])
        for each, pair in zip(own, pairs, strict=True):
            check(pair, each.ca)
    except (BadCertificate, KeyError):
        return Held(files=None)
    main, *others = found
    is_renamed = any(map(_differs, own, found)) or any(
        is_due(leaf, now) or leaf.issuer_key_id != main.issuer_key_id for leaf in others
    )
    serves = SEED_FILE in files and SEED_FILE not in {f"{each.file}.crt" for each in leafs}
    return Held(files=Files(leaf=main, bundle=bundle), is_renamed=is_renamed or serves)


def is_current(made: Authorities, held: Mapping[Side, Held], now: datetime) -> bool:
    """Whether a Secret has what it should have: nothing is due, and everything of the CAs on record."""
    return not any(
        lacks_files(
            Situation(record=made.of(side).record, members=(), now=now),
            Followed(name="", files=each.files, is_running=False, is_renamed=each.is_renamed),
        )
        for side, each in held.items()
    )


def is_issued(data: Mapping[str, str], made: Authorities) -> bool:
    """Whether the Secret of a member has leafs of these CAs."""
    try:
        files = decoded(data)
        own = {file: describe(files[file]) for file in ("server.crt", "peer.crt") if file in files}
    except BadCertificate:
        return False
    trusted = {ca.key_id for side in (made.peer, made.client) for ca in side.record.trusted}
    return bool(own) and all(leaf.issuer_key_id in trusted for leaf in own.values())


def _differs(wanted: Named, found: Description) -> bool:
    lasts = found.not_after - found.not_before
    return set(found.names) != set(wanted.leaf.names.texts) or lasts > wanted.duration + DAY / 24


def volume(member: str, secured: MemberTls, *, copies: bool = False, is_kept: bool = False) -> PodVolume:
    """The volume with its Secrets: a folder, which the kubelet replaces as a whole when one of them changes.

    Files of a Secret of the user have the names that those of the operator have. copies: for a seed that
    copies the data of a survivor. is_kept: also while there is no Secret of the operator, for a pod that is
    kept when TLS is added.
    """
    if not secured.is_supplied:
        source: RawObject = {"secretName": secret_name(member), "defaultMode": 0o444}
        return VOLUME, {"secret": {**source, **({} if any(secured.issued) else _OPTIONAL)}}, _MOUNT
    own: RawObject = {"name": secret_name(member), **({} if any(secured.issued) else _OPTIONAL)}
    used = (
        (secured.peer_secret, PEER_FILES),
        (secured.client_secret, SERVER_FILES),
        (secured.operator_secret if copies else None, SEED_FILES),
    )
    is_used = is_kept or any(secured.issued)
    sources = [
        *([{"secret": own}] if is_used else []),
        *(_supplied(secret, files) for secret, files in used if secret is not None),
    ]
    return VOLUME, {"projected": {"sources": sources, "defaultMode": 0o444}}, _MOUNT


_OPTIONAL: RawObject = {"optional": True}


def _supplied(secret: UserSecret, files: FileNames) -> RawObject:
    """The source of a projected volume: the files of a Secret of the user, under these names."""
    pairs = zip(file_names(secret.keys).all, files.all, strict=True)
    return {"secret": {"name": secret.name, "items": [{"key": key, "path": path} for key, path in pairs]}}


def mount() -> PodVolume:
    """The same in one more container of that pod."""
    return VOLUME, {}, _MOUNT


CLIENT_OPTIONS = (
    "cert-file",
    "key-file",
    "trusted-ca-file",
    "client-cert-auth",
    "bcrypt-cost",
    "enable-grpc-gateway",
)
"""The options of etcd for clients that depend on TLS only."""


def options(tls: MemberTls) -> dict[str, str]:
    """The options of etcd for it, by flag name."""
    return {**client_options(tls), **_peer_options(tls)}


def client_options(tls: MemberTls) -> dict[str, str]:
    """Those for clients."""
    if not tls.client:
        return {}
    found = _files("", "server")
    if tls.client_cert_auth:
        found |= {"trusted-ca-file": f"{FOLDER}/client-ca.crt", "client-cert-auth": "true"}
        # Users may be required. Clients ask for tokens again all at once when a member restarts.
        found["bcrypt-cost"] = BCRYPT_COST
    # The gateway would dial etcd itself, with the leaf of the server.
    found["enable-grpc-gateway"] = "false"
    if tls.min_version is not None:
        found["tls-min-version"] = tls.min_version
    return found


def _peer_options(tls: MemberTls) -> dict[str, str]:
    if not tls.peer:
        return {}
    found = _files("peer-", "peer")
    is_issued = tls.peer_secret is None  # with a leaf of its own for dialing, and a common name
    if is_issued:
        found |= {
            "peer-client-cert-file": f"{FOLDER}/peer-dial.crt",
            "peer-client-key-file": f"{FOLDER}/peer-dial.key",
        }
    found |= {"peer-trusted-ca-file": f"{FOLDER}/peer-ca.crt", "peer-client-cert-auth": "true"}
    if is_issued:
        found["peer-cert-allowed-cn"] = PEER
    return found


NAME_OPTIONS = ("experimental-peer-skip-client-san-verification", "peer-skip-client-san-verification")
"""Until etcd 3.5, and since 3.6; one of the two is set, see `name_options`."""


def name_options(secured: MemberTls, version: str) -> dict[str, str]:
    """The options of etcd for one certificate of all members, by flag name; an empty value sets nothing.

    The listener for peers would compare the names in the certificate with the address of the member that
    dials, by reverse DNS, which knows neither wildcards nor the pods behind a Service with an address.
    """
    if secured.peer_secret is None:
        return {}
    is_early = parse_version(version).minor < _RENAMED_MINOR
    return dict(zip(NAME_OPTIONS, ("true", "") if is_early else ("", "true"), strict=True))


_RENAMED_MINOR = 6


def _files(prefix: str, file: str) -> dict[str, str]:
    return {f"{prefix}cert-file": f"{FOLDER}/{file}.crt", f"{prefix}key-file": f"{FOLDER}/{file}.key"}


# Clients


def ca_config_map(cluster: DesiredCluster, made: Authorities) -> RawObject:
    """The ConfigMap with which clients verify members."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of(cluster, ca_config_map_name(cluster.name), {}),
        "data": {"ca.crt": made.client.bundle.decode()},
    }


def ca_config_map_name(cluster: str) -> str:
    """Its name."""
    return f"{cluster}-ca"
