"""The Secret with the CAs of a cluster, in the namespace of the operator.

For each side (`peer`, `client`) it has SIDE.json, which says how far a rotation is, and SIDE-ROLE.crt with
SIDE-ROLE.key for each CA: `old` (only during a rotation), `issuer`, which signs, and `next`. If cert-manager
issues, see `manifests.issued`. `zone` is the domain of the names in leafs: two operators that find different
ones must not replace those of each other.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from etcd_operator.api.meta import RawObject, Value
from etcd_operator.api.tls import PeerTls
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed, makes_ca
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase, Record, Side
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import issued
from etcd_operator.controllers.etcd_cluster.manifests.authority import Authority
from etcd_operator.controllers.etcd_cluster.manifests.issued import NO_OFFERS, Offer, Offers
from etcd_operator.controllers.shared.decide.tls_spec import ca_duration, leaf_duration
from etcd_operator.controllers.shared.manifests.secret import encoded, secret
from etcd_operator.decoding import from_json
from etcd_operator.errors import Conflict
from etcd_operator.pki.authority import KeyPair, new_ca, renewed_ca
from etcd_operator.pki.description import Description, describe
from etcd_operator.pki.errors import BadCertificate

DAY = timedelta(days=1)

CA_LABEL = "etcd.improbable.io/authorities-of"
"""On the Secret with the CAs of a cluster: its UID. A label, so that `kubectl` finds it."""

CLUSTER_ANNOTATION = "etcd.improbable.io/cluster"
"""On the same Secret: API version, namespace and name of the cluster."""

ZONE = "zone"

OLD, ISSUER, NEXT = ROLES = ("old", "issuer", "next")


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """The CAs of a cluster: two sides, because each leaf of one may do what the other must not."""

    peer: Authority
    client: Authority
    zone: str  # of the names of Services in leafs
    version: str = ""  # resourceVersion of the Secret that they were read from

    def of(self, side: Side) -> Authority:
        """Those of a side."""
        return self.peer if side == "peer" else self.client


class _Stored(Value, frozen=True, kw_only=True):
    phase: Phase
    since: datetime | None = None
    request: str = ""
    changed: datetime | None = None  # as below, of cert-manager
    # by file, the ID of the key of the CA; none if the operator signs
    leafs: dict[str, str] = msgspec.field(default_factory=dict)
    former: dict[str, datetime] = msgspec.field(default_factory=dict)


def authorities_name(uid: str) -> str:
    """The name of the Secret with the CAs of a cluster."""
    return f"etcd-authorities-{uid}"


def new_authorities(
    cluster: DesiredCluster, now: datetime, zone: str, offers: Offers = NO_OFFERS
) -> Authorities:
    """The CAs of a cluster. The next ones are there from the beginning: no roll is needed to trust them.

    offers: of the sides for which cert-manager issues. Raises Conflict without those of one, and
    BadCertificate if they cannot be used.
    """

    def made(side: Side) -> Authority:
        if side in offers:
            return issued.made_of(offers[side], now)
        if _settings(cluster, side).cert_manager is not None:
            raise Conflict("cert-manager's certificates were changed since they were read: trying again")
        pairs = tuple(_new(cluster, side, now) for _ in range(2))
        issuer, following = (describe(pair.certificate) for pair in pairs)
        request = requested(cluster, side)
        record = Record(trusted=(issuer, following), issuer=issuer.key_id, since=now, request=request)
        return Authority(record=record, pairs=pairs)

    return Authorities(peer=made("peer"), client=made("client"), zone=zone)


def requested(cluster: DesiredCluster, side: Side) -> str:
    """The last rotation of a CA that is requested, by its name; empty for none."""
    return cluster.rotate_peer_ca if side == "peer" else cluster.rotate_client_ca


def _settings(cluster: DesiredCluster, side: Side) -> PeerTls:
    tls = cluster.tls
    found = None if tls is None else tls.peer if side == "peer" else tls.client
    return found or PeerTls()


def ca_lasts(cluster: DesiredCluster, side: Side) -> timedelta:
    """How long a CA that is made or renewed now is valid."""
    return ca_duration(_settings(cluster, side))


def keeps(cluster: DesiredCluster, side: Side) -> timedelta:
    """How long clients may use certificates of a CA that cert-manager's issuer has replaced."""
    return leaf_duration(_settings(cluster, side)) if side == "client" else timedelta()


def _new(cluster: DesiredCluster, side: Side, now: datetime) -> KeyPair:
    name = f"etcd {side}s {cluster.namespace}/{cluster.name}"[:64]
    return new_ca(name, now=now, duration=ca_lasts(cluster, side))


