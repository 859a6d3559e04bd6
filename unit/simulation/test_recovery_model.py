"""Clusters that lose most of their members, again and again, while everything else happens.

Ephemeral: what a survivor can report is saved, and all that was acknowledged and that any voter still has is
in it. Only where nobody is left, or one that is left cannot report what it has, does a run end held.

Persistent: nothing is given up until a person names the recovery that the status offers. A quorum that comes
back before the seed serves has everything; the seed has all that the survivors had. At the end the person
names what is offered, until nothing is: then the cluster is as desired, or there is nobody to recover from.
"""

import re

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from etcd_operator.api.shared_keys import DELETE_CLAIMS, RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import READ_MAJORITY_AFTER
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from unit.simulation.model import World
from unit.simulation.model_life import INITIAL_SIZES, SIZES, WHICH, Life
from unit.simulation.model_machine import profile

LEFT = st.sets(WHICH, min_size=1, max_size=3)
AFTER = st.sampled_from([None, None, 10.0])
"""spec.recovery and its time: None for Manual."""
OFFER = re.compile(rf"{RECOVER_ANNOTATION}=(\S+)")


class Recoveries(Life):
    """Bootstrapped ephemeral, and without mercy."""

    is_merciful = False

    @initialize(size=INITIAL_SIZES, asked=SIZES, left=LEFT)
    def begin(self, size: int, asked: int, left: set[int]) -> None:
        self.be_bootstrapped(World(is_persistent=False, size=size))
        self.world.edit(size=asked)
        self.only_these_are_left(left)

    @rule(left=LEFT)
    def only_these_are_left(self, left: set[int]) -> None:
        there = sorted(self.world.pods)
        kept = {there[which % len(there)] for which in left} if there else set()
        for name in set(there) - kept:
            self.world.remove_pod(name)

    @rule(is_deleted=st.booleans())
    def the_seed_is_lost(self, is_deleted: bool) -> None:
        seeds = [name for name, pod in self.world.pods.items() if isinstance(pod.start, Seeding)]
        for name in seeds[-1:]:
            if is_deleted:
                self.world.delete_pod(name)
            else:
                self.world.kill(name)


