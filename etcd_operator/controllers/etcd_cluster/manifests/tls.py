"""The objects with a cluster's certificates. Keys are only in Secrets. How a pod has them: see `tls_pod`.

CAs       see `manifests.authorities`
members   a Secret for each, in the namespace of the cluster, which the pod mounts: no key of a CA
clients   the ConfigMap NAME-ca, with the certificates of the client CAs, and the Secret NAME-client-tls,
          with a certificate for them
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from etcd_operator.api.meta import RawObject
from etcd_operator.api.tls import ClientTls, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import lacks_files
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    Files,
    ObservedCertificates,
    Side,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, members_of
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    DAY,
    Authorities,
    decoded,
)
from etcd_operator.controllers.etcd_cluster.manifests.issued import OPERATOR
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.shared.decide.tls_spec import leaf_duration
from etcd_operator.controllers.shared.manifests.secret import secret as secret_of
from etcd_operator.formats import moment, timestamp
from etcd_operator.pki.authority import KeyPair, check, issue
from etcd_operator.pki.chains import anchor
from etcd_operator.pki.description import Description, describe, describe_bundle, described
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import is_due
from etcd_operator.pki.names import Names, names_of
from etcd_operator.pki.profiles import PEER_DIALING, Leaf, peer_server, server
from etcd_operator.pki.profiles import client as client_leaf

TOLERANCE = timedelta(hours=1)
"""A leaf is longer than its duration by `BACKDATING`, so only a larger difference means that the duration was
shortened.
"""

SEED_LASTS = DAY
"""How long a seed may copy data from a survivor: as `root`, for clusters with etcd's authentication."""

LONGEST_GRACE = timedelta(hours=1)
"""See `grace`."""

USER = "root"
"""etcd's name for the user that may do everything, once its authentication is on."""

SEED_FILE = "seed.crt"
"""The certificate of root in the Secret of a seed, see `SEED_LASTS`."""

WRITTEN = "written"
"""When a Secret with leafs of cert-manager was written, see `Files.written`."""

_OF_OPERATOR = {"seed": OPERATOR}
"""What a seed gets of the certificates of cert-manager, see `manifests.issued`."""

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
    pair: KeyPair | None = None  # what cert-manager has issued; None: the operator signs


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

    There is none where clients need no certificate, nor are about to, and where they need that of a user.
    """
    auth = cluster.persisted.auth
    needs_user = auth is not None and auth.enabled
    is_needed = cluster.secured.client_cert_auth or members_of(cluster.tls).client_cert_auth
    return holder(cluster.name) if cluster.secured.signed[1] and is_needed and not needs_user else ""


def shared_secret(cluster: str) -> str:
    """The name of the Secret for clients."""
    return secret_name(holder(cluster))


def holder(cluster: str) -> str:
    """Of the Secret for clients."""
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
    if cluster.has_peer_certificates:
        lasts = leaf_duration(tls.peer or PeerTls())
        wanted += [
            ("peer", "peer", peer_server(names), lasts),
            ("peer-dial", "peer", PEER_DIALING, lasts),
        ]
    return tuple(named(file, side, made, f"{side}-ca.crt", leaf, lasts) for file, side, leaf, lasts in wanted)


def named(file: str, side: Side, made: Authorities, ca_file: str, leaf: Leaf, lasts: timedelta) -> Named:
    """A leaf of the CA of a side that signs."""
    found = made.of(side)
    pair = found.leafs.get(_OF_OPERATOR.get(file, file))
    return Named(
        file=file,
        side=side,
        ca=found.issuer,
        bundle=found.bundle,
        ca_file=ca_file,
        leaf=leaf,
        duration=lasts,
        pair=pair,
    )


def client_leafs(cluster: DesiredCluster, made: Authorities) -> tuple[Named, ...]:
    """The leaf for clients, under the keys of a Secret of the type kubernetes.io/tls."""
    client = client_settings(cluster)
    return (named("tls", "client", made, "ca.crt", client_leaf(CLIENT), leaf_duration(client)),)


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
        pair = each.pair or issue(each.ca, each.leaf, now=now, duration=each.duration)
        files |= {f"{each.file}.crt": pair.certificate, f"{each.file}.key": pair.key}
        files[each.ca_file] = each.bundle
    if any(each.pair is not None for each in leafs):
        files[WRITTEN] = timestamp(now).encode()
    return secret_of(metadata_of(cluster, secret_name(holder), {}), files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a Secret has for one side."""

    files: Files | None  # None if something is missing, or cannot be read
    # the leafs can be read, but differ from those wanted: names, duration, issuer of a further leaf, or a
    # seed's leaf that is no longer needed
    is_unwanted: bool = False


def held(data: Mapping[str, str], leafs: tuple[Named, ...], side: Side, now: datetime) -> Held:
    """What is there of these leafs, of which the first one of a side is that of its listener."""
    is_left = SEED_FILE in data and SEED_FILE not in {f"{each.file}.crt" for each in leafs}
    own = [each for each in leafs if each.side == side]
    try:
        files = decoded(data)
        pairs = [KeyPair(files[f"{each.file}.crt"], files[f"{each.file}.key"]) for each in own]
        found = [describe(pair.certificate) for pair in pairs]
        bundle = describe_bundle(files[own[0].ca_file])
        written = moment(files.get(WRITTEN, b"").decode(errors="replace"))
        if own[0].pair is not None:
            leaf = _anchored(found[0], pairs[0], own[0].bundle, now)
            is_other = pairs != [each.pair for each in own]
            return Held(
                files=Files(leaf=leaf, bundle=bundle, written=written), is_unwanted=is_other or is_left
            )
        for each, pair in zip(own, pairs, strict=True):
            check(pair, each.ca)
    except (BadCertificate, KeyError):
        return Held(files=None)
    main, *others = found
    is_unwanted = any(map(_differs, own, found)) or any(
        is_due(leaf, now) or leaf.issuer_key_id != main.issuer_key_id for leaf in others
    )
    return Held(files=Files(leaf=main, bundle=bundle, written=written), is_unwanted=is_unwanted or is_left)


def _anchored(leaf: Description, pair: KeyPair, bundle: bytes, now: datetime) -> Description:
    """With the CA to which its chain leads in the place of one in between. Raises `BadCertificate`."""
    ca = anchor(pair.certificate, bundle, now=now)
    return replace(leaf, issuer_key_id=described(ca).key_id if ca is not None else "")


def is_current(made: Authorities, held: Mapping[Side, Held], now: datetime) -> bool:
    """Whether a Secret has what it should have: nothing is due, and everything of the CAs on record."""
    return not any(
        lacks_files(
            Situation(record=made.of(side).record, members=(), now=now),
            ObservedCertificates(name="", files=each.files, is_running=False, is_unwanted=each.is_unwanted),
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
    return set(found.names) != set(wanted.leaf.names.texts) or lasts > wanted.duration + TOLERANCE


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
