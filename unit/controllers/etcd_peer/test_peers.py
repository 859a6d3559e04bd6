"""EtcdPeers that a user made or changed: nothing is done for them."""

from typing import Any

import pytest

from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.controllers.etcd_peer.observe import PeerObserver
from etcd_operator.errors import Unavailable
from etcd_operator.keys import Key
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, REPLICA_SETS
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, PEERS, STORAGE, persistent
from unit.passes.expected import assert_finished

CLEANUP = "etcdpeer.etcd.improbable.io/pvc-cleanup"
EVIL = "secret-0.secret.other.svc"


def peer(name: str, *, uid: str = "", cluster: str = "c", **bootstrap: Any) -> Json:
    """A peer as written by somebody who knows how the operator writes them."""
    owner = {
        "apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdCluster", "name": cluster,
        "uid": uid, "controller": True,
    }  # fmt: skip
    start = {
        "initialClusterState": "Existing",
        "initialClusterToken": uid or "token",
        "static": {"initialCluster": [{"name": name, "host": f"{name}.{cluster}.default.svc"}]},
    }
    return {
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": "etcd", "etcd.improbable.io/cluster-name": cluster},
            "ownerReferences": [owner] if uid else [],
        },
        "spec": {
            "clusterName": cluster, "version": "3.6.16", "storage": STORAGE, "bootstrap": start | bootstrap
        },
    }  # fmt: skip


def answered(made: Bench, name: str) -> Json:
    """The one condition of a peer."""
    (condition,) = made.get(PEERS, name)["status"]["conditions"]
    return dict(condition)


def test_a_peer_without_a_cluster_makes_nothing_and_reports_why_once() -> None:
    with bench() as made:
        made.start()
        made.create(PEERS, peer("mine-0", cluster="mine", survivor=EVIL))
        made.wait(30.0)
        assert (made.names(CLAIMS), made.names(REPLICA_SETS)) == ([], [])
        condition = answered(made, "mine-0")
        assert (condition["status"], condition["reason"]) == ("False", "PeerRefused")
        assert "create an EtcdCluster instead" in condition["message"]
        made.rest()


def test_a_peer_that_names_a_cluster_which_is_not_its_owner_makes_nothing() -> None:
    with bootstrapped(*persistent()) as made:
        before = made.objects()
        token = made.status(IMPROBABLE)["bootstrap"]["token"]
        made.create(PEERS, peer("c-7", initialClusterToken=token))
        made.wait(30.0)
        assert made.objects() == {**before, "peers": [*before["peers"], "c-7"]}
        assert "is not its controller" in answered(made, "c-7")["message"]
        made.delete(PEERS, "c-7")
        assert_finished(made, IMPROBABLE, 3)


def test_a_cleanup_that_the_operator_did_not_begin_deletes_no_claim() -> None:
    with bootstrapped(*persistent()) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        claims = made.names(CLAIMS)
        assert claims == ["c-0", "c-1", "c-2"]
        forged = peer("c-1", uid="of-a-cluster-that-is-gone")
        forged["metadata"]["finalizers"] = [CLEANUP]
        made.create(PEERS, forged)
        made.delete(PEERS, "c-1")
        made.wait(30.0)
        assert made.names(PEERS) == []
        assert made.names(CLAIMS) == claims


@pytest.mark.parametrize(
    "change",
    [
        {"bootstrap": {"survivor": EVIL}},
        {"bootstrap": {"initialClusterToken": "of-a-neighbour"}},
        {"bootstrap": {"static": {"initialCluster": [{"name": "c-1", "host": EVIL}]}}},
        {"podTemplate": {"metadata": {"labels": {"etcd.improbable.io/restored": "true"}}}},
    ],
)
def test_a_member_that_was_changed_by_hand_keeps_what_it_has(change: Json) -> None:
    with bootstrapped(*persistent()) as made:
        template = made.get(REPLICA_SETS, "c-1")["spec"]["template"]
        before = made.get(PEERS, "c-1")["spec"]
        made.edit(PEERS, "c-1", {"spec": change})
        for _ in range(20):
            made.turn()
            assert made.get(REPLICA_SETS, "c-1")["spec"]["template"] == template
        made.wait(30.0)
        assert made.get(REPLICA_SETS, "c-1")["spec"]["template"] == template
        if made.get(PEERS, "c-1")["spec"] != before:  # existing-only start: the operator writes it anew
            assert made.reason(IMPROBABLE) == "PeerRefused", "although its pod runs"
            assert made.condition(IMPROBABLE, "Degraded")["message"].startswith("c-1: spec.")
        if "survivor" in str(change):
            assert made.get(PEERS, "c-1")["spec"] == before, (
                "or its existing-only start would hold up all else for ever"
            )
        made.rest()
        made.delete(PEERS, "c-1")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_a_changed_peer_is_reported_and_repaired_by_deleting_it() -> None:
    with bootstrapped(*persistent()) as made:
        made.edit(PEERS, "c-1", {"spec": {"bootstrap": {"initialClusterToken": "of-a-neighbour"}}})
        made.delete(REPLICA_SETS, "c-1")
        made.run_until(lambda: made.reason(IMPROBABLE) == "PeerRefused")
        assert "initialClusterToken" in made.condition(IMPROBABLE, "Degraded")["message"]
        assert "c-1" not in made.names(REPLICA_SETS)
        made.delete(PEERS, "c-1")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_a_peer_whose_observation_fails_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    is_broken = True
    observe = PeerObserver.observe

    def fail(self: PeerObserver, key: Key, peer: EtcdPeer) -> Any:
        if is_broken and key.name == "c-1":
            raise Unavailable("no such version")
        return observe(self, key, peer)

    monkeypatch.setattr(PeerObserver, "observe", fail)
    with bench() as made:
        made.start()
        made.create(*persistent())
        made.run_until(lambda: "no such version" in str(made.status(IMPROBABLE)))
        is_broken = False
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
