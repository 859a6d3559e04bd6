"""Survivors that restarted without a quorum: their data is read beside them, and recovered from."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import READ_MAJORITY_AFTER
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readings
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS
from etcd_operator.keys import Key
from etcd_operator.pods.reports import FOLLOWED_A_LEADER
from unit.controllers.etcd_cluster.test_tls import secrets, secured
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS, SECRETS
from unit.passes import quorum_losses as ephemerals
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, run_or_die
from unit.passes.manual_recoveries import (
    LOST,
    NAME,
    ask,
    assert_recovered,
    is_reason,
    lose,
    message,
    pod_of,
    until_recovered,
)
from unit.passes.tools import OWN_IMAGE


def restart(made: Bench, name: str) -> None:
    """Its container restarts in its pod, as after a loss of power: it finds no quorum and answers nobody."""
    made.world.restart("default", pod_of(made, name))


def readers(made: Bench, name: str) -> list[str]:
    """The readers in the pod of a member."""
    pod = made.get(PODS, pod_of(made, name))
    return [each["name"] for each in pod["spec"].get("ephemeralContainers") or ()]


def lose_power(made: Bench) -> None:
    """Two of three volumes are gone, and the third member has restarted."""
    lose(made, 0, 1)
    restart(made, "c-2")


def is_offered(made: Bench) -> bool:
    return made.reason(IMPROBABLE) == "QuorumLost" and NAME in message(made)


def test_a_survivor_that_restarted_is_read_and_recovered_from_by_name() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lose_power(made)
        made.run_until(is_reason(made, "QuorumLost"))
        assert readers(made, "c-2") == []
        made.run_until(lambda: is_offered(made))
        assert readers(made, "c-2") == ["survivor-reader-1"]
        assert made.etcds.readers_asked[-1][1], "it requires a token"
        assert "c-2 at revision 2, read from its data" in message(made)
        assert made.objects()["peers"] == ["c-0", "c-1", "c-2"]
        ask(made)
        made.settle()
        assert_recovered(made)
        assert made.status(IMPROBABLE)["recovery"]["source"]["sha256"]
        asked = len(made.etcds.readers_asked)
        made.rest()
        assert len(made.etcds.readers_asked) == asked


def test_an_ephemeral_survivor_that_restarted_is_recovered_from() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        ephemerals.lose(made, 0, 1)
        restart(made, "c-0002")
        made.settle()
        ephemerals.assert_recovered(made, 3, 4, 5)
        assert made.status(COREOS)["recovery"]["source"]["name"] == "c-0002"
        assert "ReaderAdded" in made.event_reasons()


@pytest.mark.parametrize("kind", [COREOS, IMPROBABLE], ids=["ephemeral", "persistent"])
@pytest.mark.parametrize("sides", [("client",), ("peer", "client")], ids=" and ".join)
def test_the_survivor_of_a_cluster_with_tls_is_read_over_tls(kind: Kind, sides: tuple[str, ...]) -> None:
    """By both the operator and the seed, with the certificate of the member."""
    is_persistent = kind == IMPROBABLE
    tls: Json = {side: {"auto": {}} for side in sides}
    with secured(*(persistent if is_persistent else ephemeral)(size=3, tls=tls)) as made:
        made.etcd.put(b"key", b"value")
        (lose if is_persistent else ephemerals.lose)(made, 0, 1)
        restart(made, "c-2" if is_persistent else "c-0002")
        if is_persistent:
            made.run_until(lambda: is_offered(made))
            ask(made)
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert made.status(kind)["recovery"]["source"]["type"] == "OfflineSurvivor"
        assert not any("seed.key" in found for found in secrets(made).values())


@pytest.mark.parametrize("kind", [COREOS, IMPROBABLE], ids=["ephemeral", "persistent"])
def test_only_a_secret_has_the_token_of_a_reader(kind: Kind) -> None:
    """Who may read pods and EtcdPeers, but no Secrets, must not get at the data of the cluster."""
    is_persistent = kind == IMPROBABLE
    with bootstrapped(*(persistent if is_persistent else ephemeral)(size=3)) as made:
        made.etcds.holds_seeds = "restore"
        (lose if is_persistent else ephemerals.lose)(made, 0, 1)
        restart(made, "c-2" if is_persistent else "c-0002")
        if is_persistent:
            made.run_until(lambda: is_offered(made))
            ask(made)
        made.run_until(lambda: "crash" in json.dumps(made.api.objects.select(PODS)).lower())
        (token,) = {token for _, token in made.etcds.readers_asked}
        stored = [json.dumps(body) for _, body in made.api.objects.store.everything()]
        assert any("--name=survivor" in body for body in stored), "there is a seed"
        assert token
        assert not any(token in body for body in stored)


@pytest.mark.exhaustive
def test_a_secret_that_is_deleted_is_made_again() -> None:
    """The reader that runs refuses the new token, and ends; the next one requires it."""
    with bootstrapped(*persistent(size=3)) as made:
        lose_power(made)
        made.run_until(lambda: is_offered(made))
        made.delete(SECRETS, "c-survivor-reader")
        made.wait(KEPT_SECONDS)
        made.run_until(lambda: made.names(SECRETS) == ["c-survivor-reader"])
        made.run_until(lambda: is_offered(made))


def test_a_quorum_that_returns_ends_what_was_begun() -> None:
    """The reader ends by itself, and nothing is given up."""
    with bootstrapped(*persistent(size=2)) as made:
        made.world.up.discard(made.get(PODS, pod_of(made, "c-0"))["spec"]["nodeName"])
        made.etcd.etcd.freeze("c-0")
        restart(made, "c-1")
        made.clock.advance(60.0)
        made.run_until(lambda: readers(made, "c-1") == ["survivor-reader-1"], turns=3000)
        made.etcd.etcd.thaw("c-0")
        made.world.up.update(("node-1", "node-2", "node-3"))
        made.settle()
        assert made.status(IMPROBABLE)["clusterID"] == "c0de"
        made.rest()


def test_a_cluster_that_is_deleted_while_it_is_read_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[Key] = []
    with bootstrapped(*persistent(size=3)) as made:
        lose_power(made)
        made.run_until(lambda: is_offered(made))
        monkeypatch.setattr(Readings, "forget", lambda _, key: forgotten.append(key))
        made.delete(IMPROBABLE, "c")
        made.run_until(lambda: forgotten == [Key("default", "c")])


def test_a_reader_that_cannot_run_is_reported_with_the_next_step() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        made.world.unpullable.add(OWN_IMAGE)
        lose_power(made)
        made.run_until(is_reason(made, "QuorumLost"))
        made.run_until(lambda: "cannot be read" in message(made))
        assert "the data of c-2 cannot be read: ErrImagePull" in message(made)
        assert "docs/operations.md" in message(made)
        made.world.unpullable.clear()
        made.run_until(lambda: is_offered(made))


def test_a_reader_that_has_ended_is_followed_by_another() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lose_power(made)
        made.run_until(lambda: is_offered(made))
        made.world.end_added("default", pod_of(made, "c-2"))
        made.run_until(lambda: readers(made, "c-2") == ["survivor-reader-1", "survivor-reader-2"])
        made.run_until(lambda: is_offered(made))


def unreachable(made: Bench, code: int, minutes: int) -> list[list[str]]:
    """The readers in each pod, when no member answers and each reader ends after seconds with this code."""
    pods = [f"c-{number:04}" for number in range(3)]
    for name in pods:
        made.etcd.etcd.freeze(name)
    made.wait(READ_MAJORITY_AFTER)
    for _ in range(minutes * 12):
        made.wait(5.0)
        for name in pods:
            made.world.end_added("default", name, code)
    return [readers(made, name) for name in pods]


@pytest.mark.exhaustive
def test_members_that_follow_a_leader_are_read_once() -> None:
    """The operator does not reach them, their clients do: a NetworkPolicy, for example."""
    with bootstrapped(*ephemeral(size=3)) as made:
        assert unreachable(made, FOLLOWED_A_LEADER, minutes=10) == [["survivor-reader-1"]] * 3
        text = made.condition(COREOS, "Degraded")["message"]
        assert "follows a leader" in text
        assert "check that the operator reaches its port 2379" in text
        for number in range(3):
            made.etcd.etcd.thaw(f"c-{number:04}")
        made.settle()
        assert not made.reason(COREOS)


@pytest.mark.exhaustive
def test_readers_that_end_again_and_again_become_rare() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        counts = [len(added) for added in unreachable(made, 1, minutes=10)]
        assert all(5 <= count <= 7 for count in counts), counts
        assert "the next one is added later" in made.condition(COREOS, "Degraded")["message"]


def test_a_survivor_whose_data_changes_before_it_is_fetched_is_not_taken_for_what_was_read() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        lose_power(made)
        made.run_until(lambda: is_offered(made))
        made.etcds.holds_seeds = "save"
        ask(made)
        made.run_until(lambda: "c-3" in made.objects()["pods"])
        made.etcd.put(b"other", b"value")
        made.etcds.holds_seeds = ""
        made.run_until(lambda: "not the one that was verified" in message(made))
        assert "kubectl delete etcdpeer c-3" in message(made)
        assert "c-2" in made.objects()["peers"]


@contextmanager
def restarted_and_alone(kind: Kind, body: dict[str, object]) -> Iterator[Bench]:
    """One of two is gone for long and the other has restarted; there is no operator just now."""
    with bootstrapped(kind, body, alone=True) as made:
        made.edit(kind, "c", {"spec": {"replicas" if kind == IMPROBABLE else "size": 1}})
        made.kill()
        if kind == IMPROBABLE:
            lose(made, 0)
            restart(made, "c-1")
            ask(made, "c0de/c-1/1")
        else:
            ephemerals.lose(made, 0)
            restart(made, "c-0001")
        yield made


WRITES = 18


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1, WRITES, 3))
@pytest.mark.parametrize("group", [persistent, ephemeral], ids=["persistent", "ephemeral"])
@pytest.mark.parametrize("lost", LOST)
def test_a_recovery_is_made_once_whatever_happens_at_any_write(lost: str, group: object, first: int) -> None:
    kind, body = group(size=2)  # type: ignore[operator]
    for write in range(first, first + 3):
        with restarted_and_alone(kind, body) as made:
            has_come = DISTURBANCES[lost].arrange(made, write)
            if not run_or_die(made, lambda made=made, kind=kind: finish(made, kind)):  # type: ignore[misc]
                made.world.settle()
                made.start()
                finish(made, kind)
            assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
            assert made.status(kind)["recovery"]["generation"] == 1
            assert len(made.etcds.by_token) == 2
            assert has_come() or write > WRITES - 6


def finish(made: Bench, kind: Kind) -> None:
    if kind == IMPROBABLE:
        until_recovered(made)
    else:
        made.run_until(
            lambda: made.status(kind)["clusterID"] != "c0de" and "c-0001" not in made.objects()["pods"]
        )
