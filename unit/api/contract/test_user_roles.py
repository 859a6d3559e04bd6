"""Permissions of users with manifests/user-roles.yaml, on a real API server."""

from pathlib import Path

import pytest

from unit.api.contract.conftest import Requests
from unit.waiting import eventually

pytestmark = pytest.mark.cluster
ROLES = Path(__file__).resolve().parents[3] / "manifests" / "user-roles.yaml"
COREOS, IMPROBABLE = "etcdclusters.coreos.com", "etcdclusters.etcd.improbable.io"
PEERS, BACKUPS = "etcdpeers.etcd.improbable.io", "etcdbackups.etcd.improbable.io"
SCHEDULES = "etcdbackupschedules.etcd.improbable.io"
READS, WRITES = ("get", "list", "watch"), ("create", "update", "patch", "delete", "deletecollection")
AGGREGATED = (
    ("viewer", "get"),
    ("editor", "get"),
    ("editor", "create"),
    ("owner", "get"),
    ("owner", "create"),
)


@pytest.fixture(scope="module")
def bound(kubectl: Requests) -> Requests:
    """The users viewer, editor and owner, bound to view, edit and admin in the namespace."""
    assert kubectl("apply", "-f", str(ROLES)).code == 0
    for user, role in (("viewer", "view"), ("editor", "edit"), ("owner", "admin")):
        named = [f"{user}-of-etcd", f"--clusterrole={role}", f"--user={user}"]
        assert kubectl("create", "rolebinding", *named).code == 0
    for user, verb in AGGREGATED:
        eventually(lambda user=user, verb=verb: may(kubectl, user, verb, IMPROBABLE), "roles are aggregated")  # type: ignore[misc]
    return kubectl


def may(kubectl: Requests, user: str, verb: str, resource: str, *more: str) -> bool:
    """Whether `kubectl auth can-i --as` allows it."""
    return kubectl.by(user)("auth", "can-i", verb, resource, *more).out.strip() == "yes"


@pytest.mark.parametrize("user", ["viewer", "editor", "owner"])
def test_view_reads_clusters_and_peers(bound: Requests, user: str) -> None:
    allowed = [(verb, kind) for kind in (COREOS, IMPROBABLE, PEERS, BACKUPS, SCHEDULES) for verb in READS]
    assert [each for each in allowed if not may(bound, user, *each)] == []


@pytest.mark.parametrize("user", ["editor", "owner"])
def test_edit_creates_changes_scales_and_deletes_clusters(bound: Requests, user: str) -> None:
    allowed = [(verb, kind) for kind in (COREOS, IMPROBABLE, BACKUPS, SCHEDULES) for verb in WRITES]
    assert [each for each in allowed if not may(bound, user, *each)] == []
    assert all(may(bound, user, "patch", kind, "--subresource=scale") for kind in (COREOS, IMPROBABLE))
    assert may(bound, user, "delete", PEERS)


@pytest.mark.parametrize("user", ["viewer", "editor", "owner"])
def test_no_role_writes_peers_or_the_persisted_state(bound: Requests, user: str) -> None:
    refused = [(verb, PEERS) for verb in ("create", "update", "patch")]
    assert [each for each in refused if may(bound, user, *each)] == []
    assert not may(bound, user, "update", PEERS, "--subresource=operate")
    kinds = (COREOS, IMPROBABLE, BACKUPS, SCHEDULES)
    assert not any(may(bound, user, "patch", kind, "--subresource=status") for kind in kinds)


def test_view_writes_nothing(bound: Requests) -> None:
    refused = [(verb, kind) for kind in (COREOS, IMPROBABLE, PEERS, BACKUPS, SCHEDULES) for verb in WRITES]
    assert [each for each in refused if may(bound, "viewer", *each)] == []


def test_a_user_without_a_role_reads_nothing(bound: Requests) -> None:
    assert not may(bound, "nobody", "get", IMPROBABLE)