class ManualRecoveries(Life):
    """Bootstrapped persistent, without mercy, and with a person who names recoveries."""

    is_merciful = False

    @initialize(
        size=INITIAL_SIZES,
        asked=SIZES,
        left=LEFT,
        is_silent=st.booleans(),
        passes=st.integers(0, 6),
        is_slow=st.sampled_from([False, False, True]),
        recovers_after=AFTER,
        restarts=st.sampled_from([False, False, True]),
    )
    def begin(
        self,
        *,
        size: int,
        asked: int,
        left: set[int],
        is_silent: bool = False,
        passes: int = 0,
        is_slow: bool = False,
        recovers_after: float | None = None,
        restarts: bool = False,
    ) -> None:
        """Most runs begin in the middle of a recovery, some with a quorum that returns before an act."""
        self.be_bootstrapped(World(is_persistent=True, size=size))
        self.world.write()  # not all that are left have it
        self.world.edit(size=asked)
        self.only_these_are_left(left, is_silent=is_silent)
        self.spec_recovery_is_edited(recovers_after)
        if restarts:
            self._survivors_restart()
        if recovers_after is not None:
            self.everything_goes_on(passes + 3)
        elif passes:
            self.operator_observes_the_world_as_it_is()
            self.the_silence_lasts()
            self.the_recovery_that_is_offered_is_named(deletes_claims=False)
            self.everything_goes_on(passes - 1)
        if is_slow:
            self.operator.catch_up()
            self.operator_decides_and_is_slow_to_act()
            self.the_silent_ones_come_back(but=set())
            self.members_elect()
            self.operator_acts_on_what_it_decided_then()

    def _survivors_restart(self) -> None:
        """Those that do not hang; then their data is read."""
        for process in list(self.world.alive()):
            self.world.kill(process.name)
        self.everything_goes_on(1)
        self.operator.unavailable_for += READ_MAJORITY_AFTER
        self.everything_goes_on(3)

    # people

    @rule(after=AFTER)
    def spec_recovery_is_edited(self, after: float | None) -> None:
        self.world.edit(recovers_after=after)

    @rule(deletes_claims=st.booleans())
    def the_recovery_that_is_offered_is_named(self, deletes_claims: bool) -> None:
        decision = self.operator.decide()
        name = offered(decision[1]) if decision is not None else ""
        if name:
            self.world.edit(recover=name + DELETE_CLAIMS * deletes_claims)

    @rule(which=WHICH, generation=st.integers(1, 3))
    def another_recovery_is_named(self, which: int, generation: int) -> None:
        resource = self.world.resource
        assert resource is not None
        self.world.edit(recover=f"{resource.persisted.cluster_id}/{self.name(which)}/{generation}")

    @rule()
    def the_annotation_is_removed(self) -> None:
        self.world.edit(recover="")

    @rule()
    def claims_that_were_given_up_are_deleted(self) -> None:
        for name, claim in list(self.world.claims.items()):
            if claim.given_up:
                self.world.delete_claim_gently(name)

    @rule(size=SIZES, is_meant=st.sampled_from([True, False, False, False]))
    def the_resource_is_created_again(self, size: int, is_meant: bool) -> None:
        """Rarely: all members restart, and of those that lack a quorum none can be recovered from."""
        if is_meant:
            self.world.delete_cluster()
            self.world.create_cluster(size)
            self.operator.restart()

    # nature

    @rule(left=LEFT, is_silent=st.booleans())
    def only_these_are_left(self, left: set[int], is_silent: bool) -> None:
        """The others lose their data, or hang, and may come back."""
        there = sorted(self.world.pods)
        kept = {there[which % len(there)] for which in left} if there else set()
        for name in set(there) - kept:
            process = self.world.processes.get(self.world.pods[name].uid)
            if not is_silent:
                self.world.lose_claim(name)
            elif process is not None:
                process.is_frozen = True

    @rule(but=st.sets(WHICH, max_size=4), elections=st.integers(0, 4))
    def the_silent_ones_come_back(self, but: set[int], elections: int = 0) -> None:
        """All but some. elections: how many bring them no leader, while they answer."""
        others = [self._process(which) for which in but]
        self.world.slow_elections = elections
        for process in self.world.processes.values():
            if process not in others and self._node_of(process) not in self.world.away:
                process.awaits_leader = process.is_frozen and elections > 0
                process.is_frozen = process.is_cut_off = process.is_unreachable = False

    @rule()
    def the_silence_lasts(self) -> None:
        if self.operator.unavailable_for:
            self.operator.unavailable_for += SILENCE

    @rule(by=st.sampled_from([-3600.0, 3600.0]))
    def a_clock_is_set(self, by: float) -> None:
        """That by which the status shows since when the cluster is not available."""
        if self.operator.unavailable_for:
            self.operator.unavailable_for += by

    @rule(how=st.sampled_from(["its peer", "its claim", "its process"]))
    def the_seed_is_lost(self, how: str) -> None:
        seeds = [name for name, peer in self.world.peers.items() if isinstance(peer.start, Seeding)]
        for name in seeds[-1:]:
            if how == "its peer":
                self.world.delete_peer(name)
            elif how == "its claim":
                self.world.lose_claim(name)
            elif name in self.world.pods:
                self.world.kill(name)

    # the end

    def _faults_stop(self) -> None:
        super()._faults_stop()
        self.operator.unavailable_for = max(0.0, self.operator.unavailable_for)

    def _comes_to_rest(self) -> Plan | None:
        """The person names what is offered, as often as that changes."""
        made = super()._comes_to_rest()
        for _ in range(3):
            name = offered(made) if made is not None else ""
            if not name:
                return made
            self.world.edit(recover=name)
            made = super()._comes_to_rest()
        raise AssertionError(f"recovered three times, and still {made}")


def offered(made: Plan) -> str:
    """The name of the recovery that a status offers; empty if none."""
    found = OFFER.search(made.message)
    return found[1] if found else ""


TestRecoveries = pytest.mark.exhaustive(Recoveries.TestCase)
TestRecoveries.settings = profile(150, steps=40)

TestManualRecoveries = pytest.mark.exhaustive(ManualRecoveries.TestCase)
TestManualRecoveries.settings = profile(150, steps=40)
