"""One cluster, one operator, one user, and nature: what every random run has, and how it ends.

The tests run the same examples each time; `hack/test --explore` runs new ones (docs/development.md).
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import ELECTION
from unit.controllers.etcd_cluster.decide.builders import ephemeral, persistent
from unit.simulation.model import World
from unit.simulation.model_operator import KINDS, Decision, Operator
from unit.simulation.model_truth import is_true, story, waits_in_vain

PASSES_TO_SETTLE = 250
RESTING = 4
QUIET_PASSES = 10


def profile(examples: int, *, steps: int = 30) -> settings:
    """So many examples of so many steps at most."""
    return settings(
        deadline=None,
        max_examples=examples,
        stateful_step_count=steps,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


class Machine(RuleBasedStateMachine):
    """A subclass begins with `world` and `operator`."""

    world: World
    operator: Operator
    decided: Decision | None = None

    # the operator

    @rule(times=st.integers(1, 4))
    def everything_goes_on(self, times: int) -> None:
        """The usual course, so that runs get far."""
        for _ in range(times):
            self.operator.catch_up()
            self.operator.step()
            self.nature_goes_on()
        self.world.agree()

    @rule()
    def operator_observes_the_world_as_it_is(self) -> None:
        self.operator.catch_up()
        self.operator.step()

    @rule(stop_after=st.integers(0, 7))
    def operator_dies_during_a_pass(self, stop_after: int) -> None:
        self.operator.step(stop_after=stop_after)
        self.decided = None
        self.operator.restart()

    @rule(stop_after=st.integers(1, 7))
    def reply_of_an_action_is_lost(self, stop_after: int) -> None:
        self.operator.step(stop_after=stop_after, loses_reply=True)

    @rule()
    def operator_observes_with_the_caches_it_has(self) -> None:
        self.operator.step()

    @rule()
    def operator_decides_and_is_slow_to_act(self) -> None:
        self.decided = self.operator.decide()

    @rule()
    def operator_acts_on_what_it_decided_then(self) -> None:
        decided, self.decided = self.decided, None
        if decided is not None:
            self.operator.act(decided)

    @rule(kind=st.sampled_from(KINDS))
    def a_cache_catches_up(self, kind: str) -> None:
        self.operator.deliver(kind)

    # nature

    @rule()
    def nature_goes_on(self) -> None:
        self.world.run_controllers()
        self.world.run_kubelets()
        self.members_elect()

    @rule()
    def controllers_act(self) -> None:
        self.world.run_controllers()

    @rule()
    def members_elect(self) -> None:
        self.world.elect()
        self.world.write()

    @rule(preferred=st.lists(st.integers(0, 6), max_size=3))
    def clients_write(self, preferred: list[int]) -> None:
        self.world.write(preferred)

    @rule()
    def images_can_be_pulled_again(self) -> None:
        self.world.unpullable.clear()

    # what must hold

    @invariant()
    def nothing_happens_that_never_must(self) -> None:
        if hasattr(self, "world"):
            assert not self.world.losses, self.world.losses

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self._ends()

    def _ends(self) -> None:
        """Everything stops, and nothing is left to do."""
        self._faults_stop()
        made = self._comes_to_rest()
        if made is not None:
            self._judge_end(made)

    def _faults_stop(self) -> None:
        self.world.unpullable.clear()
        self.world.slow_elections = 0
        for node in list(self.world.away):
            self.world.return_node(node)
        for process in self.world.processes.values():
            process.is_frozen = process.is_cut_off = process.is_unreachable = False

    def _comes_to_rest(self) -> Plan | None:
        """Within a bound there is nothing left to do, for a reason that is true; None: nothing is there."""
        ended = self._run_until_idle()
        if ended is None:
            return None
        state, made = ended
        if not waits_in_vain(self.world, state, made):
            assert made.stage is not Stage.WORKING, story(self.world, state, made)
            assert is_true(self.world, state, made), story(self.world, state, made)
        for _ in range(QUIET_PASSES):
            self.operator.catch_up()
            again = self.operator.step()
            assert again is not None
            assert again == made, f"not at rest: {again}"
            self.nature_goes_on()
        assert not self.world.losses, self.world.losses
        return made

    def _judge_end(self, made: Plan) -> None:
        """For a subclass that knows more."""

    def _run_until_idle(self) -> Decision | None:
        """Passes until the same rest is seen a few times, or the bound is reached."""
        rests = 0
        ended: Decision | None = None
        for _ in range(PASSES_TO_SETTLE):
            self.operator.catch_up()
            before = ended
            ended = self.operator.decide()
            if ended is None:
                return None
            is_rest = before is not None and ended[1].stage is not Stage.WORKING
            is_rest = is_rest and before is not None and ended[1] == before[1]
            is_rest = is_rest and not 0 < ended[0].unavailable_for <= ELECTION  # the reason may change then
            rests = rests + 1 if is_rest else 0
            if rests >= RESTING and is_true(self.world, *ended):
                break
            self.operator.act(ended)
            self.nature_goes_on()
            self.world.agree()
        return ended

    def name(self, ordinal: int) -> str:
        """The member of that number."""
        return (persistent() if self.world.is_persistent else ephemeral()).member_name(ordinal)
