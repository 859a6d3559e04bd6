"""Certificates that have all expired while nobody was there are replaced without a restart."""

import base64
import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind
from e2e.support.resizing import members_of
from e2e.support.secured import content, issuer, root
from e2e.support.space import Space
from e2e.support.story import Story
from e2e.support.waiting import LONG
from e2e.test_tls import BOTH, settled
from e2e.test_tls_writer import hurry
from etcd_operator.etcd.handshake import shake
from etcd_operator.pki.authority import KeyPair, issue
from etcd_operator.pki.description import describe
from etcd_operator.pki.names import Names
from etcd_operator.pki.profiles import Leaf

MINUTE = timedelta(minutes=1)
ROUNDS = 2
MOST = 2
"""Of three: the operator reads each Secret every five minutes, and may find one in that very minute."""


def shortened(leaf: bytes, ca: KeyPair) -> KeyPair:
    """A certificate for the same purpose that is valid for a minute."""
    found = describe(leaf)
    (usage,) = found.usages
    names = Names(dns=found.dns, addresses=tuple(map(ip_address, found.addresses)))
    owner = "" if found.common_name else "etcd server"
    wanted = Leaf(usage=usage, common_name=found.common_name, organization=owner, names=names)
    return issue(ca, wanted, now=datetime.now(UTC), duration=MINUTE)


def shorten(space: Space, document: Document) -> None:
    """Replace each certificate of members by one that is valid for a minute, as if the others had expired."""
    signers = {"server": issuer(space, document, "client")}
    signers |= dict.fromkeys(["peer", "peer-dial"], issuer(space, document, "peer"))
    for member in members_of(space, document):
        found = content(space, f"{member}-tls")
        data: dict[str, bytes] = {}
        for name, ca in signers.items():
            made = shortened(found[f"{name}.crt"], ca)
            data |= {f"{name}.crt": made.certificate, f"{name}.key": made.key}
        encoded = {name: base64.b64encode(text).decode() for name, text in data.items()}
        patch = ("--type=merge", "--patch-file=/dev/stdin")
        space.kubectl("patch", "secret", f"{member}-tls", *patch, stdin=json.dumps({"data": encoded}))


def distrust(space: Space, document: Document) -> dict[str, str]:
    """By address, why new clients do not accept a member; empty if they do."""
    hurry(space)
    given = root(space, document)
    assert given is not None
    shaken = {address: shake(f"{address}:2379", given) for address in space.addresses(document)}
    assert len(shaken) == 3
    return {address: each.distrust or each.refusal for address, each in shaken.items()}


def containers(space: Space, document: Document) -> set[tuple[str, str]]:
    """What a restart changes."""
    return {
        (pod["metadata"]["uid"], each["containerID"])
        for pod in space.pods(document)
        for each in pod["status"]["containerStatuses"]
    }


@pytest.mark.long
@pytest.mark.timeout(3600)
@each_kind()
def test_leafs_of_a_minute_expire_and_are_replaced_without_a_restart(space: Space, kind: Any) -> None:
    """Clients that are connected, and the members among themselves, notice nothing."""
    document = space.create(kind(tls=BOTH))
    settled(space, document)
    before = containers(space, document)

    def expire() -> None:
        expired: set[str] = set()

        def are_expired() -> bool:
            found = distrust(space, document)
            expired.update(at for at, reason in found.items() if reason == "certificate has expired")
            return len(expired) >= MOST

        shorten(space, document)
        space.wait_for(document, are_expired, "most have expired", within=2 * LONG, every=5)

    def wait_valid() -> None:
        def are_valid() -> bool:
            return not any(distrust(space, document).values())

        space.wait_for(document, are_valid, "all are valid again", within=3 * LONG, every=5)

    with Story(space, document, f"{document['metadata']['name']}-client-tls") as story:
        for _ in range(ROUNDS):
            story.take("certificates expire", expire)
            story.take("they are replaced", wait_valid)
    story.judge()
    assert containers(space, document) == before
    settled(space, document)
