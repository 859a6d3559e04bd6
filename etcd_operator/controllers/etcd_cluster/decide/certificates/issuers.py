"""How a CA of cert-manager is followed, which may have another key at any renewal of a certificate.

Its CAs are trusted by all members before what it has issued is taken: `Change.TRUST`, the restarts that load
them, `Change.TAKE`, and, once no certificate of it is valid any more, `Change.FORGET`. In the terms of
`state.Phase`: `TRUSTING`, `REISSUING`, and `STABLE` again, also while a former CA is still trusted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.certificates import facts
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase, Situation
from etcd_operator.pki import lifetimes
from etcd_operator.pki.decode import MOST_CERTIFICATES
from etcd_operator.pki.description import Description

MOST_TRUSTED = 10
"""CAs of one side, for an issuer that has another one every few days. No file may have more than
`MOST_CERTIFICATES`, and so many are trusted only where members would be cut off otherwise.
"""


def at_once(found: Situation) -> Change | None:
    """What is done whatever else is wrong: all members accept what is taken, or refuse what they have.

    A renewed leaf is taken without a quorum, as the operator renews those that it signs itself. To trust one
    more CA is no risk.
    """
    if not _is_newer(found) or refusal(found):
        return None
    if not _trusts_offered(found):
        return Change.TRUST
    may_wait = _is_untried(found) and not _is_late(found)
    is_lost = bool(found.record.expired(found.now))
    return Change.TAKE if is_lost or (_is_accepted(found) and not may_wait) else None


@dataclass(frozen=True, slots=True)
class Following:
    """What is done once all members have followed the record, and the cluster is healthy."""

    change: Change
    message: str
    waits: bool = False  # whether clients have their time first


def following(found: Situation) -> Following | None:
    """The same, for a change that may wait. None: all have what is offered, or that is not known.

    While it is not known, a CA that was added for it remains trusted.
    """
    if _is_newer(found) and _is_untried(found) and not refusal(found):
        return Following(Change.TAKE, "what cert-manager has issued is taken, whose CA all trust", waits=True)
    if found.record.phase is Phase.TRUSTING and not found.offered:
        return None
    if found.record.phase is not Phase.STABLE:
        return Following(Change.END, "the rotation of the CA is over")
    if found.record.outlived(found.now, found.keeps):
        return Following(Change.FORGET, "a former CA is no longer trusted")
    return None


def refusal(found: Situation) -> str:
    """Why the CAs of what is offered are not trusted; empty if they are, or may be."""
    clash = renamed((*found.record.trusted, *(each.ca for each in found.offered)))
    if clash:
        return clash
    known = {ca.key_id for ca in found.record.trusted}
    wanted = known | {each.ca.key_id for each in found.offered}
    most = MOST_CERTIFICATES if found.record.expired(found.now) else MOST_TRUSTED
    if wanted == known or len(wanted) <= most:
        return ""
    return (
        f"cert-manager's issuer has another CA, and {len(known)} are trusted: it is, too, once a former one "
        "is no more, leafDuration after that was replaced; change the CA of the issuer less often"
    )


def renamed(cas: Iterable[Description]) -> str:
    """Which of them have the same key ID, and another name or key, as a sentence; empty if none have.

    A bundle has one certificate for each key ID, and members refuse the leafs of the other.
    """
    known: dict[str, Description] = {}
    for ca in cas:
        former = known.setdefault(ca.key_id, ca)
        if former.identity != ca.identity:
            return (
                f"the CAs {former.subject[:80]} and {ca.subject[:80]} of cert-manager's issuer have the same "
                "subject key identifier, by which CAs are told apart, and another name (or its encoding), or "
                "another key: give the CA of the issuer another key, and renew the Certificates of this "
                "cluster"
            )
    return ""


def _is_newer(found: Situation) -> bool:
    """Whether cert-manager has issued something else than what is on record."""
    return bool(found.offered) and [each.serial for each in found.offered] != [
        each.serial for each in found.record.leafs
    ]


def _trusts_offered(found: Situation) -> bool:
    """Whether the CAs of what is offered are in the bundle on record, with the same end or a later one."""
    ends = {ca.key_id: ca.not_after for ca in found.record.trusted}
    cas = [each.ca for each in found.offered]
    return all(ca.key_id in ends and ca.not_after <= ends[ca.key_id] for ca in cas)


def _is_untried(found: Situation) -> bool:
    """Whether clients may not have loaded a CA of what is offered yet."""
    return any(each.ca.key_id in found.record.untried for each in found.offered)


def _is_accepted(found: Situation) -> bool:
    """Whether all members that run have loaded the CAs of what is offered."""
    bundles = [member.loaded for member in found.members if member.is_running]
    needed = {each.ca.key_id for each in found.offered}
    return all(facts.accepts(bundle, key_id, found.now) for bundle in bundles for key_id in needed)


def _is_late(found: Situation) -> bool:
    """Whether there is no time left to wait for a cluster that is healthy."""
    return any(lifetimes.is_late(each.leaf, found.now) for each in found.record.leafs)
