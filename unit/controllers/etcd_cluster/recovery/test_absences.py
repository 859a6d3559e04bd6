"""For how long members have been missed: nothing shortens that time."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import LONGEST_GAP
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import NO_ABSENCE
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.recovery.absences import Absences
from etcd_operator.errors import NotFound, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.resources import IMPROBABLE_CLUSTERS
from etcd_operator.kube.views import Written
from unit.controllers.etcd_cluster.decide.builders import (
    answer,
    answering,
    bootstrapped,
    persistent,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import RECOVERY, lost
from unit.fakes.clock import FakeClock

KEY = Key("ns", "db")
STEP = 2.0


class Server:
    """Answers reads of the EtcdCluster; or fails, or has another one of that name."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.uid = "uid-1"

    def get(self, *_: Any) -> Written:
        if self.failure is not None:
            raise self.failure
        return msgspec.convert({"metadata": {"name": "db", "uid": self.uid}}, Written)


class Counting:
    """Passes over one cluster, one every `STEP`."""

    def __init__(self) -> None:
        self.clock, self.server, self.leads, self.epoch = FakeClock(), Server(), True, 0
        self.absences = Absences(
            client=self.server,  # type: ignore[arg-type]
            resource=IMPROBABLE_CLUSTERS,
            clock=self.clock,
            epoch=lambda: self.epoch,
            may_act=lambda: self.leads,
        )

    def observed(self, state: ClusterState) -> float:
        self.clock.advance(STEP)
        return self.absences.missed_for(KEY, state).seconds


def automatic(state: ClusterState) -> ClusterState:
    return replace(state, desired=replace(state.desired, recovers_after=600.0))


LOST = automatic(lost())


def test_the_time_is_that_of_the_first_pass_that_saw_the_loss() -> None:
    counting = Counting()
    assert [counting.observed(LOST) for _ in range(4)] == [0.0, STEP, 2 * STEP, 3 * STEP]
    assert counting.absences.missed_for(KEY, LOST).since == "2026-01-01T00:00:02Z"


def test_a_clock_that_is_set_changes_nothing() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.clock.jump(86_400.0)
    assert counting.observed(LOST) == STEP
    counting.clock.jump(-2 * 86_400.0)
    assert counting.observed(LOST) == 2 * STEP
    assert counting.absences.missed_for(KEY, LOST).since == "2026-01-01T00:00:02Z"


@pytest.mark.parametrize("failure", [Unavailable("no answer"), NotFound("gone")])
def test_without_the_api_server_it_begins_again(failure: Exception) -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.server.failure = failure
    assert counting.observed(LOST) == 0.0
    counting.server.failure = None
    assert [counting.observed(LOST), counting.observed(LOST)] == [0.0, STEP]


def test_another_resource_of_the_same_name_begins_again() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.server.uid = "another"
    assert counting.observed(LOST) == 0.0


def test_without_the_lease_it_begins_again() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.leads = False
    assert counting.observed(LOST) == 0.0
    counting.leads = True
    assert [counting.observed(LOST), counting.observed(LOST)] == [0.0, STEP]


def with_learner(committed: int, **changes: Any) -> ClusterState:
    """A learner answers; etcd reports its last leader for ever."""
    reply = answer("db-7", is_learner=True, leader="id-db-0", committed=committed, **changes)
    return replace(LOST, members=(*LOST.members, silent(LOST.desired, "db-7", answer=reply)))


def test_a_write_that_a_learner_hears_of_begins_it_again() -> None:
    counting = Counting()
    states = [with_learner(40), with_learner(40), with_learner(41), with_learner(41)]
    assert [counting.observed(state) for state in states] == [0.0, STEP, 0.0, STEP]


def test_a_learner_that_is_silent_for_a_while_changes_nothing() -> None:
    counting = Counting()
    states = [with_learner(40), LOST, with_learner(40), with_learner(39)]
    assert [counting.observed(state) for state in states] == [0.0, STEP, 2 * STEP, 3 * STEP]


def test_a_learner_of_another_cluster_changes_nothing() -> None:
    counting = Counting()
    states = [with_learner(40), with_learner(90, cluster_id="feed")]
    assert [counting.observed(state) for state in states] == [0.0, STEP]


def test_a_lease_that_was_lost_between_two_passes_begins_it_again() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.epoch += 1
    assert [counting.observed(LOST), counting.observed(LOST)] == [0.0, STEP]


