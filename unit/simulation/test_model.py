"""Bootstraps, restarts and losses in any order: no acknowledged write is lost, and all ends settled.

A failing run prints the steps that lead to it (and a blob for `@reproduce_failure`).
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from unit.simulation.model import World
from unit.simulation.model_machine import Machine, profile
from unit.simulation.model_operator import Operator

ORDINALS = st.integers(0, 4)
SOME = st.sets(ORDINALS)
SIZES = st.sampled_from([1, 2, 3, 3, 4, 5])


class Bootstraps(Machine):
    """From nothing, and from what a deleted cluster has left."""

    @initialize(is_persistent=st.booleans(), size=SIZES, started=st.none() | SOME)
    def begin(self, is_persistent: bool, size: int, started: set[int] | None) -> None:
        """Many runs begin with a bootstrap of which the operator has only seen its own part."""
        self.world = World(is_persistent=is_persistent, size=size)
        self.operator = Operator(self.world)
        if started is not None:
            self.operator.step()
            self.only_these_run(started)

    @rule(up=SOME)
    def only_these_run(self, up: set[int]) -> None:
        """The others are frozen, or do not start."""
        self.controllers_act()
        names = {self.name(ordinal) for ordinal in up}
        for process in self.world.processes.values():
            process.is_frozen = process.name not in names
        for name in names & set(self.world.pods):
            self.world.run_kubelet(name)
        self.members_elect()

    @rule(ordinal=ORDINALS)
    def a_pod_starts(self, ordinal: int) -> None:
        if self.name(ordinal) in self.world.pods:
            self.world.run_kubelet(self.name(ordinal))

    @rule(lost=SOME)
    def pods_are_lost(self, lost: set[int]) -> None:
        for ordinal in lost:
            self.world.remove_pod(self.name(ordinal))

    @rule(failed=SOME)
    def pods_fail_for_good(self, failed: set[int]) -> None:
        for name in {self.name(ordinal) for ordinal in failed} & set(self.world.pods):
            self.world.fail(name)

    @rule(ordinal=ORDINALS)
    def a_process_is_killed(self, ordinal: int) -> None:
        if self.name(ordinal) in self.world.pods:
            self.world.kill(self.name(ordinal))

    @rule(ordinal=ORDINALS, is_frozen=st.booleans())
    def a_process_freezes_or_thaws(self, ordinal: int, is_frozen: bool) -> None:
        for process in self.world.processes.values():
            if process.name == self.name(ordinal):
                process.is_frozen = is_frozen

    @rule(ordinal=ORDINALS)
    def an_image_cannot_be_pulled(self, ordinal: int) -> None:
        self.world.unpullable.add(self.name(ordinal))

    @rule(ordinal=ORDINALS)
    def a_volume_of_an_existing_only_member_is_wiped(self, ordinal: int) -> None:
        name = self.name(ordinal)
        peer = self.world.peers.get(name)
        if peer is not None and isinstance(peer.template, Resuming) and name in self.world.claims:
            self.world.wipe(name)

    # people

    @rule(name=st.sampled_from(["db", "db-0000", "db-0001"]))
    def a_service_is_deleted(self, name: str) -> None:
        self.world.services.pop(name, None)

    @rule(peers=SOME, claims=SOME)
    def peers_and_claims_are_deleted(self, peers: set[int], claims: set[int]) -> None:
        if not self.world.is_persistent:
            return
        for ordinal in peers:
            self.world.delete_peer(self.name(ordinal))
        for ordinal in claims:
            self.world.delete_claim(self.name(ordinal))

    @precondition(lambda self: self.world.resource is not None)
    @rule()
    def the_cluster_is_deleted(self) -> None:
        self.world.delete_cluster()

    @precondition(lambda self: self.world.resource is None)
    @rule(size=SIZES)
    def the_cluster_is_created_again(self, size: int) -> None:
        self.operator.deliver("claims")
        self.world.create_cluster(size)


TestBootstraps = pytest.mark.exhaustive(Bootstraps.TestCase)
TestBootstraps.settings = profile(150)
