"""A bootstrapped cluster: what is reported, made again, and kept when etcd is silent or the cluster goes."""

from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SERVICES
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.expected import assert_finished

Make = Callable[..., tuple[Kind, Json]]


QUORUM_EVENTS = ["QuorumLost", "QuorumReturned"]
"""Of a cluster whose quorum was lost, and answers again."""


def stable_part(status: Json) -> Json:
    """What of a status must not change while nobody answers."""
    keys = ("clusterID", "bootstrap", "currentVersion", "clusterVersion", "nextOrdinal")
    members = [(m["name"], m["id"]) for m in status["members"]] if isinstance(status["members"], list) else []
    return {**{key: status[key] for key in keys if key in status}, "members": members}


@MAKERS
def test_each_operation_is_reported_once(make: Make) -> None:
    with bootstrapped(*make()) as made:
        made.rest(10)
        expected = {
            COREOS: ["BudgetCreated", "ClusterCreated", "NetworkPolicyCreated", *["PodCreated"] * 3]
            + ["ServiceCreated"] * 4,
            IMPROBABLE: ["BudgetCreated", "ClusterCreated", "NetworkPolicyCreated", *["PVCCreated"] * 3]
            + ["PeerCreated"] * 3
            + ["ReplicaSetCreated"] * 3 + ["ServiceCreated"] * 2,
        }  # fmt: skip
        assert made.event_reasons() == expected[made.clusters()[0][0]]


@MAKERS
def test_an_operator_that_is_started_again_reports_and_writes_nothing(make: Make) -> None:
    with bootstrapped(*make()) as made:
        made.rest()
        before = len(made.writes()), len(made.events())
        made.restart()
        made.rest()
        assert (len(made.writes()), len(made.events())) == before


@MAKERS
def test_what_is_known_stays_while_etcd_is_silent_and_nothing_is_done(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        objects, before = made.objects(), made.status(kind)
        names = list(made.etcd.running)
        for name in names:
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: made.condition(kind, "Available")["status"] == "False")
        made.wait(6.0)
        assert made.reason(kind) == "QuorumLost"
        assert stable_part(made.status(kind)) == stable_part(before)
        assert made.objects() == objects
        for name in names:
            made.etcd.etcd.thaw(name)
        made.settle()
        assert_finished(made, kind, 3)
        assert made.etcd.etcd.writes == []
        assert [reason for reason in made.event_reasons() if "Quorum" in reason] == QUORUM_EVENTS
        (returned,) = (event for event in made.events() if event["reason"] == "QuorumReturned")
        assert (returned["type"], returned["message"]) == ("Normal", "a quorum answers again")


@MAKERS
def test_a_deleted_cluster_goes_without_a_write_of_ours_and_only_claims_stay(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        made.drain()
        claims, writes = made.names(CLAIMS), len(made.writes())
        made.delete(kind, "c")
        made.drain()
        left = made.objects()
        assert left == {"services": [], "pods": [], "peers": [], "sets": [], "claims": claims}
        assert [(w.request.method, w.request.path) for w in made.writes()[writes:]] == []


@MAKERS
def test_a_cluster_that_is_terminating_is_left_to_kubernetes(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        made.drain()
        made.edit(kind, "c", {"metadata": {"finalizers": ["example.com/hold"]}})
        made.drain()
        writes = len(made.writes())
        made.delete(kind, "c")
        made.delete(SERVICES, "c")
        made.wait(30.0)
        assert len(made.writes()) == writes
        assert "c" not in made.names(SERVICES)


@pytest.mark.parametrize("kind", [SERVICES, PEERS, REPLICA_SETS], ids=lambda kind: kind.plural)
def test_what_a_user_deletes_under_a_persistent_cluster_comes_back_on_the_same_data(kind: Kind) -> None:
    with bootstrapped(*persistent()) as made:
        claims = {claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)}
        made.delete(kind, "c" if kind is SERVICES else "c-1")
        made.drain()
        made.settle()
        assert {claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)} == claims
        assert made.etcd.etcd.keys
        assert made.etcd.etcd.writes == []
        assert_finished(made, IMPROBABLE, 3)


@pytest.mark.parametrize("name", ["c", "c-0001"])
def test_a_service_that_a_user_deletes_under_an_ephemeral_cluster_comes_back(name: str) -> None:
    with bootstrapped(*ephemeral()) as made:
        made.delete(SERVICES, name)
        made.drain()
        made.settle()
        assert_finished(made, COREOS, 3)


