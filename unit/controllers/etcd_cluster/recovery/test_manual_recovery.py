"""Persistent members whose data is gone: given up by name only, and never twice, at any write."""

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import PEER_LABEL, bootstrapped
from unit.passes.bodies import IMPROBABLE, PEERS, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, run_or_die, survives
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import (
    LOST,
    NAME,
    RECOVER,
    ask,
    assert_recovered,
    fetching,
    is_reason,
    lose,
    lost_and_asked,
    lost_for_long,
    message,
    silence_two,
    until_recovered,
)


def test_a_majority_that_is_gone_is_given_up_only_by_name() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lose(made, 0, 1)
        made.run_until(is_reason(made, "QuorumLost"))
        assert "c-0 (its claim is missing), c-1 (its claim is missing)" in message(made)
        assert f"{RECOVER}={NAME}" in message(made)
        (event,) = (e for e in made.events() if e["reason"] == "QuorumLost")
        assert (event["type"], f"{RECOVER}={NAME}" in event["message"]) == ("Warning", True)
        made.wait(SILENCE + 1.0)
        for wrong in ("c0de/c-1/1", "c0de/c-2/2", "yes"):
            ask(made, wrong)
            made.wait(3.0)
            assert (made.reason(IMPROBABLE), f"requests {wrong}," in message(made)) == (
                "RecoveryRefused",
                True,
            )
        assert made.objects()["peers"] == ["c-0", "c-1", "c-2"]
        assert "recovery" not in made.status(IMPROBABLE)
        ask(made)
        made.settle()
        assert_recovered(made)
        (kept,) = (e for e in made.events() if e["reason"] == "PVCKept")
        assert "kept PersistentVolumeClaim c-2 " in kept["message"]
        kinds = {e["reason"]: e["type"] for e in made.events()}
        assert {kinds[r] for r in ("QuorumLost", "RecoveryStarted", "Recovered")} == {"Warning"}
        assert "QuorumReturned" not in kinds, "the old quorum did not"