def altered(
    cluster: DesiredCluster,
    side: Side,
    found: Authority,
    change: Change,
    now: datetime,
    request: str,
    offers: tuple[Offer, ...] = (),
) -> Authority:
    """The CAs of a side after a change of their record. Raises as `issued.altered`."""
    if found.is_issued_elsewhere:
        return issued.altered(found, change, offers, now, keeps(cluster, side))
    if change is Change.RENEW:
        lasts = ca_lasts(cluster, side)
        pairs = tuple(renewed_ca(pair, now=now, duration=lasts) for pair in found.pairs)
        record = changed(found.record, change, now=now, made=_described(pairs))
        return Authority(record=record, pairs=pairs)
    new = (_new(cluster, side, now),) if makes_ca(found.record, change) else ()
    record = changed(found.record, change, now=now, request=request, made=_described(new))
    known = {describe(pair.certificate).key_id: pair for pair in (*found.pairs, *new)}
    return Authority(record=record, pairs=tuple(known[ca.key_id] for ca in record.trusted))


def _described(pairs: tuple[KeyPair, ...]) -> tuple[Description, ...]:
    return tuple(describe(pair.certificate) for pair in pairs)


def authorities_secret(cluster: DesiredCluster, namespace: str, made: Authorities) -> RawObject:
    """Their Secret. It has no owner: owners are in the same namespace."""
    files = {**_files("peer", made.peer), **_files("client", made.client), ZONE: made.zone.encode()}
    metadata = {
        "name": authorities_name(cluster.uid),
        "namespace": namespace,
        "labels": {CA_LABEL: cluster.uid},
        "annotations": {CLUSTER_ANNOTATION: f"{cluster.api_version} {cluster.namespace}/{cluster.name}"},
    }
    return secret(metadata, files)


def side_change(side: Side, made: Authority, version: str) -> RawObject:
    """The patch of the Secret that puts one side in the place of another, if nobody has changed it."""
    names = (*(f"{side}-{role}" for role in ROLES), *issued.leaf_names(side))
    gone = {f"{name}.{end}": None for name in names for end in ("crt", "key")}
    return {"metadata": {"resourceVersion": version}, "data": {**gone, **encoded(_files(side, made))}}


def _files(side: Side, made: Authority) -> dict[str, bytes]:
    record = made.record
    stored = _Stored(
        phase=record.phase,
        since=record.since,
        request=record.request,
        changed=record.changed,
        leafs={each.file: each.ca.key_id for each in record.leafs},
        former=dict(record.former),
    )
    files = {f"{side}.json": msgspec.json.encode(stored), **issued.leaf_files(side, made.leafs)}
    role = OLD
    for ca, pair in zip(record.trusted, made.pairs, strict=True):
        role = ISSUER if ca.key_id == record.issuer else NEXT if role != OLD else OLD
        name = f"{side}-{role}"
        files[f"{name}.crt"] = files.get(f"{name}.crt", b"") + pair.certificate
        if pair.key:
            files[f"{name}.key"] = pair.key
    return files


def authorities_of(data: Mapping[str, str], version: str = "") -> Authorities:
    """The CAs in such a Secret. Raises BadCertificate if it lacks one."""
    files = decoded(data)
    zone = files.get(ZONE, b"").decode(errors="replace").strip()
    if not zone:
        raise BadCertificate(f"it has no '{ZONE}', the domain of the cluster, like cluster.local")
    return Authorities(peer=_read(files, "peer"), client=_read(files, "client"), zone=zone, version=version)


def _read(files: Mapping[str, bytes], side: Side) -> Authority:
    try:
        stored = from_json(files[f"{side}.json"], _Stored)
        if stored.leafs:
            return _with(stored, issued.read(files, side, ROLES, stored.leafs))
        there = [role for role in ROLES if role == ISSUER or f"{side}-{role}.crt" in files]
        pairs = {role: KeyPair(files[f"{side}-{role}.crt"], files[f"{side}-{role}.key"]) for role in there}
    except KeyError as error:
        raise BadCertificate(f"it has no {error}") from None
    except msgspec.DecodeError:
        raise BadCertificate(f"{side}.json cannot be read") from None
    found = {role: describe(pair.certificate) for role, pair in pairs.items()}
    if not all(ca.is_ca for ca in found.values()):
        raise BadCertificate("it has a certificate that is not that of a CA")
    record = Record(trusted=tuple(found.values()), issuer=found[ISSUER].key_id, since=None)
    return _with(stored, Authority(record=record, pairs=tuple(pairs.values())))


def _with(stored: _Stored, found: Authority) -> Authority:
    """With how far a rotation is."""
    record = replace(
        found.record,
        phase=stored.phase,
        since=stored.since,
        request=stored.request,
        changed=stored.changed,
        former=tuple(stored.former.items()),
    )
    return replace(found, record=record)


def decoded(data: Mapping[str, str]) -> dict[str, bytes]:
    """The files in the data of a Secret. Raises BadCertificate."""
    try:
        return {name: base64.b64decode(text, validate=True) for name, text in data.items()}
    except binascii.Error:
        raise BadCertificate("it has an entry that is not base64") from None
