"""What users may do once manifests/user-roles.yaml is applied, by the word of a real API server."""

from pathlib import Path

import pytest

from unit.api.contract.conftest import Kubectl, wait_for

pytestmark = pytest.mark.cluster
ROLES = Path(__file__).resolve().parents[3] / "manifests" / "user-roles.yaml"
COREOS, IMPROBABLE = "etcdclusters.coreos.com", "etcdclusters.etcd.improbable.io"
PEERS = "etcdpeers.etcd.improbable.io"
READS, WRITES = ("get", "list", "watch"), ("create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module")
def bound(kubectl: Kubectl) -> Kubectl:
    """The users viewer, editor and owner, bound to view, edit and admin in the namespace."""
    assert kubectl("apply", "-f", str(ROLES)).code == 0
    for user, role in (("viewer", "view"), ("editor", "edit"), ("owner", "admin")):
        named = [f"{user}-of-etcd", f"--clusterrole={role}", f"--user={user}"]
        assert kubectl("create", "rolebinding", *named).code == 0
    wait_for(lambda: may(kubectl, "editor", "create", IMPROBABLE), "roles are aggregated")
    return kubectl


def may(kubectl: Kubectl, user: str, verb: str, resource: str, *more: str) -> bool:
    """The word of `kubectl auth can-i --as`."""
    return kubectl.by(user)("auth", "can-i", verb, resource, *more).out.strip() == "yes"


@pytest.mark.parametrize("user", ["viewer", "editor", "owner"])
def test_who_may_view_sees_clusters_and_peers(bound: Kubectl, user: str) -> None:
    allowed = [(verb, kind) for kind in (COREOS, IMPROBABLE, PEERS) for verb in READS]
    assert [each for each in allowed if not may(bound, user, *each)] == []


@pytest.mark.parametrize("user", ["editor", "owner"])
def test_who_may_edit_makes_changes_scales_and_deletes_clusters(bound: Kubectl, user: str) -> None:
    allowed = [(verb, kind) for kind in (COREOS, IMPROBABLE) for verb in WRITES]
    assert [each for each in allowed if not may(bound, user, *each)] == []
    assert all(may(bound, user, "patch", kind, "--subresource=scale") for kind in (COREOS, IMPROBABLE))
    assert may(bound, user, "delete", PEERS)


@pytest.mark.parametrize("user", ["viewer", "editor", "owner"])
def test_nobody_of_them_writes_peers_or_what_the_operator_remembers(bound: Kubectl, user: str) -> None:
    refused = [(verb, PEERS) for verb in ("create", "update", "patch", "operate")]
    assert [each for each in refused if may(bound, user, *each)] == []
    assert not any(may(bound, user, "patch", kind, "--subresource=status") for kind in (COREOS, IMPROBABLE))


def test_who_may_only_view_writes_nothing(bound: Kubectl) -> None:
    refused = [(verb, kind) for kind in (COREOS, IMPROBABLE, PEERS) for verb in WRITES]
    assert [each for each in refused if may(bound, "viewer", *each)] == []


def test_who_is_bound_to_nothing_sees_nothing(bound: Kubectl) -> None:
    assert not may(bound, "nobody", "get", IMPROBABLE)
