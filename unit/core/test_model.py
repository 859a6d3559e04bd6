"""Births, restarts and losses in any order: no acknowledged write is lost, and all ends settled.

A failing run prints the steps that lead to it (and a blob for `@reproduce_failure`).
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from etcd_operator.core.actions import (
    CreateClientService,
    CreateMember,
    CreateMemberService,
    KeepBudget,
    Plan,
    Remember,
    Resuming,
    SealMember,
    Stage,
)
from etcd_operator.core.names import member_name
from etcd_operator.core.state import ClusterState
from unit.core.builders import persistent
from unit.core.model import World
from unit.core.model_operator import KINDS, Operator
from unit.core.model_truth import is_true

NOT_DELETING = (Remember, CreateClientService, CreateMemberService, KeepBudget, CreateMember, SealMember)
"""The actions that take nothing away (I6); one that does needs a check of its own here."""

PASSES_TO_SETTLE = 60
QUIET_PASSES = 10

ORDINALS = st.integers(0, 4)
SOME = st.sets(ORDINALS)
SIZES = st.sampled_from([1, 2, 3, 3, 4, 5])


class Births(RuleBasedStateMachine):
    """One cluster, one operator, one user, and nature."""

    world: World
    operator: Operator

    @initialize(is_persistent=st.booleans(), size=SIZES, started=st.none() | SOME)
    def begin(self, is_persistent: bool, size: int, started: set[int] | None) -> None:
        """Many runs begin with a birth of which the operator has only seen its own part."""
        self.world = World(is_persistent=is_persistent, size=size)
        self.operator = Operator(self.world)
        if started is not None:
            self._checked(self.operator.step())
            self.only_these_run(started)

    # the operator

    @rule(times=st.integers(1, 4))
    def everything_goes_on(self, times: int) -> None:
        """The usual course, so that runs get far."""
        for _ in range(times):
            self._catch_up()
            self._checked(self.operator.step())
            self.nature_goes_on()

    @rule()
    def operator_looks_at_the_world_as_it_is(self) -> None:
        self._catch_up()
        self._checked(self.operator.step())

    @rule(stop_after=st.integers(0, 7))
    def operator_dies_during_a_pass(self, stop_after: int) -> None:
        self._checked(self.operator.step(stop_after=stop_after))
        self.operator.restart()

    @rule(stop_after=st.integers(1, 7))
    def reply_of_an_action_is_lost(self, stop_after: int) -> None:
        self._checked(self.operator.step(stop_after=stop_after, loses_reply=True))

    @rule()
    def operator_looks_with_the_caches_it_has(self) -> None:
        self._checked(self.operator.step())

    @rule(kind=st.sampled_from(KINDS))
    def a_cache_catches_up(self, kind: str) -> None:
        self.operator.deliver(kind)

    # nature

    @rule()
    def nature_goes_on(self) -> None:
        self.controllers_act()
        for name in list(self.world.pods):
            self.world.run_kubelet(name)
        self.members_elect()

    @rule(up=SOME)
    def only_these_run(self, up: set[int]) -> None:
        """The others are frozen, or do not start."""
        self.controllers_act()
        names = {self._name(ordinal) for ordinal in up}
        for process in self.world.processes.values():
            process.is_frozen = process.name not in names
        for name in names & set(self.world.pods):
            self.world.run_kubelet(name)
        self.members_elect()

    @rule()
    def controllers_act(self) -> None:
        self.world.run_controllers()

    @rule(ordinal=ORDINALS)
    def a_pod_starts(self, ordinal: int) -> None:
        if self._name(ordinal) in self.world.pods:
            self.world.run_kubelet(self._name(ordinal))

    @rule(preferred=st.lists(ORDINALS, max_size=3))
    def clients_write(self, preferred: list[int]) -> None:
        self.world.write(preferred)

    @rule()
    def members_elect(self) -> None:
        self.world.elect()
        self.world.write()

    @rule(lost=SOME)
    def pods_are_lost(self, lost: set[int]) -> None:
        for ordinal in lost:
            self.world.remove_pod(self._name(ordinal))

    @rule(ordinal=ORDINALS)
    def a_process_is_killed(self, ordinal: int) -> None:
        if self._name(ordinal) in self.world.pods:
            self.world.kill(self._name(ordinal))

    @rule(ordinal=ORDINALS, is_frozen=st.booleans())
    def a_process_freezes_or_thaws(self, ordinal: int, is_frozen: bool) -> None:
        for process in self.world.processes.values():
            if process.name == self._name(ordinal):
                process.is_frozen = is_frozen

    @rule(ordinal=ORDINALS)
    def an_image_cannot_be_pulled(self, ordinal: int) -> None:
        self.world.unpullable.add(self._name(ordinal))

    @rule()
    def images_can_be_pulled_again(self) -> None:
        self.world.unpullable.clear()

    @rule(ordinal=ORDINALS)
    def a_sealed_volume_is_wiped(self, ordinal: int) -> None:
        peer = self.world.peers.get(self._name(ordinal))
        if (
            peer is not None
            and isinstance(peer.template, Resuming)
            and self._name(ordinal) in self.world.claims
        ):
            self.world.wipe(self._name(ordinal))

    # people

    @rule(name=st.sampled_from(["db", "db-0000", "db-0001"]))
    def a_service_is_deleted(self, name: str) -> None:
        self.world.services.pop(name, None)

    @rule(peers=SOME, claims=SOME)
    def peers_and_claims_are_deleted(self, peers: set[int], claims: set[int]) -> None:
        if not self.world.is_persistent:
            return
        if self._would_hide_a_birth({self._name(ordinal) for ordinal in peers | claims}):
            return
        for ordinal in peers:
            self.world.delete_peer(self._name(ordinal))
        for ordinal in claims:
            self.world.delete_claim(self._name(ordinal))

    @precondition(lambda self: self.world.resource is not None)
    @rule()
    def the_cluster_is_deleted(self) -> None:
        self.world.delete_cluster()

    @precondition(lambda self: self.world.resource is None)
    @rule(size=SIZES)
    def the_cluster_is_created_again(self, size: int) -> None:
        self.operator.deliver("claims")
        self.world.create_cluster(size)

    # what must hold

    @invariant()
    def no_acknowledged_write_is_lost_and_no_cluster_is_born_twice(self) -> None:
        if hasattr(self, "world"):
            assert not self.world.losses

    @invariant()
    def nothing_founds_after_the_latch(self) -> None:
        if hasattr(self, "world"):
            assert not self.world.founded_after_latch

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self._ends_settled()

    def _ends_settled(self) -> None:
        """Faults stop: within a bound there is nothing left to do, for a reason that is true."""
        self.world.unpullable.clear()
        for process in self.world.processes.values():
            process.is_frozen = False
        state, made = self._run_until_idle()
        if state is None or made is None:
            return
        assert made.stage is not Stage.WORKING, f"still {made.reason}: {made.message}"
        assert is_true(self.world, state, made), f"not true: {made.reason}: {made.message}"
        for _ in range(QUIET_PASSES):
            self._catch_up()
            again = self.operator.step()
            assert again == made, f"not at rest: {again}"
            self.nature_goes_on()
        assert not self.world.losses

    def _run_until_idle(self) -> tuple[ClusterState | None, Plan | None]:
        state, made = None, None
        for _ in range(PASSES_TO_SETTLE):
            self._catch_up()
            state = self.operator.observe()
            made = self.operator.step()
            self.nature_goes_on()
        return state, made

    # helpers

    def _name(self, ordinal: int) -> str:
        return member_name(persistent(), ordinal) if self.world.is_persistent else f"db-{ordinal:04d}"

    def _would_hide_a_birth(self, lost: set[str]) -> bool:
        """Spares the last ReplicaSet until the latch: test_birth_losses.py shows what comes of it."""
        started = {name for name, peer in self.world.peers.items() if peer.template is not None}
        return bool(self.world.acknowledged) and not self._is_latched() and started <= lost

    def _is_latched(self) -> bool:
        """In status or, after the resource, on a claim."""
        resource = self.world.resource
        marked = any(claim.cluster_id for claim in self.world.claims.values())
        return marked or (resource is not None and resource.record.is_born)

    def _catch_up(self) -> None:
        for kind in KINDS:
            self.operator.deliver(kind)

    def _checked(self, made: Plan | None) -> None:
        for action in made.actions if made is not None else ():
            assert isinstance(action, NOT_DELETING)
        assert made is None or made.stage is Stage.WORKING or not made.actions


PROFILE: dict[str, Any] = {
    "deadline": None,
    "max_examples": 150,
    "stateful_step_count": 30,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}

TestBirths = Births.TestCase
TestBirths.settings = settings(**PROFILE)
