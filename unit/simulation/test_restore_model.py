"""EtcdRestores in any order of deletions, failures, kills and slow operators: nothing that exists is touched.

A restore is Completed only with a cluster that resumes on complete data, and leaves nothing else behind. Once
the faults stop each restore ends.
"""

from collections.abc import Mapping

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from etcd_operator.api.restores import COMPLETED, FAILED
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE
from unit.simulation.model_machine import profile
from unit.simulation.model_restore_operator import Decision, Operator
from unit.simulation.model_restores import Claim, Cluster, World

WHICH = st.integers(0, 3)
PASSES = 40
"""In which each restore ends."""


class Restores(RuleBasedStateMachine):
    """One namespace with restores to one name, and two operators of which one may be slow."""

    world: World
    decided: tuple[Operator, Decision] | None = None

    @initialize(replicas=st.integers(1, 3), passes=st.integers(0, 12))
    def begin(self, replicas: int, passes: int) -> None:
        self.world = World()
        self.first, self.second = Operator(self.world), Operator(self.world)
        self.world.create_restore(replicas)
        self.everything_goes_on(passes)

    # operators

    @rule(times=st.integers(1, 4))
    def everything_goes_on(self, times: int) -> None:
        for _ in range(times):
            self.an_operator_makes_a_pass(is_second=False, is_fresh=True)
            self.world.end_jobs()
            self.world.start_jobs()
            self.world.finish_deletions()

    @rule(is_second=st.booleans(), is_fresh=st.booleans())
    def an_operator_makes_a_pass(self, is_second: bool, is_fresh: bool) -> None:
        self._pass(self._operator(is_second), is_fresh=is_fresh, stop_after=99)

    @rule(is_second=st.booleans(), stop_after=st.integers(0, 5))
    def an_operator_is_killed_in_a_pass(self, is_second: bool, stop_after: int) -> None:
        self._pass(self._operator(is_second), is_fresh=True, stop_after=stop_after)

    @rule(which=WHICH)
    def an_operator_decides_and_is_slow(self, which: int) -> None:
        uid = self._pick(self.world.restores, which)
        decision = self.first.decide(uid) if uid is not None else None
        self.decided = (self.first, decision) if decision is not None else None

    @rule()
    def it_acts_on_what_it_decided_then(self) -> None:
        if self.decided is not None:
            operator, decision = self.decided
            operator.act(decision)
        self.decided = None

    # users

    @rule(replicas=st.integers(1, 3))
    def another_restore_is_created(self, replicas: int) -> None:
        if len(self.world.restores) < 3:
            self.world.create_restore(replicas)

    @rule(which=WHICH)
    def a_restore_is_deleted(self, which: int) -> None:
        uid = self._pick(self.world.restores, which)
        if uid is not None:
            self.world.delete_restore(uid)

    @rule(which=WHICH)
    def a_claim_is_deleted(self, which: int) -> None:
        name = self._pick(self.world.claims, which)
        if name is not None:
            self.world.delete_claim(name)

    @rule(which=WHICH)
    def a_job_is_deleted(self, which: int) -> None:
        name = self._pick(self.world.jobs, which)
        if name is not None:
            del self.world.jobs[name]

    @rule(number=WHICH)
    def a_user_creates_a_claim(self, number: int) -> None:
        self.world.claims.setdefault(f"db-{number}", Claim(name=f"db-{number}", data="a user's"))

    @rule()
    def a_user_creates_or_deletes_the_cluster(self) -> None:
        if self.world.cluster is None:
            self.world.cluster = Cluster()
        else:
            self.world.cluster.is_terminating = True

    # nature

    @rule(which=WHICH, fails=st.sampled_from([False, False, True]))
    def a_job_ends(self, which: int, fails: bool) -> None:
        name = self._pick(self.world.jobs, which)
        if name is not None:
            self.world.end_job(self.world.jobs[name], fails=fails)

    @rule()
    def jobs_start(self) -> None:
        self.world.start_jobs()

    @rule()
    def deletions_finish(self) -> None:
        self.world.finish_deletions()

    @rule(is_there=st.booleans())
    def the_backup_is_gone_or_back(self, is_there: bool) -> None:
        self.world.has_backup = is_there

    # what must hold

    @invariant()
    def nothing_happens_that_never_must(self) -> None:
        if hasattr(self, "world"):
            assert not self.world.losses, self.world.losses

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.waited = START_PATIENCE
        for _ in range(PASSES):
            self.everything_goes_on(1)
        assert not self.world.losses, self.world.losses
        for restore in self.world.restores.values():
            assert restore.status.phase in (COMPLETED, FAILED), restore

    # helpers

    def _operator(self, is_second: bool) -> Operator:
        return self.second if is_second else self.first

    def _pass(self, operator: Operator, *, is_fresh: bool, stop_after: int) -> None:
        if is_fresh:
            operator.catch_up()
        for uid in list(self.world.restores):
            decision = operator.decide(uid)
            if decision is not None:
                operator.act(decision, stop_after=stop_after)

    def _pick(self, names: Mapping[str, object], which: int) -> str | None:
        there = sorted(names)
        return there[which % len(there)] if there else None


TestRestores = pytest.mark.exhaustive(Restores.TestCase)
TestRestores.settings = profile(100, steps=30)
