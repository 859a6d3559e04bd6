"""Recovery from the newest of survivors and backups: what is chosen, after what proof, at any write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from etcd_operator.core.backup_tool.report import Stock
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.reconcile.bench import Bench, bootstrapped
from unit.reconcile.bodies import COREOS, ephemeral
from unit.reconcile.disturbance import DISTURBANCES, Disturbance, survives
from unit.reconcile.tools import backup, holding, stored

BACKUP = {"backupIntervalInSecond": 600, "maxBackups": 3, "volumeSizeInMB": 1024}
LOST = ("it dies after the reply", "the reply is lost and it dies")


@contextmanager
def backed_up(size: int = 3) -> Iterator[Bench]:
    """A cluster with an acknowledged key, and a tool at work."""
    with bootstrapped(*ephemeral(size=size, backup=BACKUP), alone=False) as made:
        made.run_until(lambda: made.condition(COREOS, "BackupHealthy").get("status") == "True")
        made.settle()
        yield made


def store(made: Bench, *, ahead: int = 0) -> str:
    """A backup of what the cluster has now, at a revision that may be `ahead` of it; its name."""
    etcd = made.etcd.etcd
    newest = backup(etcd.revision + ahead, cluster_id=made.status(COREOS)["clusterID"])
    made.etcds.save(newest.name, etcd)
    made.tools.stock = holding(newest)
    return newest.name


def lose(made: Bench, *numbers: int) -> None:
    for number in numbers:
        made.delete(PODS, f"c-{number:04}")
    made.world.settle()


def members(made: Bench) -> list[str]:
    return [name for name in made.names(PODS) if not name.startswith("c-backup-tool")]


def recovery(made: Bench) -> Json:
    return dict(made.status(COREOS).get("recovery") or {})


def is_reason(made: Bench, reason: str) -> Callable[[], bool]:
    return lambda: made.reason(COREOS) == reason


def assert_restored(made: Bench, name: str, *numbers: int, key: tuple[bytes, int] = (b"value", 2)) -> None:
    """These members form one cluster with what the backup has."""
    assert members(made) == [f"c-{number:04}" for number in numbers]
    assert made.etcd.etcd.keys[b"key"] == key
    found = recovery(made)
    assert (found["survivor"], found["backup"]["name"], found["backup"]["age"]) == ("", name, 60)
    assert found["replaces"] != made.status(COREOS)["clusterID"]
    loss = made.condition(COREOS, "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromBackup")
    assert f"{name} of c, taken at 2026-01-01T00:00:00Z (1 min before)" in loss["message"]
    assert made.get(PODS, found["seed"])["metadata"]["labels"]["app"] == "etcd"


@pytest.mark.parametrize("size", [1, 3])
def test_when_all_is_gone_the_newest_backup_is_restored(size: int) -> None:
    with backed_up(size) as made:
        name = store(made)
        replaced = made.status(COREOS)["clusterID"]
        lose(made, *range(size))
        made.settle()
        assert_restored(made, name, *range(size, 2 * size))
        assert recovery(made)["replaces"] == replaced
        assert set(made.tools.running) == {replaced}
        reasons = {event["reason"]: event["type"] for event in made.events()}
        assert {reasons[each] for each in ("QuorumLost", "RecoveryStarted", "Recovered")} == {"Warning"}
        made.rest()


def test_the_seed_has_two_steps_and_only_the_token_of_the_tool() -> None:
    with backed_up() as made:
        name = store(made)
        made.etcds.holds_seeds = "save"
        lose(made, 0, 1, 2)
        made.run_until(lambda: "c-0003" in members(made))
        seed = made.get(PODS, "c-0003")
        fetch, restore = seed["spec"]["initContainers"]
        assert (fetch["image"], restore["image"]) == (
            "localhost/etcd-operator:test",
            "quay.io/coreos/etcd:v3.6.16",
        )
        assert {f"--name={name}", f"--sha256={'ab' * 32}", "--tool=c-backup-tool:19999"} <= set(fetch["args"])
        assert seed["spec"]["automountServiceAccountToken"] is False
        assert "app" not in seed["metadata"]["labels"]
        made.wait(30.0)
        assert members(made) == ["c-0003"]
        started = [each for each in made.event_reasons() if each.startswith("RecoveryStarted")]
        assert started == ["RecoveryStarted"], "waiting is no Event: too many would hide later ones"


def test_a_survivor_that_has_as_much_is_preferred() -> None:
    with backed_up() as made:
        store(made)
        lose(made, 0, 1)
        made.settle()
        assert recovery(made)["survivor"] == "c-0002"
        assert "backup" not in recovery(made)
        assert made.condition(COREOS, "DataLossPossible")["reason"] == "RecoveredFromSurvivor"


def test_a_backup_that_has_more_than_the_survivor_is_restored_and_the_survivor_kept_until_then() -> None:
    with backed_up() as made:
        name = store(made, ahead=1)
        made.etcds.holds_seeds = "restore"
        lose(made, 0, 1)
        made.run_until(lambda: "c-0003" in members(made))
        made.wait(30.0)
        assert members(made) == ["c-0002", "c-0003"]
        made.etcds.holds_seeds = ""
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_a_backup_of_an_earlier_etcd_cluster_never_replaces_a_survivor() -> None:
    with backed_up() as made:
        made.tools.stock = holding(backup(10**9, cluster_id="00000000deadbeef"))
        lose(made, 0, 1)
        made.settle()
        assert recovery(made)["survivor"] == "c-0002"


@pytest.mark.parametrize(("damaged", "said"), [((), "there is no backup"), (("x",), "(damaged: x)")])
def test_without_a_whole_backup_nothing_is_made_and_that_is_reported(
    damaged: tuple[str, ...], said: str
) -> None:
    with backed_up() as made:
        made.tools.stock = holding(None, *damaged)
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "NoBackup"))
        assert said in made.condition(COREOS, "Degraded")["message"]
        made.wait(120.0)
        made.rest()
        made.restart()
        made.wait(30.0)
        assert members(made) == []


def test_a_tool_that_does_not_answer_is_waited_for_when_all_is_gone() -> None:
    with backed_up() as made:
        name = store(made)
        made.tools.problem = "no route to host"
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "BackupPending"))
        made.wait(300.0)
        assert members(made) == []
        assert "no route to host" in made.condition(COREOS, "Degraded")["message"]
        made.tools.problem = ""
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_a_tool_that_still_reads_is_waited_for() -> None:
    with backed_up() as made:
        name = store(made)
        whole, made.tools.stock = made.tools.stock, Stock()
        lose(made, 0, 1, 2)
        made.wait(60.0)
        made.tools.stock = Stock(is_listed=True, candidate=whole.newest)
        made.wait(60.0)
        assert members(made) == []
        made.tools.stock = whole
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_beside_a_survivor_with_all_that_is_known_a_silent_tool_is_waited_for_half_a_minute() -> None:
    with backed_up() as made:
        made.tools.report = stored(revision=2)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 2)
        made.tools.problem = "no route to host"
        lose(made, 0, 1)
        made.wait(20.0)
        assert recovery(made) == {}
        made.wait(15.0)
        made.settle()
        assert recovery(made)["survivor"] == "c-0002"


def test_a_tool_that_had_more_than_the_survivor_is_waited_for_until_a_person_decides() -> None:
    with backed_up() as made:
        made.tools.problem = "no route to host"
        assert made.status(COREOS)["backup"]["revision"] == 7
        lose(made, 0, 1)
        made.run_until(is_reason(made, "BackupPending"))
        made.wait(60.0)  # twice as long as beside a survivor that has all
        assert members(made) == ["c-0002"]
        made.edit(COREOS, "c", {"spec": {"backup": None}})
        made.settle()
        assert recovery(made)["survivor"] == "c-0002"


def test_a_seed_that_is_lost_is_followed_by_another() -> None:
    with backed_up() as made:
        name = store(made)
        made.etcds.holds_seeds = "restore"
        lose(made, 0, 1, 2)
        made.run_until(lambda: "c-0003" in members(made))
        lose(made, 3)
        made.etcds.holds_seeds = ""
        made.settle()
        assert_restored(made, name, 4, 5, 6)
        assert recovery(made)["generation"] == 2


def test_a_seed_whose_survivor_is_lost_before_it_fetched_is_given_up_by_a_person() -> None:
    with backed_up() as made:
        name = store(made)
        made.etcds.holds_seeds = "save"
        lose(made, 0, 1)
        made.run_until(lambda: "c-0003" in members(made))
        lose(made, 2)
        made.run_until(lambda: "delete its pod to give that up" in str(made.condition(COREOS, "Degraded")))
        made.wait(60.0)
        assert "c-0004" not in members(made), "it may have fetched more, and not be seen to have done so"
        made.delete(PODS, "c-0003")
        made.run_until(lambda: "c-0004" in members(made))
        made.etcds.holds_seeds = ""
        made.settle()
        assert_restored(made, name, 4, 5, 6)


def test_a_seed_without_a_node_has_fetched_nothing_from_a_survivor_that_is_lost() -> None:
    with backed_up() as made:
        name = store(made)
        lose(made, 0, 1)
        nodes = set(made.world.up)
        made.world.up.clear()
        made.run_until(lambda: "c-0003" in members(made))
        made.api.objects.delete(PODS, "default", "c-0002", grace=0)
        made.run_until(lambda: members(made) == ["c-0004"])
        made.world.up.update(nodes)
        made.settle()
        assert_restored(made, name, 4, 5, 6)
        assert recovery(made)["generation"] == 2


def test_pods_without_labels_and_owner_keep_a_backup_from_being_restored() -> None:
    """The caches do not show them: only the live list does."""
    with backed_up() as made:
        store(made)
        made.kill()
        for number in range(3):
            patch = {"metadata": {"labels": None, "ownerReferences": None}}
            made.edit(PODS, f"c-{number:04}", patch)
        made.start()
        made.wait(60.0)
        assert recovery(made) == {}
        assert len(members(made)) == 3


def test_an_api_server_that_cannot_list_pods_keeps_a_backup_from_being_restored() -> None:
    with backed_up() as made:
        name = store(made)

        def refuse(request: Request) -> Fault | None:
            is_list = request.method == "GET" and request.path.endswith("/namespaces/default/pods")
            return Answer(code=503, reason="ServiceUnavailable") if is_list else None

        made.api.before = refuse
        lose(made, 0, 1, 2)
        made.wait(60.0)
        assert (recovery(made), members(made)) == ({}, [])
        made.api.before = lambda _: None
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_without_spec_backup_the_message_says_how_backups_would_be_found() -> None:
    with bootstrapped(*ephemeral(size=1), alone=False) as made:
        lose(made, 0)
        made.run_until(is_reason(made, "NoBackup"))
        assert "set spec.backup" in made.condition(COREOS, "Degraded")["message"]
        assert made.tools.asked == []


def test_the_tool_is_not_asked_what_it_has_while_a_quorum_serves() -> None:
    with backed_up() as made:
        made.wait(300.0)
        lose(made, 0)
        made.settle()
        assert made.tools.running == []
        assert made.names(REPLICA_SETS) == ["c-backup-tool"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_backup_is_restored_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on:
        with backed_up() as made:
            name = store(made)
            made.kill()
            lose(made, 0, 1, 2)
            made.edit(COREOS, "c", {"spec": {"size": 1}})
            goes_on = survives(made, disturbance, write, lambda: None)
            assert_restored(made, name, 3)
            write += 1
    assert write > 10
