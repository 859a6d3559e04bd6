"""What exploring with new seeds has found, step by step, so that it is run each time.

Each test repeats the steps that a random run was reduced to. A new finding of `hack/test --explore` comes
here first and fails; then what it shows is mended, in the product or in the model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from unit.simulation.test_disaster_model import Disasters
from unit.simulation.test_membership_model import Memberships
from unit.simulation.test_model import Bootstraps
from unit.simulation.test_recovery_model import ManualRecoveries, Recoveries
from unit.simulation.test_restore_model import Restores
from unit.simulation.test_stored_model import StoredRecoveries
from unit.simulation.test_upgrade_model import Upgrades

Model = TypeVar("Model")


@contextmanager
def run(model: type[Model], **begin: Any) -> Iterator[Model]:
    """A run that begins so. At its end nothing is lost, the faults stop, and the result is judged."""
    machine: Any = model()
    machine.begin(**begin)
    yield machine
    machine.nothing_happens_that_never_must()
    machine.teardown()


def test_the_last_member_to_hear_of_a_promotion_is_left_with_one_that_has_heard_of_it() -> None:
    """Each of the two would need the other: one by its list, the other by its shorter log."""
    with run(Recoveries, size=2, asked=4, left={0, 1}) as machine:
        machine.everything_goes_on(times=4)
        machine.images_can_be_pulled_again()
        machine.operator_observes_the_world_as_it_is()
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.a_pod_is_lost(how="kubectl", which=3)


def test_a_silent_member_is_not_removed_while_another_is_losing_its_data() -> None:
    """Two of three serve, but one of them only until its pod ends: then the silent one is needed."""
    with run(Memberships, is_persistent=True, size=3, asked=1, is_merciful=True) as machine:
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.a_node_falls_silent(node=1)
        machine.operator_observes_the_world_as_it_is()
        machine.a_node_is_replaced(node=0)


def test_a_leader_whose_pod_is_deleted_after_it_lost_its_labels_cannot_transfer_its_leadership() -> None:
    """Nobody finds it any more, and it is about to end anyway."""
    with run(Memberships, is_persistent=False, size=3, is_merciful=True, asked=6) as machine:
        machine.a_pod_loses_its_labels(which=0)
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.operator_observes_the_world_as_it_is()


def test_what_is_left_of_a_member_waits_while_an_alarm_names_the_only_voter() -> None:
    """No voter is trusted, so nobody can be asked whether etcd still lists the member."""
    with run(Recoveries, size=3, asked=1, left={0}) as machine:
        machine.operator_observes_the_world_as_it_is()
        machine.nature_goes_on()
        machine.nature_goes_on()
        machine.operator_observes_the_world_as_it_is()
        machine.data_is_found_to_differ(which=2)
        machine.the_seed_is_lost(is_deleted=False)


@pytest.mark.parametrize("passes", [0, 1, 3])
def test_a_seed_that_is_lost_before_another_member_has_its_data_loses_no_more_than_that(passes: int) -> None:
    """What it was begun with is kept until then."""
    with run(Recoveries, size=3, asked=3, left={0}) as machine:
        world, operator = machine.world, machine.operator
        saved = set[int]().union(*world.acknowledged.values())
        while operator.acted["OpenSeed"] == 0:
            machine.everything_goes_on(times=1)
        machine.clients_write([])
        for _ in range(passes):
            operator.catch_up()
            operator.step()
        world.remove_pod("db-0003")
        learners = sorted(set(world.pods) - {"db-0000"})
        machine.everything_goes_on(times=2)
        for learner in learners:  # as the status advises
            world.remove_pod(learner)
    (served,) = [group.leader.disk.writes for group in machine.world.groups(led=True)]
    assert saved <= served


def test_a_claim_of_a_member_that_never_answered_records_no_cluster_to_resume() -> None:
    """All that is left of a cluster was created late: it waits for a person, rather than begin empty."""
    with run(Memberships, is_persistent=True, size=1, asked=1, is_merciful=False) as machine:
        machine.a_claim_is_made_late(which=1)
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.the_resource_is_created_again(size=1)


def test_a_member_that_is_away_is_not_started_at_a_version_that_cannot_read_its_log() -> None:
    """Nobody could pad its log meanwhile: it has to serve at 3.6 before it is taken to 3.7."""
    with run(
        Upgrades,
        is_persistent=True,
        past="3.5.34 3.6.16",
        sizes=(6, False),
        is_merciful=True,
        version="3.6.90",
        size=1,
    ) as machine:
        machine.operator_dies_during_a_pass(stop_after=0)
        machine.reply_of_an_action_is_lost(stop_after=1)
        machine.a_peer_is_deleted(which=0)
        machine.a_new_image_cannot_be_pulled(which=0)
        machine.the_version_is_edited(version="3.5.31")
        machine.everything_goes_on(times=3)
        machine.the_version_is_edited(version="3.7.3")


def test_a_member_without_its_volume_is_replaced_where_its_claim_is_being_deleted() -> None:
    """No second pod can confirm that its data is missing: none can use such a claim."""
    with run(Memberships, is_persistent=True, asked=5, size=4, is_merciful=True) as machine:
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.a_node_is_replaced(node=0)
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.everything_goes_on(times=2)
        machine.a_claim_is_deleted(how="kubectl", which=1)
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.a_volume_is_not_mounted(which=4)


def test_a_request_that_was_carried_out_does_not_stop_repairs() -> None:
    """The recovered member reports missing data, because its volume is not mounted: it needs another pod."""
    with run(ManualRecoveries, size=3, asked=1, left={0}, passes=4) as machine:
        machine.a_node_is_replaced(node=0)
        machine.everything_goes_on(times=1)
        machine.a_volume_is_not_mounted(which=0)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_outdated_request_does_not_stop_repairs(is_deleted: bool) -> None:
    """The survivor that it names needs another pod; with a claim that is being deleted it cannot have one."""
    with run(ManualRecoveries, size=3, asked=6, left={0}, is_silent=True) as machine:
        machine.a_claim_is_deleted(how="with its peer", which=0)
        machine.a_process_freezes_or_thaws(is_frozen=False, which=0)
        machine.the_recovery_that_is_offered_is_named(deletes_claims=False)
        machine.a_peer_is_deleted(which=0)
        machine.everything_goes_on(times=2)
        machine.a_volume_is_not_mounted(which=0)
        if is_deleted:
            machine.a_claim_is_deleted(how="kubectl", which=0)


def test_a_seed_that_serves_is_not_given_up_because_its_claim_is_being_deleted() -> None:
    """All others are deleted already: it has the only copy, and learners can still take it over."""
    with run(ManualRecoveries, size=3, asked=1, left={0}, passes=3) as machine:
        machine.a_volume_is_wiped(which=0)
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.a_cache_catches_up(kind="pods")
        machine.reply_of_an_action_is_lost(stop_after=4)
        machine.controllers_act()
        machine.a_claim_is_deleted(how="kubectl", which=0)


def test_a_member_that_has_come_back_and_leads_is_not_removed_by_an_outdated_decision() -> None:
    """It was silent when the removal was decided: its leadership is moved first."""
    with run(ManualRecoveries, size=3, asked=1, left={1, 2}, is_silent=True, is_slow=True):
        pass


def test_a_pod_that_no_cache_shows_is_not_lost() -> None:
    """It lost its labels and restarted: only the live list of all pods prevents that a backup replaces it."""
    with run(Disasters, size=1, history="write backup write", left="the leader") as machine:
        machine.a_pod_loses_its_labels(which=0)
        machine.a_cache_catches_up(kind="pods")
        machine.a_process_is_killed(which=0)
        for _ in range(4):
            machine.operator_observes_with_the_caches_it_has()
            machine.the_tool_answers()
        machine.everything_goes_on(times=4)


def test_a_learner_that_has_not_joined_when_the_others_are_lost_keeps_no_backup_from_being_restored() -> None:
    with run(Disasters, size=3, history="write backup report", left="all but the leader") as machine:
        pods = machine.world.pods
        for _ in range(9):
            machine.operator_observes_the_world_as_it_is()
            if not all(pod.has_run for pod in pods.values()):
                break
            machine.nature_goes_on()
            machine.world.agree()
        machine.disaster_strikes(history="", left="the last pod")
        ((learner, pod),) = pods.items()
        assert not pod.has_run
        machine.everything_goes_on(times=4)
        assert learner not in pods


def test_a_survivor_that_was_read_is_asked_again_before_its_cluster_is_given_up() -> None:
    """It answered nobody when the pass began; the silent ones came back, and it follows a leader."""
    with run(
        ManualRecoveries, size=3, asked=3, left={0}, is_silent=True, passes=3, is_slow=True, restarts=True
    ):
        pass


def test_an_initial_member_is_not_created_by_a_late_act_after_the_bootstrap() -> None:
    """Its name is free again, and it would begin empty in place of one that has served."""
    with run(Bootstraps, is_persistent=False, size=1, started=set()) as machine:
        machine.pods_fail_for_good(failed={0})
        machine.operator_observes_the_world_as_it_is()
        machine.operator_dies_during_a_pass(stop_after=0)
        machine.operator_decides_and_is_slow_to_act()
        machine.everything_goes_on(times=2)
        machine.pods_are_lost(lost={0})
        machine.operator_acts_on_what_it_decided_then()
        assert "db-0000" not in machine.world.pods


def test_a_reader_in_a_pod_that_has_ended_is_not_waited_for() -> None:
    """Its pod was evicted: nobody reports the end of its containers, and the survivor is recovered from."""
    with run(Bootstraps, is_persistent=False, started=None, size=4) as machine:
        machine.operator_observes_the_world_as_it_is()
        machine.only_these_run(up={0, 1, 2, 3, 4})
        machine.operator_observes_the_world_as_it_is()
        machine.only_these_run(up=set())
        machine.operator_dies_during_a_pass(stop_after=0)
        machine.reply_of_an_action_is_lost(stop_after=2)
        machine.operator_observes_the_world_as_it_is()
        for _ in range(4):
            machine.operator_decides_and_is_slow_to_act()
        machine.a_process_is_killed(ordinal=0)
        machine.a_process_is_killed(ordinal=1)
        machine.operator_dies_during_a_pass(stop_after=0)
        machine.reply_of_an_action_is_lost(stop_after=2)
        machine.operator_decides_and_is_slow_to_act()
        machine.operator_observes_the_world_as_it_is()
        machine.pods_fail_for_good(failed={0, 1, 2})


def test_a_reader_beside_an_etcd_that_crashes_is_not_waited_for() -> None:
    """Its volume is not mounted; nothing is read of it, and the other member is recovered from."""
    with run(
        Upgrades,
        is_persistent=True,
        version="3.5.31",
        size=3,
        past="3.5.34",
        is_merciful=False,
        sizes=(6, True),
    ) as machine:
        machine.a_process_freezes_or_thaws(is_frozen=True, which=0)
        machine.a_peer_is_deleted(which=1)
        machine.operator_observes_the_world_as_it_is()
        machine.operator_observes_with_the_caches_it_has()
        machine.a_claim_is_deleted(how="at once", which=5)
        machine.everything_goes_on(times=4)
        machine.a_peer_is_deleted(which=3)
        machine.a_peer_is_deleted(which=1)
        machine.operator_observes_with_the_caches_it_has()
        machine.a_claim_is_deleted(how="kubectl", which=3)
        machine.operator_dies_during_a_pass(stop_after=3)
        machine.operator_dies_during_a_pass(stop_after=3)
        machine.reply_of_an_action_is_lost(stop_after=4)
        machine.a_volume_is_not_mounted(which=5)
        machine.reply_of_an_action_is_lost(stop_after=7)


def test_a_cluster_that_loses_all_claims_before_it_served_is_bootstrapped_again() -> None:
    """Its pods would wait for ever for claims that nobody creates."""
    with run(ManualRecoveries, size=3, asked=1, left={0}) as machine:
        machine.a_claim_is_deleted(how="at once", which=0)
        machine.the_resource_is_created_again(is_meant=True, size=1)
        machine.everything_goes_on(times=1)
        machine.a_claim_is_deleted(how="at once", which=0)


def test_members_of_a_bootstrap_are_not_replaced_because_the_cache_of_claims_is_late() -> None:
    """All seem to have lost their claims, while they already serve."""
    with run(Bootstraps, is_persistent=True, size=1, started=None) as machine:
        machine.the_cluster_is_deleted()
        machine.the_cluster_is_created_again(size=3)
        machine.operator_observes_the_world_as_it_is()
        machine.a_cache_catches_up(kind="resource")
        machine.nature_goes_on()
        machine.a_cache_catches_up(kind="peers")
        machine.pods_are_lost(lost={0})
        machine.operator_decides_and_is_slow_to_act()


def test_a_quorum_that_returns_ends_a_recovery_even_if_an_alarm_names_most_of_it() -> None:
    """They are not healthy, but follow a leader: they are never given up, so the seed has to go."""
    with run(ManualRecoveries, size=3, asked=4, left={0}, passes=6, recovers_after=10.0) as machine:
        machine.everything_goes_on(times=3)
        machine.everything_goes_on(times=1)
        machine.the_resource_is_created_again(is_meant=True, size=1)
        machine.operator_observes_with_the_caches_it_has()
        machine.spec_recovery_is_edited(after=10.0)
        machine.everything_goes_on(times=3)
        machine.a_pod_is_lost(how="at once", which=0)
        machine.a_process_is_killed(which=0)
        for _ in range(3):
            machine.reply_of_an_action_is_lost(stop_after=1)
        machine.everything_goes_on(times=1)
        machine.data_is_found_to_differ(which=6)
        machine.data_is_found_to_differ(which=3)


def test_a_seed_whose_data_an_alarm_names_is_reported() -> None:
    """It is never healthy, and nothing repairs it: the restore in place would wait for ever."""
    with run(StoredRecoveries, size=3, history="backup", beginning="in place", passes=3) as machine:
        machine.data_is_found_to_differ(which=4)


def test_members_that_were_given_up_do_not_decide_about_those_of_the_new_cluster() -> None:
    """The seed starts again while a former member still runs: its data was deleted, as of no member."""
    with run(StoredRecoveries, size=1, history="backup write", beginning="in place", passes=4) as machine:
        machine.operator_observes_the_world_as_it_is()
        machine.a_volume_is_not_mounted(which=1)


def test_clients_reach_the_old_cluster_although_the_closed_service_was_deleted() -> None:
    """Nothing shows any more that the old cluster was closed."""
    with run(StoredRecoveries, size=3, history="backup write", beginning="in place", passes=4) as machine:
        machine.the_seed_is_lost(how="its claim")
        machine.a_service_is_deleted(which=0)


def test_clients_reach_the_old_cluster_although_nobody_led_when_the_restore_ended() -> None:
    with run(StoredRecoveries, size=1, history="backup write", beginning="in place", passes=4) as machine:
        machine.a_claim_is_deleted(how="kubectl", which=1)
        machine.the_seed_is_lost(how="its peer")
        machine.everything_goes_on(times=1)
        machine.the_restore_in_place_is_withdrawn()
        machine.a_process_is_killed(which=0)
        machine.everything_goes_on(times=1)


def test_a_restored_cluster_whose_claim_is_deleted_at_the_last_moment_is_created_all_the_same() -> None:
    """It does not begin empty (`rules.resume`): only the data that this person deleted is missing."""
    with run(Restores, replicas=1, passes=8) as machine:
        machine.an_operator_decides_and_is_slow(which=0)
        machine.a_claim_is_deleted(which=0)
        machine.it_acts_on_what_it_decided_then()


def test_a_survivor_whose_claim_is_being_deleted_is_not_passed_over_for_an_older_backup() -> None:
    """Kubernetes keeps its volume as long as its pod runs, so its data can be fetched."""
    with run(
        StoredRecoveries,
        size=3,
        history="backup write",
        beginning="",
        passes=6,
        is_slow=True,
        is_insistent=True,
    ) as machine:
        machine.a_claim_is_deleted(how="kubectl", which=1)
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.a_claim_is_deleted(how="with its peer", which=2)
        machine.a_node_is_replaced(node=0)


def test_a_member_that_answers_again_with_more_than_the_seed_has_is_not_given_up() -> None:
    """It has no quorum, but the only copy of what was acknowledged: a person decides anew."""
    with run(
        ManualRecoveries, size=5, asked=5, left={4}, is_silent=True, passes=2, recovers_after=10.0
    ) as machine:
        machine.the_silent_ones_come_back(but={1, 2, 3}, elections=4)
        machine.everything_goes_on(times=3)
        machine.a_process_freezes_or_thaws(which=0, is_frozen=True)
        machine.everything_goes_on(times=3)


def test_members_that_answer_again_and_may_elect_a_leader_are_not_given_up() -> None:
    with run(
        ManualRecoveries, size=3, asked=3, left={2}, is_silent=True, passes=2, recovers_after=10.0
    ) as machine:
        machine.the_silent_ones_come_back(but=set(), elections=4)
        machine.everything_goes_on(times=6)


def test_an_unmounted_volume_is_looked_for_although_an_attempt_was_given_up() -> None:
    """The seed of the attempt is lost and another source is better, so a person is asked again."""
    started = {"is_slow": True, "recovers_after": None, "is_silent": True, "restarts": True, "passes": 2}
    with run(ManualRecoveries, asked=7, size=5, left={0, 1}, **started) as machine:
        machine.authentication_is_switched(is_on=True)
        machine.members_elect()
        machine.everything_goes_on(times=2)
        machine.the_seed_is_lost(how="its claim")
        machine.clients_write(preferred=[5])
        machine.a_pod_is_lost(how="at once", which=2)
        machine.everything_goes_on(times=4)
        machine.a_claim_is_deleted(how="with its peer", which=5)
        machine.a_volume_is_wiped(which=3)
        machine.a_volume_is_not_mounted(which=1)
        machine.the_annotation_is_removed()


def test_a_survivor_whose_pod_has_ended_for_good_is_no_copy_of_its_data() -> None:
    """It is evicted while it is kept for a seed that serves, and is deleted before the second voter."""
    with run(Disasters, size=4, history="write backup", left="nobody", is_direct=True) as machine:
        machine.everything_goes_on(times=9)
        machine.a_pod_is_lost(how="kubectl", which=0)
        machine.a_pod_is_lost(how="kubectl", which=5)
        machine.a_pod_is_lost(how="fails", which=5)
        machine.everything_goes_on(times=3)
        machine.a_pod_is_lost(how="fails", which=2)


def test_a_recovery_from_a_corrupt_member_by_name_ends_with_its_alarm() -> None:
    """The only voter has the data that the alarm names, under another member ID: a person disarms it."""
    begin: Any = {"size": 3, "is_slow": False, "asked": 1, "is_silent": True, "left": {0, 1}}
    with run(ManualRecoveries, **begin, recovers_after=None, passes=0, restarts=True) as machine:
        machine.a_claim_is_made_late(which=1)
        machine.data_is_found_to_differ(which=1)
        machine.spec_recovery_is_edited(after=None)
        machine.a_new_image_cannot_be_pulled(which=0)
        machine.a_volume_is_wiped(which=1)


LOSING: dict[str, Any] = {
    "is_persistent": True,
    "size": 3,
    "past": "3.6.77",
    "version": "3.7.55",
    "sizes": (4, False),
    "is_merciful": True,
}
"""An upgrade begins to a version that has no image."""


def test_a_member_whose_claim_is_deleted_is_not_needed_while_another_is_upgraded() -> None:
    """Its node is replaced while the other one waits for an image that does not exist: there is no quorum."""
    with run(Upgrades, **LOSING) as machine:
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.operator_observes_the_world_as_it_is()
        machine.everything_goes_on(times=1)
        machine.a_node_is_replaced(node=0)
        machine.everything_goes_on(times=1)
        machine.operator_dies_during_a_pass(stop_after=0)
        machine.operator_observes_the_world_as_it_is()
        machine.everything_goes_on(times=11)
        machine.operator_observes_the_world_as_it_is()
        machine.a_service_is_deleted(which=5)
        machine.operator_observes_with_the_caches_it_has()


def test_a_cluster_shrinks_although_a_claim_was_deleted_before_an_upgrade_that_is_blocked() -> None:
    with run(Upgrades, **LOSING) as machine:
        machine.a_claim_is_deleted(how="kubectl", which=0)
        machine.everything_goes_on(times=3)
        machine.the_size_is_edited(size=2)