WRITES = 16
"""From the entry in status to the recorded cluster ID, for two members of which one is left."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1, WRITES + 2, 4))
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_recovery_is_made_once_whatever_happens_at_any_write(disturbance: Disturbance, first: int) -> None:
    for write in range(first, first + 4):
        with lost_and_asked() as made:
            has_come = disturbance.arrange(made, write)
            if not run_or_die(made, lambda made=made: until_recovered(made)):  # type: ignore[misc]
                made.world.settle()
                made.start()
                until_recovered(made)
            assert made.etcd.running[0] == "c-2"
            assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
            assert made.status(IMPROBABLE)["recovery"]["generation"] == 1
            assert len(made.etcds.by_token) == 2
            assert has_come() or write > WRITES


@pytest.mark.exhaustive
@pytest.mark.parametrize("write", range(WRITES, 40, 9))
def test_all_members_join_beside_claims_that_are_kept_whatever_happens(write: int) -> None:
    with lost_and_asked(to=2) as made:
        assert survives(made, DISTURBANCES["the reply is lost and it dies"], write, lambda: None)
        assert_recovered(made, (0, 2), ("c-1",))


def test_a_claim_that_was_kept_is_not_reported_as_removed() -> None:
    """The operator dies after it has annotated the claim, before it has deleted the peer."""
    with lost_and_asked() as made:
        annotations = made.get(CLAIMS, "c-1")["metadata"]["annotations"]
        made.start(dies_at=3, dies_on="persistentvolumeclaims")
        assert not run_or_die(made, lambda: until_recovered(made))
        assert made.get(CLAIMS, "c-1")["metadata"]["annotations"].keys() > annotations.keys(), (
            "it is annotated"
        )
        assert "c-1" in made.names(PEERS)
        made.start()
        made.settle()
        assert_recovered(made, (2,), ("c-1",))
        assert "PVCRemoved" not in made.event_reasons(), "nor is one that was lost before"


def test_claims_are_deleted_at_once_where_the_annotation_reports_so() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lost_for_long(made)
        ask(made, f"{NAME}/delete-claims")
        made.settle()
        assert_recovered(made, kept=())
        assert "PVCKept" not in made.event_reasons()
        assert made.reason(IMPROBABLE) == ""


def test_nothing_moves_when_a_person_deletes_what_was_kept() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        silence_two(made)
        ask(made)
        made.settle()
        assert_recovered(made, (3, 4, 5), ("c-0", "c-1", "c-2"))
        writes = made.etcd.etcd.writes[:]
        for name in ("c-0", "c-1", "c-2"):
            made.delete(CLAIMS, name)
        made.settle()
        assert made.etcd.etcd.writes == writes
        assert_recovered(made, (3, 4, 5), ())


def test_a_recovered_cluster_that_is_created_again_resumes_beside_what_was_given_up() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lost_for_long(made)
        ask(made)
        made.settle()
        made.delete(IMPROBABLE, "c")
        made.drain()
        before = made.get(CLAIMS, "c-2")
        made.create(*persistent(size=3))
        made.settle()
        assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
        assert_finished(made, IMPROBABLE, 3, (0, 1, 3), kept=("c-2",))
        assert made.get(CLAIMS, "c-2") == before


@pytest.mark.parametrize("kind", [PEERS, PODS], ids=["peer", "pod"])
def test_a_seed_that_is_deleted_when_it_serves_comes_back_on_its_data(kind: Kind) -> None:
    with lost_and_asked() as made:
        made.start()
        until_recovered(made)
        (pod,) = made.api.objects.select(PODS, labels=f"{PEER_LABEL}=c-2")
        made.delete(kind, "c-2" if kind is PEERS else pod["metadata"]["name"])
        made.settle()
        assert_recovered(made, (2,), ("c-1",))


def test_clients_go_over_when_all_of_the_old_cluster_is_being_deleted() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        seen = set()
        old = {peer["metadata"]["uid"] for peer in made.api.objects.select(PEERS)}

        def observe() -> bool:
            peers = [peer["metadata"] for peer in made.api.objects.select(PEERS)]
            stay = any(peer["uid"] in old and "deletionTimestamp" not in peer for peer in peers)
            selector = made.get(SERVICES)["spec"]["selector"].items()
            pods = [pod["metadata"]["labels"] for pod in made.api.objects.select(PODS)]
            seen.add((stay, "c-3" in {labels[PEER_LABEL] for labels in pods if selector <= labels.items()}))
            return made.is_settled(IMPROBABLE, "c")

        lost_for_long(made)
        ask(made)
        made.run_until(observe)
        assert seen - {(False, False)} == {(True, False), (False, True)}


def test_a_pod_of_a_silent_node_that_comes_back_finds_no_clients_and_no_quorum() -> None:
    """Two members are only silent and are given up: their pods cannot be ended, and run on."""
    with bootstrapped(*persistent(size=3)) as made:
        nodes = {r.pod: r.node for r in made.world.running}
        mine = {
            p["metadata"]["labels"][PEER_LABEL]: p["metadata"]["name"] for p in made.api.objects.select(PODS)
        }
        for name in ("c-0", "c-1"):
            made.etcd.etcd.freeze(name)
            made.world.up.discard(nodes[mine[name]])
        made.run_until(is_reason(made, "QuorumLost"))
        assert "c-0 (silent), c-1 (silent)" in message(made)
        made.clock.advance(SILENCE + 1.0)
        ask(made)
        made.run_until(lambda: made.status(IMPROBABLE)["clusterID"] != "c0de")
        old = made.etcds.by_token[made.get(IMPROBABLE)["metadata"]["uid"]].etcd
        for name in ("c-0", "c-1"):
            old.thaw(name)
        made.wait(10.0)
        selector = made.get(SERVICES)["spec"]["selector"]
        left = [
            p["metadata"] for p in made.api.objects.select(PODS) if p["metadata"]["name"] in mine.values()
        ]
        assert {p["labels"][PEER_LABEL] for p in left} == {"c-0", "c-1"}
        assert not [p for p in left if selector.items() <= p["labels"].items()]
        assert all(p.get("deletionTimestamp") for p in left)
        assert [m["name"] for m in made.status(IMPROBABLE)["members"]] == ["c-3", "c-4", "c-5"]
        made.world.up |= set(nodes.values())
        made.settle()
        assert_recovered(made, (3, 4, 5), ("c-0", "c-1", "c-2"))


def test_an_annotation_that_is_left_never_begins_a_second_recovery() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lost_for_long(made)
        ask(made)
        made.settle()
        assert_recovered(made)
        new = made.status(IMPROBABLE)["clusterID"]
        lose(made, 0, 1)
        made.run_until(is_reason(made, "RecoveryRefused"))
        assert f"requests {NAME}, which is not" in message(made)
        assert f"{RECOVER}={new}/c-3/2" in message(made)
        made.clock.advance(SILENCE + 1.0)
        made.wait(3.0)
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 1
        ask(made, f"{new}/c-3/2")
        made.settle()
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 2
        assert_finished(made, IMPROBABLE, 3, (0, 1, 4), kept=("c-2", "c-3"))


def test_a_quorum_that_comes_back_before_the_seed_serves_is_kept() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        for name in ("c-0", "c-1"):
            made.etcd.etcd.freeze(name)
        made.run_until(is_reason(made, "QuorumLost"))
        made.clock.advance(SILENCE + 1.0)
        made.etcds.holds_seeds = "save"
        ask(made)
        made.run_until(lambda: "c-3" in made.objects()["pods"])
        for name in ("c-0", "c-1"):
            made.etcd.etcd.thaw(name)
        made.run_until(is_reason(made, "RecoveryRefused"))
        assert made.event_reasons().count("QuorumReturned") == 1
        assert made.condition(IMPROBABLE, "DataLossPossible") == {}
        ask(made, None)
        made.settle()
        assert made.status(IMPROBABLE)["clusterID"] == "c0de"
        assert_finished(made, IMPROBABLE, 3)

        for name in ("c-0", "c-1"):
            made.etcd.etcd.freeze(name)
        ask(made)
        made.run_until(is_reason(made, "RecoveryRefused"))
        assert f"{RECOVER}=c0de/c-2/2" in message(made)


def test_a_seed_that_somebody_deletes_is_followed_by_another_that_is_asked_for() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        fetching(made)
        made.delete(PEERS, "c-3")
        made.run_until(is_reason(made, "RecoveryRefused"))
        assert f"{RECOVER}=c0de/c-2/2" in message(made)
        assert (made.objects()["peers"], made.objects()["claims"]) == (["c-0", "c-1", "c-2"], ["c-2", "c-3"])
        made.etcds.holds_seeds = ""
        ask(made, "c0de/c-2/2")
        made.settle()
        assert_recovered(made, (0, 1, 4), generation=2)
