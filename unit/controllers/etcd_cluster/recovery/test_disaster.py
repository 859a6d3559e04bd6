"""Recovery from the newest of survivors and backups: what is chosen, after what proof, at any write."""

from collections.abc import Callable

import msgspec
import pytest

from etcd_operator.pods.reports import RestorableBackups
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS
from unit.passes.disasters import assert_restored, backed_up, members, recovery, silent_last_member, store
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives
from unit.passes.quorum_losses import is_reason, lose
from unit.passes.tools import backup, holding, stored

LOST = ("it dies after the reply", "the reply is lost and it dies")


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
        assert "QuorumReturned" not in reasons, "the old quorum did not"
        made.rest()


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


def test_a_backup_that_somebody_else_put_there_does_not_win_against_a_survivor() -> None:
    with backed_up() as made:
        cluster_id = made.status(COREOS)["clusterID"]
        made.tools.restorable = holding(backup(10**6, cluster_id=cluster_id, is_authentic=False))
        lose(made, 0, 1)
        made.run_until(is_reason(made, "UnknownBackup"))
        made.wait(120.0)
        assert members(made) == ["c-0002"]
        made.tools.restorable = holding(None)
        made.settle()
        assert recovery(made)["source"]["name"] == "c-0002"


def test_what_the_status_recorded_is_restored_after_the_token_was_replaced() -> None:
    with backed_up() as made:
        name = store(made, ahead=1)
        whole = made.tools.restorable.newest
        assert whole is not None
        made.tools.report = stored(revision=whole.revision, cluster_id=whole.cluster_id)
        made.run_until(lambda: made.status(COREOS)["backup"]["name"] == name)
        unknown = msgspec.structs.replace(whole, is_authentic=False)
        made.tools.report = msgspec.structs.replace(made.tools.report, newest=unknown, unknown=unknown)
        made.tools.restorable = holding(unknown)
        lose(made, 0, 1)
        made.settle()
        assert_restored(made, name, 3, 4, 5)
        assert made.condition(COREOS, "BackupHealthy")["status"] == "True"


@pytest.mark.parametrize("is_put_back", [True, False])
def test_an_older_backup_is_restored_only_if_the_newest_one_is_moved_away(is_put_back: bool) -> None:
    """The Secret of the tool has an earlier token, with which it has stored only the older one."""
    with backed_up() as made:
        newer = store(made, ahead=1)
        latest = made.tools.restorable.newest
        older = store(made)
        known = made.tools.restorable.newest
        assert latest is not None
        assert known is not None
        made.tools.report = stored(latest.revision, cluster_id=latest.cluster_id)
        made.run_until(lambda: made.status(COREOS)["backup"]["name"] == newer)
        unknown = msgspec.structs.replace(latest, is_authentic=False)
        made.tools.report = msgspec.structs.replace(made.tools.report, newest=known, unknown=unknown)
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "UnknownBackup"))
        made.wait(120.0)
        assert members(made) == []
        assert newer in made.condition(COREOS, "Degraded")["message"]
        if is_put_back:
            made.tools.report = stored(latest.revision, cluster_id=latest.cluster_id)
            made.tools.restorable = holding(latest)
        else:
            made.tools.report = msgspec.structs.replace(made.tools.report, unknown=None)
        made.settle()
        assert_restored(made, newer if is_put_back else older, 3, 4, 5)


@pytest.mark.parametrize(("damaged", "text"), [((), "there is no backup"), (("x",), "(damaged: x)")])
def test_without_a_whole_backup_nothing_is_made_and_that_is_reported(
    damaged: tuple[str, ...], text: str
) -> None:
    with backed_up() as made:
        made.tools.restorable = holding(None, *damaged)
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "NoBackup"))
        assert text in made.condition(COREOS, "Degraded")["message"]
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


def test_a_survivor_is_not_held_for_a_backup_of_a_deleted_cluster_of_its_name() -> None:
    """The tool has reported only that one before it fell silent; revisions of two clusters do not compare."""
    with backed_up() as made:
        made.tools.report = stored(revision=1000, cluster_id="deadbeef")
        made.run_until(lambda: made.status(COREOS)["backup"]["clusterID"] == "deadbeef")
        made.tools.problem = "no route to host"
        lose(made, 0, 1)
        made.settle()
        assert recovery(made)["source"]["name"] == "c-0002"


