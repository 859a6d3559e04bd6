"""Versions edited while everything else happens: members are restarted one at a time, and never needlessly.

The user sets versions that work and versions that do not, goes on, goes back, and changes them halfway. When
the faults stop, the run must come to rest at any desired version, for a true reason; and at one that works,
with all members at that version.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from unit.simulation.model import World
from unit.simulation.model_disks import (
    BEST,
    CRASHING,
    GOOD,
    REGRESSING,
    UNPULLABLE,
    Disk,
    is_reachable,
    minor,
)
from unit.simulation.model_life import INITIAL_SIZES, MERCY, SIZES, Life
from unit.simulation.model_machine import profile

PASTS = st.sampled_from(["3.5.34 3.6.16", "3.5.34", "3.6.16", "3.5.31", "3.6.77", "3.7.3"])
"""The version at bootstrap, and one that the cluster is upgraded to before anything else happens."""
ALL = (*GOOD, *GOOD, *REGRESSING, *CRASHING, *UNPULLABLE)
VERSIONS = st.sampled_from(ALL)


class Upgrades(Life):
    """All versions of etcd, at all times."""

    @initialize(
        is_persistent=st.booleans(),
        size=INITIAL_SIZES,
        past=PASTS,
        sizes=st.tuples(SIZES, st.booleans()),
        version=VERSIONS,
        is_merciful=MERCY,
    )
    def begin(
        self,
        *,
        is_persistent: bool,
        size: int,
        past: str,
        sizes: tuple[int, bool],
        version: str,
        is_merciful: bool,
    ) -> None:
        self.is_merciful = is_merciful
        initial, *later = past.split()
        self.be_bootstrapped(World(is_persistent=is_persistent, size=size, version=initial))
        self.world.agree()
        for found in later:
            self.world.edit(version=found)
            self._comes_to_rest()
        self.world.edit(version=version)
        asked, is_resized = sizes
        if is_resized:
            self.world.edit(size=asked)

    @rule(version=VERSIONS)
    def the_version_is_edited(self, version: str) -> None:
        self.world.edit(version=version)

    @rule(which=st.integers(0, len(ALL) - 1))
    def a_reachable_version_is_set(self, which: int) -> None:
        asked = self.world.resource.version if self.world.resource is not None else ""
        reachable = [version for version in ALL if is_reachable(asked, version)]
        self.world.edit(version=reachable[which % len(reachable)])

    @rule(number=st.sampled_from(sorted(BEST)))
    def a_version_is_found_to_be_bad(self, number: int) -> None:
        """Its processes crash from now on when they are started."""
        self.world.releases.found_bad |= {found for found in REGRESSING if minor(found) == number}

    @rule(is_unreachable=st.booleans())
    def the_upgrading_member_becomes_silent_or_answers_again(self, is_unreachable: bool) -> None:
        resource = self.world.resource
        upgrade = resource.persisted.upgrade if resource is not None else None
        for process in self.world.processes.values():
            if upgrade is not None and process.name == upgrade.member:
                process.is_unreachable = is_unreachable

    @rule()
    def the_cluster_version_moves(self) -> None:
        self.world.agree()

    @rule()
    def clients_write_much(self) -> None:
        self.world.write_much()

    def _ends(self) -> None:
        self._faults_stop()
        self._comes_to_rest()
        for number in range(self._lowest(), max(BEST) + 1):
            self.world.edit(version=BEST[number])
            made = self._comes_to_rest()
            if made is not None:
                self._judge_end(made)

    def _lowest(self) -> int:
        """The minor version of the cluster: voters that run a later one may still go back."""
        world = self.world
        last = max(world.existing_disks(), key=lambda disk: disk.committed, default=Disk())
        asked = world.peers if world.is_persistent else world.pods
        voters = [minor(asked[entry.name].version) for entry in last.voters if entry.name in asked]
        return max(min(BEST), min(voters, default=0), last.minor)

    def _judge_end(self, made: Plan) -> None:
        """A claim that is deleted with its pod is not given up for an upgrade."""
        is_going = any(claim.is_terminating for claim in self.world.claims.values())
        if not (made.reason == "UpgradeWaiting" and is_going):
            super()._judge_end(made)


TestUpgrades = pytest.mark.exhaustive(Upgrades.TestCase)
TestUpgrades.settings = profile(150, steps=40)
