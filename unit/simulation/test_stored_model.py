"""Persistent clusters with EtcdBackups: recoveries from them after a loss, and restores in place.

After a loss a backup is restored only where a person names it and it has more than every survivor. In place
the old cluster serves until the seed does, and again wherever the restore ends before a member is given up.
Each loss is reported, with the source.
"""

import re
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from etcd_operator.api.shared_keys import RESTORE_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from unit.simulation.model import World
from unit.simulation.model_life import INITIAL_SIZES, SIZES, WHICH
from unit.simulation.model_machine import profile
from unit.simulation.model_operator import Operator
from unit.simulation.model_stored import StoredWorld
from unit.simulation.model_stored_operator import STORED_KINDS, StoredOperator
from unit.simulation.test_recovery_model import ManualRecoveries, offered

RESTORE_OFFER = re.compile(rf"{RESTORE_ANNOTATION}=([^\s;]+)")
DELETE_PEER = re.compile(r"to begin again: kubectl delete etcdpeer (\S+)")
GIVE_UP = re.compile(r"to give (\S+) up: kubectl delete etcdpeer/\1 pvc/\1")
HISTORIES = st.sampled_from(["backup write", "write backup", "backup", "backup write backup", "write", ""])
"""What happens before a loss or a request; what comes after a backup is lost with it."""
PASSES = st.sampled_from([5, 4, 3, 2, 1, 0, 7])
"""The first ones pass the point of no return of a restore in place. Hypothesis prefers what comes first."""
BEGINNINGS = st.sampled_from(["in place", "in place", "in place", "all is lost", "one is left", ""])


