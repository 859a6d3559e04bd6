"""What cert-manager has issued for one side of a cluster, beside the CAs of others in the same Secret.

SIDE-ROLE.crt has the certificates of CAs as usual, without keys: `old` and `next` may have several. And
SIDE-leaf-FILE.crt and .key are what members are to have as FILE.crt and FILE.key. The operator keeps that
here, because the Secrets of cert-manager have only what is newest, of a CA that members may not trust yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.serialization import Encoding

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed
from etcd_operator.controllers.etcd_cluster.decide.certificates.issuers import renamed
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import IssuedLeaf, Record, Side
from etcd_operator.controllers.etcd_cluster.manifests.authority import Authority
from etcd_operator.errors import Conflict
from etcd_operator.pki.authority import KeyPair
from etcd_operator.pki.decode import certificates
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate

OPERATOR = "operator"
"""The file of the operator's own certificate."""

LEAFS: Mapping[Side, tuple[str, ...]] = {"peer": ("peer", "peer-dial"), "client": ("server", OPERATOR)}
"""The files of each side; the first one is that of the listener. That of the operator is in no Secret of
members, but in that of a seed, as `seed`.
"""

CHANGES = (Change.TRUST, Change.TAKE)
"""Those that need what is offered."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a Secret of cert-manager has."""

    issued: IssuedLeaf
    pair: KeyPair = field(repr=False)  # with its chain
    ca: bytes  # to which the chain leads


Offers = Mapping[Side, tuple[Offer, ...]]
"""Of each side all, or none."""

NO_OFFERS: Offers = {}


def made_of(offers: tuple[Offer, ...], now: datetime) -> Authority:
    """One side of a new cluster. Raises BadCertificate if a key has two CAs."""
    leafs = tuple(each.issued for each in offers)
    clash = renamed(each.ca for each in leafs)
    if clash:
        raise BadCertificate(clash)
    cas = {each.issued.ca.key_id: each for each in reversed(offers)}
    trusted = tuple(each.issued.ca for each in cas.values())
    record = Record(trusted=trusted, issuer=leafs[0].ca.key_id, since=now, leafs=leafs, changed=now)
    return _authority(record, {each.issued.ca.fingerprint: each.ca for each in offers}, _pairs(offers))


def altered(
    found: Authority, change: Change, offers: tuple[Offer, ...], now: datetime, keeps: timedelta
) -> Authority:
    """One side after a change of its record. Raises Conflict without what the change needs."""
    needed = change in CHANGES
    offered = tuple(each.issued for each in offers)
    if needed and not offered:
        raise Conflict("cert-manager's certificates were changed since they were read: trying again")
    known = {
        ca.fingerprint: pair.certificate for ca, pair in zip(found.record.trusted, found.pairs, strict=True)
    }
    known |= {each.issued.ca.fingerprint: each.ca for each in offers}
    trusted = {ca.key_id for ca in found.record.trusted}
    if change is Change.TAKE and not {each.ca.key_id for each in offered} <= trusted:
        raise Conflict("cert-manager's CA was changed since it was read: trying again")
    record = changed(found.record, change, now=now, offered=offered, keeps=keeps)
    return _authority(record, known, _pairs(offers) if change is Change.TAKE else found.leafs)


def _authority(record: Record, cas: Mapping[str, bytes], leafs: Mapping[str, KeyPair]) -> Authority:
    pairs = tuple(KeyPair(cas[ca.fingerprint], b"") for ca in record.trusted)
    return Authority(record=record, pairs=pairs, leafs=leafs)


def _pairs(offers: tuple[Offer, ...]) -> dict[str, KeyPair]:
    return {each.issued.file: each.pair for each in offers}


def leaf_names(side: Side) -> tuple[str, ...]:
    """The entries with leafs, without their ends."""
    return tuple(_entry(side, file) for file in LEAFS[side])


def _entry(side: Side, file: str) -> str:
    return f"{side}-leaf-{file}"


def leaf_files(side: Side, leafs: Mapping[str, KeyPair]) -> dict[str, bytes]:
    """The leafs of a side, as entries of the Secret."""
    return {
        f"{_entry(side, file)}.{end}": content
        for file, pair in leafs.items()
        for end, content in (("crt", pair.certificate), ("key", pair.key))
    }


def read(
    files: Mapping[str, bytes], side: Side, roles: tuple[str, ...], leafs: Mapping[str, str]
) -> Authority:
    """The same, as it was stored. leafs: the ID of the key of each one's CA.

    Its record has the CAs and leafs only. Raises KeyError, and BadCertificate.
    """
    bundles = {role: files.get(f"{side}-{role}.crt", b"") for role in roles}
    pems = [
        each.public_bytes(Encoding.PEM)
        for role, bundle in bundles.items()
        if bundle
        for each in certificates(bundle, f"{side}-{role}.crt")
    ]
    trusted = tuple(map(describe, pems))
    by_id = {ca.key_id: ca for ca in trusted}
    pairs = {
        file: KeyPair(files[f"{_entry(side, file)}.crt"], files[f"{_entry(side, file)}.key"])
        for file in leafs
    }
    issued = tuple(
        IssuedLeaf(file=file, leaf=describe(pairs[file].certificate), ca=by_id[key_id])
        for file, key_id in leafs.items()
    )
    record = Record(trusted=trusted, issuer=issued[0].ca.key_id, since=None, leafs=issued)
    return Authority(record=record, pairs=tuple(KeyPair(pem, b"") for pem in pems), leafs=pairs)
