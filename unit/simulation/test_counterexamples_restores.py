"""Runs of the random simulations of restores that once broke what must hold, each shortened.

See test_counterexamples.py.
"""

from unit.simulation.test_restore_model import Restores
from unit.simulation.test_stored_model import StoredRecoveries


def test_a_seed_whose_data_an_alarm_names_is_reported() -> None:
    """It is never healthy, and nothing repairs it: the restore in place would wait for ever."""
    machine = StoredRecoveries()
    machine.begin(size=3, history="backup", beginning="in place", passes=3, is_insistent=False)
    machine.data_is_found_to_differ(which=4)
    machine.teardown()


def test_members_that_were_given_up_do_not_decide_about_those_of_the_new_cluster() -> None:
    """The seed starts again while a former member still runs: its data was deleted, as of no member."""
    machine = StoredRecoveries()
    machine.begin(size=1, history="backup write", beginning="in place", passes=4, is_insistent=False)
    machine.operator_observes_the_world_as_it_is()
    machine.a_volume_is_not_mounted(which=1)
    machine.teardown()


def test_clients_reach_the_old_cluster_although_the_closed_service_was_deleted() -> None:
    """Nothing shows any more that the old cluster was closed."""
    machine = StoredRecoveries()
    machine.begin(size=3, history="backup write", beginning="in place", passes=4, is_insistent=False)
    machine.the_seed_is_lost(how="its claim")
    machine.a_service_is_deleted(which=0)
    machine.teardown()


def test_clients_reach_the_old_cluster_although_nobody_led_when_the_restore_ended() -> None:
    machine = StoredRecoveries()
    machine.begin(size=1, history="backup write", beginning="in place", passes=4, is_insistent=False)
    machine.a_claim_is_deleted(how="kubectl", which=1)
    machine.the_seed_is_lost(how="its peer")
    machine.everything_goes_on(times=1)
    machine.the_restore_in_place_is_withdrawn()
    machine.a_process_is_killed(which=0)
    machine.everything_goes_on(times=1)
    machine.teardown()


def test_a_restored_cluster_whose_claim_is_deleted_at_the_last_moment_is_created_all_the_same() -> None:
    """It does not begin empty (`rules.resume`): only the data that this person deleted is missing."""
    machine = Restores()
    machine.begin(replicas=1, passes=8)
    machine.an_operator_decides_and_is_slow(which=0)
    machine.a_claim_is_deleted(which=0)
    machine.it_acts_on_what_it_decided_then()
    machine.teardown()


def test_a_survivor_whose_claim_is_being_deleted_is_not_passed_over_for_an_older_backup() -> None:
    """Kubernetes keeps its volume as long as its pod runs, so its data can be fetched."""
    machine = StoredRecoveries()
    machine.begin(size=3, history="backup write", beginning="", passes=6, is_slow=True, is_insistent=True)
    machine.a_claim_is_deleted(how="kubectl", which=1)
    machine.a_claim_is_deleted(how="kubectl", which=0)
    machine.a_claim_is_deleted(how="with its peer", which=2)
    machine.a_node_is_replaced(node=0)
    machine.teardown()
