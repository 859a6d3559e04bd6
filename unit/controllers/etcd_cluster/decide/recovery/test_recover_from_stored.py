"""A persistent cluster without a quorum is recovered from an EtcdBackup, by name only."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Adoption, Upgrade
from etcd_operator.api.shared_keys import RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmBackup,
    ConfirmSilence,
    DropSeed,
    FillSeed,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.controllers.shared.decide.job_state import JobState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    bootstrapped,
    changed,
    persistent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import NAME, lost
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    FAILED,
    LOST_CLAIM,
    LOST_NAME,
    RECOVERY,
    backup,
    filling,
    final_claim,
    job,
    live,
    remembering,
    served,
    sight,
)

ALL = (0, 1, 2)


def gone(asked: str = "") -> ClusterState:
    """All claims are gone; there is a backup."""
    state = lost(3, *ALL, asked=asked, backups=sight())
    for name in ("db-0", "db-1", "db-2"):
        state = changed(state, name, claim=None, answer=None)
    return state


OFFERS = [
    pytest.param(gone(), LOST_NAME, id="nobody is left"),
    pytest.param(replace(gone(), members=()), LOST_NAME, id="not even an object of a member"),
    pytest.param(lost(3, *ALL, backups=sight()), LOST_NAME, id="all are silent"),
    pytest.param(lost(backups=sight(backup(revision=8))), LOST_NAME, id="the backup has more"),
    pytest.param(lost(backups=sight(backup(revision=7))), NAME, id="the survivor has as much"),
    pytest.param(lost(backups=sight(backup(cluster_id="beef"))), NAME, id="of another etcd cluster"),
    pytest.param(lost(backups=sight(backup(etcd_version="3.5.9"))), NAME, id="of too old a version"),
    pytest.param(
        replace(gone(), backups=sight(backup(), backup("two", revision=12))),
        f"{CLUSTER_ID}/backup:two/1",
        id="the newest",
    ),
    pytest.param(
        replace(gone(), backups=sight(backup(), backup("two", revision=12, is_damaged=True))),
        LOST_NAME,
        id="none that is known to be damaged",
    ),
]


@pytest.mark.parametrize(("state", "name"), OFFERS)
def test_the_newest_of_survivors_and_backups_is_offered(state: ClusterState, name: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert f"{RECOVER_ANNOTATION}={name} " in made.message


def test_an_offer_does_not_change_while_time_passes() -> None:
    assert plan(replace(gone(), backups=sight(backup(age=3601)))) == plan(gone())


def test_a_recovery_begins_when_it_is_named() -> None:
    silence, confirm, remember, fill = plan(gone(LOST_NAME)).actions
    assert isinstance(silence, ConfirmSilence)
    assert confirm == ConfirmBackup(name="one", uid="uid-one", sha256="ab")
    assert isinstance(remember, Remember)
    assert remember.persisted.recovery == RECOVERY
    assert fill == FillSeed(name="db-3")


def test_a_person_may_name_an_older_backup_but_not_one_that_has_less_than_a_survivor() -> None:
    two = sight(backup(), backup("two", revision=12))
    assert len(plan(replace(gone(LOST_NAME), backups=two)).actions) == 4
    refused = plan(lost(asked=LOST_NAME, backups=sight(backup(revision=6))))
    assert (refused.actions, refused.reason) == ((), "RecoveryRefused")


def test_an_upgrade_that_waits_does_not_keep_a_person_from_asking() -> None:
    def reason(asked: str) -> str:
        state = gone(asked)
        upgrade = Upgrade(origin="3.6.16", target="3.6.17", member="db-2")
        return plan(with_record(state, upgrade=upgrade)).reason

    assert reason(LOST_NAME) == "Recovering"
    assert reason("another") != "Recovering"


def test_without_a_backup_nothing_empty_is_made() -> None:
    none = replace(sight(), stored=())
    made = plan(replace(gone(), backups=none))
    assert (made.actions, made.reason) == ((), "NoBackup")
    made = plan(replace(gone(LOST_NAME), backups=none))
    assert (made.actions, made.reason) == ((), "RecoveryRefused")
    odd = replace(none, unreadable="EtcdBackup one cannot be read (why)")
    for unknown in (replace(none, is_listed=False), odd):
        assert plan(replace(gone(), backups=unknown)).reason == "NoBackup"
    assert plan(lost(3, *ALL, backups=none)).reason == "QuorumLost", "claims are left"


def test_a_failed_job_is_followed_by_the_next_attempt_once_that_is_named() -> None:
    state = filling(replace(gone(LOST_NAME), backups=sight(job=FAILED)), RECOVERY)
    made = plan(state)
    assert (made.stage, made.reason) == (Stage.HELD, "RecoveryRefused")
    assert f"={CLUSTER_ID}/backup:one/2 " in made.message
    assert plan(replace(state, desired=replace(state.desired, recover=""))).reason == "QuorumLost"


@pytest.mark.parametrize("running", [job(), None], ids=["the Job waits for it", "the Job is gone"])
def test_a_volume_that_is_lost_before_the_seed_serves_is_named(running: JobState | None) -> None:
    state = filling(replace(gone(LOST_NAME), backups=sight(job=running)), RECOVERY, claim=LOST_CLAIM)
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "RecoveryRefused")
    assert f"={CLUSTER_ID}/backup:one/2 " in made.message


def test_a_job_is_waited_for_in_a_cluster_that_was_adopted_as_in_any_other() -> None:
    """It was never bootstrapped: the claim of the seed must not be taken for that of a lost member."""
    bootstrapped_by_us = filling(replace(gone(LOST_NAME), backups=sight(job=job())), RECOVERY)
    adopted = with_record(bootstrapped_by_us, bootstrap=None, adoption=Adoption(members=(), finished=True))
    assert plan(adopted) == plan(bootstrapped_by_us)
    assert not plan(adopted).actions


def test_a_quorum_that_returns_ends_it() -> None:
    state = filling(live(backups=sight(job=job())), RECOVERY)
    assert plan(state).actions == (DropSeed(name="db-3"),)


def test_the_condition_remains_when_it_was_not_needed() -> None:
    """A recovery that came to nothing does not hide the one before."""
    ended = replace(bootstrapped(persistent()), backups=sight())
    ended = remembering(ended, msgspec.structs.replace(RECOVERY, replaces=""))
    assert "DataLossPossible" not in {c.type for c in conditions(ended, plan(ended))}


def test_a_seed_that_serves_takes_over() -> None:
    state = served(replace(gone(LOST_NAME), has_quorum=True), RECOVERY, claim=final_claim())
    made = plan(state)
    assert made.reason == "Recovered"