def test_a_tool_that_had_more_than_the_survivor_is_waited_for_until_a_person_decides() -> None:
    with backed_up() as made:
        made.tools.report = stored(revision=7)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 7)
        made.tools.problem = "no route to host"
        lose(made, 0, 1)
        made.run_until(is_reason(made, "BackupPending"))
        made.wait(60.0)  # twice as long as beside a survivor that has all
        assert members(made) == ["c-0002"]
        made.edit(COREOS, "c", {"spec": {"backup": None}})
        made.settle()
        assert recovery(made)["source"]["name"] == "c-0002"


def test_a_tool_that_has_named_a_newer_backup_and_falls_silent_is_waited_for() -> None:
    with backed_up() as made:
        made.tools.report = stored(revision=2)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 2)
        name = store(made, ahead=1)
        whole = made.tools.restorable
        made.tools.restorable = RestorableBackups(is_listed=True, candidate=whole.newest)
        lose(made, 0, 1)
        made.run_until(is_reason(made, "BackupPending"))
        made.tools.problem = "no route to host"
        made.wait(60.0)
        assert recovery(made) == {}
        made.tools.restorable, made.tools.problem = whole, ""
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_the_half_minute_of_a_silent_tool_begins_with_its_silence() -> None:
    with backed_up() as made:
        made.tools.report = stored(revision=2)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 2)
        made.tools.restorable = RestorableBackups()
        lose(made, 0, 1)
        made.wait(60.0)
        made.tools.problem = "no route to host"
        made.wait(20.0)
        assert recovery(made) == {}
        made.wait(15.0)
        made.settle()
        assert recovery(made)["source"]["name"] == "c-0002"


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


def test_the_backup_that_is_named_to_a_person_is_not_restored_unasked() -> None:
    """Until the last member is given up, a quorum may serve where the operator does not reach it."""
    with backed_up() as made:
        silent_last_member(made, store(made))
        assert made.condition(COREOS, "Degraded")["message"].endswith("kubectl delete pod c-0002")
        made.wait(60.0)
        assert members(made) == ["c-0002"]
        newer = store(made, ahead=1)
        lose(made, 2)
        made.settle()
        assert_restored(made, newer, 3, 4, 5)


def lose_before_a_learner_joins(made: Bench) -> None:
    """One of three is lost, and the others before the learner that is to replace it has any data."""
    made.world.unmountable.add("c-0003")
    lose(made, 0)
    made.run_until(lambda: "c-0003" in members(made))
    made.kill()
    lose(made, 1, 2)
    made.world.unmountable.clear()
    made.world.settle()


def test_a_learner_that_never_joined_keeps_no_backup_from_being_restored() -> None:
    with backed_up() as made:
        name = store(made)
        lose_before_a_learner_joins(made)
        made.start()
        made.settle()
        assert_restored(made, name, 4, 5, 6)
        assert "PodRemoved" in {event["reason"] for event in made.events()}


def test_the_tool_is_not_asked_what_it_has_while_a_quorum_serves() -> None:
    with backed_up() as made:
        made.wait(300.0)
        lose(made, 0)
        made.settle()
        assert made.tools.running == []
        assert made.names(REPLICA_SETS) == ["c-backup-tool"]


def lose_all(made: Bench) -> None:
    made.kill()
    lose(made, 0, 1, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("loss", "seed"),
    [(lose_all, 3), (lose_before_a_learner_joins, 4)],
    ids=["all", "all but an empty learner"],
)
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_backup_is_restored_once_whatever_happens_at_any_write(
    disturbance: Disturbance, loss: Callable[[Bench], None], seed: int
) -> None:
    writes = EachWrite()
    for write in writes:
        with backed_up() as made:
            name = store(made)
            loss(made)
            made.edit(COREOS, "c", {"spec": {"size": 1}})
            writes.goes_on = survives(made, disturbance, write, lambda: None)
            assert_restored(made, name, seed)
    assert writes.runs >= 10
