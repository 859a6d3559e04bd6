"""Every manifest of both groups, held against a file that people can read."""

import re
from typing import Any

import msgspec
import pytest

from etcd_operator.render import ephemeral, persistent, seed
from etcd_operator.render.options import ALL_ADDRESSES
from unit.render.cases import (
    ASKED_SEEDING,
    BARE_FOUNDING,
    FOUNDING,
    FULL,
    FULL_BARE,
    IMAGE,
    JOINING,
    PLAIN,
    PLAIN_BARE,
    RESUMING,
    SEEDING,
    peer_of,
)
from unit.render.conftest import GOLDEN, Compare

MANIFESTS = {
    "ephemeral-client-service": ephemeral.client_service(PLAIN_BARE),
    "ephemeral-member-service": ephemeral.member_service(PLAIN_BARE, "db-0001"),
    "ephemeral-budget": ephemeral.budget(PLAIN_BARE, 2),
    "ephemeral-pod": ephemeral.pod(PLAIN_BARE, "db-0001", BARE_FOUNDING),
    "ephemeral-pod-full": ephemeral.pod(FULL_BARE, "db-0001", BARE_FOUNDING),
    "ephemeral-seed": seed.pod(PLAIN_BARE, "db-0003", SEEDING),
    "ephemeral-seed-full": seed.pod(FULL_BARE, "db-0003", SEEDING),
    "persistent-client-service": persistent.client_service(PLAIN),
    "persistent-budget": persistent.budget(PLAIN, 2),
    "persistent-peer": persistent.peer(PLAIN, "db-1", FOUNDING),
    "persistent-peer-full": persistent.peer(FULL, "db-1", FOUNDING),
    "persistent-peer-sealed": persistent.peer(PLAIN, "db-1", RESUMING),
    "persistent-peer-joining": persistent.peer(PLAIN, "db-3", JOINING),
    "persistent-peer-seed": persistent.peer(PLAIN, "db-3", ASKED_SEEDING),
    "persistent-claim-seed": persistent.claim(peer_of(PLAIN, "db-3", ASKED_SEEDING)),
    "persistent-replica-set-seed": persistent.replica_set(
        peer_of(PLAIN, "db-3", ASKED_SEEDING), IMAGE, is_restored=True
    ),
    "persistent-replica-set-seed-full": persistent.replica_set(
        peer_of(FULL, "db-5", ASKED_SEEDING), IMAGE, is_restored=True
    ),
    "persistent-replica-set-seed-sealed": persistent.replica_set(
        peer_of(PLAIN, "db-3", RESUMING), IMAGE, is_restored=True
    ),
    "persistent-claim-root": persistent.claim(peer_of(PLAIN), is_root_owned=True),
    "persistent-replica-set-root": persistent.replica_set(peer_of(PLAIN), IMAGE, is_root_owned=True),
    "persistent-claim": persistent.claim(peer_of(PLAIN)),
    "persistent-claim-full": persistent.claim(peer_of(FULL)),
    "persistent-replica-set": persistent.replica_set(peer_of(PLAIN), IMAGE),
    "persistent-replica-set-full": persistent.replica_set(peer_of(FULL), IMAGE),
    "persistent-replica-set-sealed": persistent.replica_set(peer_of(PLAIN, start=RESUMING), IMAGE),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_as_its_golden_file(name: str, golden: Compare) -> None:
    manifest: Any = msgspec.json.decode(msgspec.json.encode(MANIFESTS[name]))

    golden(name, manifest)


def test_no_manifest_names_an_address_of_one_family_alone() -> None:
    """Whether pods get IPv4, IPv6 or both is not known when they are rendered."""
    found = {
        name: set(re.findall(r"(?<![\w.:])(?:\d+\.\d+\.\d+\.\d+|[0-9a-f]*::[0-9a-f:]*)(?![\w.])", text))
        for name, text in ((path.stem, path.read_text()) for path in GOLDEN.glob("*.yaml"))
    }
    for name, addresses in found.items():
        assert addresses - {ALL_ADDRESSES} in (set(), set(persistent.LOOPBACKS)), name
    assert found["persistent-replica-set"] == {ALL_ADDRESSES, *persistent.LOOPBACKS}
    assert found["ephemeral-pod"] == {ALL_ADDRESSES}


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(MANIFESTS)