def test_the_pods_of_a_persistent_cluster_come_back_on_their_data_without_a_change_of_members() -> None:
    with bootstrapped(*persistent()) as made:
        for pod in made.names(PODS):
            made.delete(PODS, pod)
        made.drain()
        made.settle()
        assert made.etcd.etcd.keys
        assert made.etcd.etcd.writes == []
        assert_finished(made, IMPROBABLE, 3)


def test_a_cluster_that_resumes_is_created_until_it_serves_and_reports_no_loss() -> None:
    with bootstrapped(*persistent()) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.create(*persistent())
        seen: list[str] = []

        def serves() -> bool:
            status = made.status(IMPROBABLE) or {}
            seen.extend(c["reason"] for c in status.get("conditions", ()) if c["type"] == "Available")
            return seen[-1:] == ["QuorumHealthy"]

        made.run_until(serves)
        made.settle()
        made.rest()
        assert set(seen) == {"Creating", "QuorumHealthy"}
        events = made.events()
        assert [e["message"] for e in events if e["reason"] == "Resumed"] == [
            "a quorum serves on the data of the claims, cluster ID c0de"
        ]
        assert {e["reason"] for e in events if e["type"] == "Warning"} == set()


def test_a_resumed_cluster_that_loses_its_quorum_at_once_reports_that() -> None:
    with bootstrapped(*persistent()) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.create(*persistent())
        made.run_until(lambda: made.is_settled(IMPROBABLE, "c"))
        for name in ("c-0", "c-1"):
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: made.reason(IMPROBABLE) == "QuorumLost")
        assert made.condition(IMPROBABLE, "Available")["reason"] == "QuorumLost"
        for name in ("c-0", "c-1"):
            made.etcd.etcd.thaw(name)
        made.settle()
        assert [reason for reason in made.event_reasons() if "Quorum" in reason] == QUORUM_EVENTS


def test_all_peers_deleted_at_once_come_back_on_their_claims() -> None:
    with bootstrapped(*persistent()) as made:
        for peer in made.names(PEERS):
            made.delete(PEERS, peer)
        made.drain()
        made.settle()
        assert made.etcd.etcd.keys
        assert_finished(made, IMPROBABLE, 3)


def test_a_member_whose_claim_is_lost_is_never_started_empty_under_its_old_identity() -> None:
    with bootstrapped(*persistent()) as made:
        old = made.etcd.etcd.member("c-1").id
        made.lose_claim("c-1")
        made.wait(60.0)
        assert made.etcd.etcd.keys
        again = [member for member in made.etcd.etcd.members if member.id == old and member.is_running]
        assert again == []
        assert len(made.etcd.etcd.voters) == 3
        assert made.is_settled(IMPROBABLE, "c")


def test_the_only_member_of_a_persistent_cluster_does_not_come_back_empty() -> None:
    with bootstrapped(*persistent(size=1)) as made:
        made.lose_claim("c-0")
        made.wait(60.0)
        assert made.names(CLAIMS) == []
        assert made.condition(IMPROBABLE, "Available")["reason"] == "QuorumLost"
        assert not made.etcd_runs()


def test_claims_of_different_clusters_are_not_touched() -> None:
    with bootstrapped(*persistent()) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        other = {"etcd.improbable.io/cluster-id": "bad"}
        made.edit(CLAIMS, "c-1", {"metadata": {"annotations": other}})
        before = [made.get(CLAIMS, name) for name in made.names(CLAIMS)]
        made.create(*persistent())
        made.run_until(lambda: made.reason(IMPROBABLE) == "ClaimsConflict")
        made.wait(60.0)
        assert [made.get(CLAIMS, name) for name in made.names(CLAIMS)] == before
        assert made.objects()["peers"] == []
        made.edit(CLAIMS, "c-1", {"metadata": {"annotations": {"etcd.improbable.io/cluster-id": "c0de"}}})
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def test_one_silent_cluster_holds_up_no_other() -> None:
    with bench() as made:
        made.start()
        made.create(*ephemeral("a"))
        made.settle()
        silence(made)
        made.create(*ephemeral("b", size=1))
        made.run_until(lambda: made.is_settled(COREOS, "b"))
        assert not made.is_settled(COREOS, "a")


def silence(made: Bench) -> None:
    """No member answers any more."""
    for name in list(made.etcd.running):
        made.etcd.etcd.freeze(name)
    made.run_until(lambda: made.reason(COREOS, "a") == "QuorumLost")