def test_a_pass_that_saw_no_loss_begins_again() -> None:
    counting = Counting()
    counting.observed(LOST)
    assert counting.observed(automatic(bootstrapped(persistent()))) == 0.0
    assert [counting.observed(LOST), counting.observed(LOST)] == [0.0, STEP]


def test_a_long_time_without_a_pass_begins_again() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.clock.advance(LONGEST_GAP - STEP)
    assert counting.observed(LOST) == LONGEST_GAP
    counting.clock.advance(LONGEST_GAP)
    assert counting.observed(LOST) == 0.0


def counted_for(seconds: float) -> ClusterState:
    """The loss, with that `recoveryAfterSeconds`."""
    return replace(LOST, desired=replace(LOST.desired, recovers_after=seconds))


def test_two_moments_of_silence_are_not_a_short_time_of_silence() -> None:
    """A process that was stopped in between has not seen what was there."""
    lost_for, counting = counted_for(40.0), Counting()
    counting.observed(lost_for)
    counting.clock.advance(20.0 - STEP)
    assert counting.observed(lost_for) == 20.0
    counting.clock.advance(20.0)
    assert counting.observed(lost_for) == 0.0


def test_the_shortest_time_can_be_counted_by_a_busy_operator() -> None:
    lost_for, counting = counted_for(10.0), Counting()
    counting.observed(lost_for)
    counting.clock.advance(8.0 - STEP)
    assert counting.observed(lost_for) == 8.0


def test_each_member_has_the_whole_time() -> None:
    counting = Counting()
    more = automatic(lost(5, 0, 1, 2, 3))
    counting.observed(automatic(lost(5, 0, 1, 2)))
    counting.observed(automatic(lost(5, 0, 1, 2)))
    assert [counting.observed(more), counting.observed(more)] == [0.0, STEP]
    assert counting.observed(automatic(lost(5, 0, 1, 2))) == 4 * STEP, "another one answers again"


def test_a_deleted_cluster_is_forgotten() -> None:
    counting = Counting()
    counting.observed(LOST)
    counting.absences.forget(KEY)
    assert counting.observed(LOST) == 0.0


def recovered(token: str = "uid-1-1", *, has_quorum: bool = True) -> ClusterState:
    state = bootstrapped(persistent())
    recovery = msgspec.structs.replace(
        RECOVERY, replaces="feed", token=token, authority="Automatic", is_unstable=True
    )
    persisted = replace(state.persisted, recovery=recovery)
    return replace(state, has_quorum=has_quorum, desired=replace(state.desired, persisted=persisted))


def test_what_serves_since_a_recovery_is_counted_until_it_does_not() -> None:
    counting = Counting()

    def served(state: ClusterState) -> float:
        counting.clock.advance(STEP)
        return counting.absences.served_for(KEY, state)

    assert [served(recovered()), served(recovered())] == [0.0, STEP]
    assert [served(recovered(has_quorum=False)), served(recovered())] == [0.0, 0.0]
    assert [served(recovered("uid-1-2")), served(recovered("uid-1-2"))] == [0.0, STEP]
    counting.epoch += 1
    assert [served(recovered("uid-1-2")), served(recovered("uid-1-2"))] == [0.0, STEP]
    assert served(bootstrapped(persistent())) == 0.0
    counting.absences.forget(KEY)


def test_how_long_an_attempt_to_recover_is_known() -> None:
    counting = Counting()

    def known(state: ClusterState) -> float:
        counting.clock.advance(STEP)
        return counting.absences.attempted_for(KEY, state)

    def attempt(token: str) -> ClusterState:
        state = recovered(token)
        return with_record(
            state,
            recovery=msgspec.structs.replace(RECOVERY, token=token, replaces=state.persisted.cluster_id),
        )

    assert [known(attempt("uid-1-1")) for _ in range(3)] == [0.0, STEP, 2 * STEP]
    assert [known(attempt("uid-1-2")), known(attempt("uid-1-2"))] == [0.0, STEP]
    assert [known(recovered()), known(attempt("uid-1-2"))] == [0.0, 0.0]
    counting.absences.forget(KEY)
    assert known(attempt("uid-1-2")) == 0.0


def test_nothing_is_read_where_nothing_is_counted() -> None:
    counting = Counting()
    counting.server.failure = AssertionError("a read")
    assert counting.absences.missed_for(KEY, lost()) == NO_ABSENCE
    assert counting.absences.missed_for(KEY, answering(LOST, "db-2", leader="id-db-0")) == NO_ABSENCE
