"""All volumes of a persistent cluster are gone, or a backup has more: it is recovered from that by name."""

import pytest

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from unit.fakes.apiserver import Answer
from unit.fakes.apiserver.faults import Fault, Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, JOBS
from unit.passes.bench import bootstrapped
from unit.passes.bodies import BACKUPS, IMPROBABLE, PEERS, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, run_or_die
from unit.passes.expected import assert_finished
from unit.passes.manual_recoveries import LOST, RECOVER, ask, is_reason, lose, message
from unit.passes.restored_clusters import DAMAGED, Stored, stored
from unit.passes.tools import OWN_IMAGE

NAME = "c0de/backup:one/1"


def test_a_cluster_without_volumes_is_recovered_from_its_backup_by_name() -> None:
    with stored() as (made, backups):
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        assert f"{RECOVER}={NAME}" in message(made)
        assert "the backup one of c, taken at 2026-01-01T00:00:00Z" in message(made)
        made.wait(SILENCE + 1.0)
        ask(made, "c0de/backup:two/1")
        made.wait(3.0)
        assert (made.reason(IMPROBABLE), made.names(JOBS)) == ("RecoveryRefused", [])
        ask(made, NAME)
        backups.until_restored()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert made.etcd.etcd.revision >= REVISION_BUMP
        assert_finished(made, IMPROBABLE, 3, (0, 1, 3))
        loss = made.condition(IMPROBABLE, "DataLossPossible")
        assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromBackup")
        assert "revision 2: writes after the backup are missing" in loss["message"]


def test_a_right_to_read_jobs_that_is_missing_for_a_while_is_reported_and_the_recovery_goes_on() -> None:
    """Its Jobs are read live; that they are refused drops no cluster."""

    def refuse(request: Request) -> Fault | None:
        is_refused = request.plural == "jobs" and not request.is_watch and request.method in ("GET", "POST")
        return Answer(code=403, reason="Forbidden", message="jobs is forbidden") if is_refused else None

    with stored(size=1) as (made, backups):
        lose(made, 0)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(SILENCE + 1.0)
        made.api.before = refuse
        ask(made, NAME)
        made.wait(60.0)
        assert made.reason(IMPROBABLE) == "Forbidden"
        assert "jobs is forbidden" in message(made)
        made.api.before = no_fault
        backups.until_restored()


def test_an_own_image_that_is_unknown_for_a_while_is_reported_and_the_recovery_goes_on() -> None:
    with stored() as (made, backups):
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(SILENCE + 1.0)
        made.tools.own_image = ""
        ask(made, NAME)
        made.wait(600.0)
        assert (made.reason(IMPROBABLE), made.names(JOBS)) == ("ImageUnknown", [])
        assert "--backup-image" in message(made)
        made.tools.own_image = OWN_IMAGE
        backups.until_restored()
        assert_finished(made, IMPROBABLE, 3, (0, 1, 3))


def test_an_id_with_leading_zeros_is_that_of_this_cluster() -> None:
    with bootstrapped(*persistent(size=3), alone=False) as made:
        Stored(made).take(clusterID="000000000000c0de")
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        assert f"{RECOVER}={NAME}" in message(made)


def test_a_damaged_backup_is_followed_by_an_older_one_that_a_person_names() -> None:
    with bootstrapped(*persistent(size=3), alone=False) as made:
        backups = Stored(made)
        backups.take("older")
        made.etcd.put(b"more", b"value")
        backups.take("newer")
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        made.clock.advance(SILENCE + 1.0)
        backups.failure = DAMAGED
        ask(made, "c0de/backup:newer/1")
        backups.until(is_reason(made, "RecoveryRefused"))
        assert f"{RECOVER}=c0de/backup:newer/2" in message(made)
        backups.failure = None
        ask(made, "c0de/backup:older/2")
        backups.until_restored()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert made.names(PEERS) == ["c-0", "c-1", "c-4"]
        assert made.names(CLAIMS) == made.names(PEERS), "the claim of the attempt that failed is deleted"


def test_a_backup_that_changes_at_the_last_moment_is_not_restored() -> None:
    with stored() as (made, _):
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        made.clock.advance(SILENCE + 1.0)
        made.api.freeze_views()
        made.edit(BACKUPS, "one", {"status": {"sha256": "cd" * 32}}, subresource="status")
        ask(made, NAME)
        made.api.thaw_views()
        made.wait(3.0)
        recovery = made.status(IMPROBABLE)["recovery"]
        assert recovery["source"]["sha256"] == "cd" * 32


WRITES = 14
"""From the entry in status to the recorded cluster ID, for one member."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1, WRITES + 2, 4))
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_recovery_is_made_once_whatever_happens_at_any_write(disturbance: Disturbance, first: int) -> None:
    for write in range(first, first + 4):
        with stored(size=1) as (made, backups):
            lose(made, 0)
            made.run_until(is_reason(made, "QuorumLost"))
            made.clock.advance(SILENCE + 1.0)
            made.kill()
            ask(made, NAME)
            has_come = disturbance.arrange(made, write)
            if not run_or_die(made, backups.until_restored):
                backups.go_on()
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert made.status(IMPROBABLE)["recovery"]["generation"] == 1
            assert has_come() or write > WRITES