class StoredRecoveries(ManualRecoveries):
    """Bootstrapped persistent, without mercy, and with a person who names recoveries and restores."""

    world: StoredWorld

    @initialize(
        size=INITIAL_SIZES,
        history=HISTORIES,
        beginning=BEGINNINGS,
        passes=PASSES,
        is_slow=st.booleans(),
        is_insistent=st.booleans(),
    )
    def begin(
        self,
        *,
        size: int,
        history: str,
        beginning: str,
        passes: int,
        is_slow: bool = False,
        is_insistent: bool = False,
    ) -> None:
        """Most runs begin in the middle of a restore. is_insistent: what is offered is requested again."""
        self.is_insistent = is_insistent
        self.be_bootstrapped(StoredWorld(size=size))
        for event in history.split():
            if event == "write":
                self.world.write([1])
            else:
                self.an_etcdbackup_is_completed(0)
        if beginning == "in place":
            self.a_restore_in_place_is_requested(0)
        elif beginning:
            self._lose_all(but=1 if beginning == "one is left" else 0)
            self.operator_observes_the_world_as_it_is()
            self.the_silence_lasts()
            self.the_recovery_that_is_offered_is_named(deletes_claims=False)
        if is_slow:
            self._goes_on_slowly(passes)
        else:
            self.everything_goes_on(passes)

    def _goes_on_slowly(self, passes: int) -> None:
        """Somebody writes between each decision and its acts."""
        for _ in range(passes):
            self.operator.catch_up()
            self.operator_decides_and_is_slow_to_act()
            self.world.write([1])
            self.operator_acts_on_what_it_decided_then()
            self.nature_goes_on()

    def operator_of(self, world: World) -> Operator:
        return StoredOperator(world)

    def _lose_all(self, but: int) -> None:
        """The claims of all members are deleted, with their volumes."""
        for name in sorted(self.world.claims)[but:]:
            self.world.lose_claim(name)

    # people

    @rule(which=WHICH)
    def an_etcdbackup_is_completed(self, which: int) -> None:
        """Of any member that clients reach."""
        for group in self.world.groups(led=True):
            able = [process for process in group.up if self.world.takes_clients(process)]
            if able:
                self.world.store(able[which % len(able)])

    @rule(which=WHICH)
    def an_etcdbackup_is_deleted(self, which: int) -> None:
        name = self._pick(self.world.backups, which)
        if name is not None:
            del self.world.backups[name]

    @rule(which=WHICH)
    def the_bytes_of_a_backup_are_damaged(self, which: int) -> None:
        name = self._pick(self.world.backups, which)
        if name is not None:
            self.world.tool.made[name].is_damaged = True

    @rule(which=WHICH)
    def a_restore_in_place_is_requested(self, which: int) -> None:
        name, resource = self._pick(self.world.backups, which), self.world.resource
        if name is not None and resource is not None:
            former = resource.persisted.recovery
            generation = former.generation + 1 if former is not None else 1
            self.world.edit(restore_in_place=f"{resource.persisted.cluster_id}/{name}/{generation}")

    @rule()
    def the_restore_in_place_is_withdrawn(self) -> None:
        self.world.edit(restore_in_place="")

    @rule(which=WHICH)
    def another_backup_is_named(self, which: int) -> None:
        name, decision = self._pick(self.world.backups, which), self.operator.decide()
        offer = offered(decision[1]) if decision is not None else ""
        if name is not None and offer:
            cluster_id, _, generation = offer.split("/")
            self.world.edit(recover=f"{cluster_id}/backup:{name}/{generation}")

    @rule(size=SIZES, is_meant=st.sampled_from([True, False, False, False]))
    def the_resource_is_created_again(self, size: int, is_meant: bool) -> None:
        """Not while a restore is under way, of which only its status knows."""
        resource = self.world.resource
        if resource is not None and not resource.persisted.is_recovering:
            super().the_resource_is_created_again(size, is_meant)

    # nature

    @rule(by=st.sampled_from([-3600.0, 3600.0]))
    def a_clock_is_set(self, by: float) -> None:
        """Also that by which backups have their times."""
        super().a_clock_is_set(by)
        self.world.tool.clock += timedelta(seconds=by)

    @rule(kind=st.sampled_from(STORED_KINDS))
    def a_cache_of_backups_catches_up(self, kind: str) -> None:
        self.operator.deliver(kind)

    @rule(which=WHICH)
    def a_job_fails(self, which: int) -> None:
        token = self._pick(self.world.jobs, which)
        if token is not None:
            self.world.fail_job(token)

    @rule()
    def a_request_to_fill_a_seed_is_carried_out_late(self) -> None:
        """The API server gave up its reply, and the restore ended meanwhile."""
        self.world.fill_late()

    @rule(may_start=st.booleans())
    def jobs_may_start_or_not(self, may_start: bool) -> None:
        self.world.jobs_may_start = may_start

    @rule(which=WHICH)
    def a_volume_is_wiped(self, which: int) -> None:
        """But for that of a seed: nothing but a deletion of its claim begins again then."""
        recovery = self.world.resource.persisted.recovery if self.world.resource is not None else None
        name = self._pick(self.world.claims, which)
        if recovery is None or name != recovery.seed:
            super().a_volume_is_wiped(which)

    @rule(how=st.sampled_from(["its peer", "its claim", "both", "its process", "its Job"]))
    def the_seed_is_lost(self, how: str) -> None:
        recovery = self.world.resource.persisted.recovery if self.world.resource is not None else None
        if recovery is None:
            return
        if how == "its peer":
            self.world.delete_peer(recovery.seed)
        elif how == "its claim":
            self.world.lose_claim(recovery.seed)
        elif how == "both":
            self.world.delete_claim(recovery.seed)
        elif how == "its Job":
            self.world.jobs.pop(recovery.token, None)
        elif recovery.seed in self.world.pods:
            self.world.kill(recovery.seed)

    # the end

    def _faults_stop(self) -> None:
        super()._faults_stop()
        self.world.jobs_may_start = True

    def _comes_to_rest(self) -> Plan | None:
        """The person does what the status requests, until it requests nothing more."""
        for _ in range(8):
            made = super(ManualRecoveries, self)._comes_to_rest()
            if made is None or not self._person_acts(made):
                self._nothing_is_left()
                return made
        raise AssertionError(f"the status was followed eight times, and still {made}")

    def _nothing_is_left(self) -> None:
        """Of a recovery that has ended."""
        recovery = self.world.resource.persisted.recovery if self.world.resource is not None else None
        if recovery is not None and not recovery.replaces:
            assert recovery.token not in self.world.jobs
            claims = [claim for claim in self.world.claims.values() if claim.token == recovery.token]
            assert all(claim.cluster_id or claim.is_terminating for claim in claims), claims

    def _person_acts(self, made: Plan) -> bool:
        if made.reason in ("RestoreRefused", "RestoreFailed"):
            found = RESTORE_OFFER.search(made.message)
            assert found is not None or "no EtcdBackup of this cluster" in made.message, made.message
            name = found[1] if found is not None and self.is_insistent else ""
            self.is_insistent = False
            self.world.edit(restore_in_place=name)
            return True
        found = GIVE_UP.search(made.message)
        if found is not None:
            self.world.delete_claim(found[1])
            return True
        found = DELETE_PEER.search(made.message)
        if found is not None:
            self.world.delete_peer(found[1])
            self.world.jobs.clear()  # they are deleted some time after their end
            return True
        name = offered(made)
        if name and "failed (" in made.message:
            self._delete_damaged()
        self.world.edit(recover=name)
        return bool(name)

    def _delete_damaged(self) -> None:
        for name, stored in list(self.world.backups.items()):
            if stored.backup.is_damaged:
                del self.world.backups[name]


TestStoredRecoveries = pytest.mark.exhaustive(StoredRecoveries.TestCase)
TestStoredRecoveries.settings = profile(100, steps=30)
