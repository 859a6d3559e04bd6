"""Questions about a situation that several steps ask.

A leaf is *due* once it is to be replaced, *proven* once the running process has presented it in a handshake,
and *overdue* if it should have been presented by now.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    ClientLeaf,
    ObservedCertificates,
    Situation,
    Trusted,
)
from etcd_operator.pki import lifetimes
from etcd_operator.pki.authority import BACKDATING
from etcd_operator.pki.description import Description

PATIENCE = timedelta(minutes=10)
"""How long a leaf that is not presented delays the renewal of others. Volumes follow in a minute or two."""


def accepts(trusted: Iterable[Trusted] | None, key_id: str, now: datetime) -> bool:
    """Whether a bundle has a valid certificate of that CA."""
    return any(ca.key_id == key_id and ca.is_valid(now) for ca in trusted or ())


def prints(trusted: Iterable[Trusted] | None) -> frozenset[str] | None:
    """Which certificates a bundle has; None if that is not known."""
    return None if trusted is None else frozenset(ca.fingerprint for ca in trusted)


def is_usable(found: Situation, leaf: Description) -> bool:
    """Whether it is valid, and all members that run accept it, as far as is known."""
    bundles = [member.loaded for member in found.members if member.is_running and member.loaded is not None]
    return leaf.is_valid(found.now) and all(
        accepts(bundle, leaf.issuer_key_id, found.now) for bundle in bundles
    )


def is_due(found: Situation, leaf: Description) -> bool:
    """Whether a leaf is to be replaced: it is of another CA, or near its end, or not valid.

    One of cert-manager only if there is another one.
    """
    if found.record.leafs:
        return leaf.serial != found.record.leafs[0].serial
    is_of_issuer = leaf.issuer_key_id == found.record.issuer
    return not is_of_issuer or lifetimes.is_due(leaf, found.now) or not leaf.is_valid(found.now)


def lacks_files(found: Situation, member: ObservedCertificates) -> bool:
    """Whether the Secret of a member has to be written."""
    if member.files is None or member.is_unwanted or is_due(found, member.files.leaf):
        return True
    return prints(member.files.bundle) != prints(found.record.trusted)


def lacks_leaf(found: Situation, client: ClientLeaf) -> bool:
    """Whether the Secret of a client has to be written."""
    return client.leaf is None or is_due(found, client.leaf)


def unchanged(found: Situation, due: Iterable[ObservedCertificates]) -> list[ObservedCertificates]:
    """Those that get another bundle with the leafs of cert-manager that they have.

    etcd reads it only as it starts, and no handshake shows it, so all are waited for at once.
    """
    if not found.record.leafs:
        return []
    return [
        member
        for member in due
        if member.files is not None and not member.is_unwanted and not is_due(found, member.files.leaf)
    ]


def is_urgent(found: Situation, member: ObservedCertificates) -> bool:
    """Whether a member has nothing to lose by new files: the leaf that it has is refused anyhow, or soon.

    Where leafs are short, there is no time to prove each of many members before the next.
    """
    if member.files is None or not is_usable(found, member.files.leaf):
        return True
    return lifetimes.is_late(member.files.leaf, found.now)


def unproven(found: Situation) -> list[ObservedCertificates]:
    """The members that run and have not presented the leaf that their Secret has."""
    return [member for member in found.members if member.is_running and not member.has_loaded_files]


def is_overdue(found: Situation, member: ObservedCertificates) -> bool:
    """Whether a leaf should have been presented by now."""
    return member.files is not None and found.now - _written(found, member.files.leaf) > PATIENCE


def _written(found: Situation, *certificates: Description) -> datetime:
    """When Secrets got these certificates, at the latest. cert-manager may have issued them long before."""
    newest = max(each.not_before for each in certificates) + BACKDATING
    return max(newest, found.record.changed) if found.record.changed is not None else newest


def reads_bundle(found: Situation, name: str) -> bool:
    """Whether a member that presents no leaf reads the recorded bundle if it starts again now.

    It has loaded that before, or its volume has had the time to follow its Secret.
    """
    member = next((each for each in found.members if each.name == name), None)
    if member is None or member.files is None:
        return False
    if prints(member.loaded) == prints(found.record.trusted):
        return True
    return found.now - _written(found, *found.record.trusted, member.files.leaf) > PATIENCE


def cut_off(found: Situation) -> list[ObservedCertificates]:
    """The members that run, and refuse a leaf that is on record, or that the issuer signs."""
    needed = {found.record.issuer, *(each.ca.key_id for each in found.record.leafs)}
    return [
        member
        for member in found.members
        if member.is_running
        and member.loaded is not None
        and not all(accepts(member.loaded, key_id, found.now) for key_id in needed)
    ]


def outdated(found: Situation) -> list[ObservedCertificates]:
    """The members that run, and are not known to have been started with exactly the recorded bundle."""
    wanted = prints(found.record.trusted)
    return [member for member in found.members if member.is_running and prints(member.loaded) != wanted]


def stopped(found: Situation) -> list[ObservedCertificates]:
    """The members that do not run."""
    return [member for member in found.members if not member.is_running]
