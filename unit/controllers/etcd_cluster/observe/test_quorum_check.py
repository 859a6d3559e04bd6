"""A quorum that is lost without an event is noticed between two probes, by one read at one voter."""

import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_cluster.observe import quorum_check
from etcd_operator.controllers.etcd_cluster.observe.prober import RECENT
from etcd_operator.controllers.etcd_cluster.observe.quorum_check import QuorumCheck
from etcd_operator.controllers.etcd_cluster.parts import ClusterGroup
from etcd_operator.etcd.values import Answered
from etcd_operator.keys import Key
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import ephemeral, persistent
from unit.passes.probing import KEY, NAMES, ProbedCluster, probed_cluster

ANSWER_SECONDS = 2.0
"""Longer than the operator's: on a busy machine, too, only who is frozen is late."""


class CheckedCluster:
    """A quorum check of a cluster that a prober probes; `answered` counts the ends of its reads."""

    def __init__(self, cluster: ProbedCluster) -> None:
        self.cluster = cluster
        self.woken: list[Key] = []
        self.codes: list[str] = []
        self.answered = threading.Semaphore(0)
        self.quorum_check = QuorumCheck(cluster.prober.settled, wake=self._wake, on_call=self._on_call)
        self._wakes = threading.Semaphore(0)

    def check(self) -> None:
        """One check, and the end of its read."""
        self.cluster.clock.advance(RECENT)
        self.quorum_check.check()
        assert self.answered.acquire(timeout=60)

    def wakes(self) -> bool:
        """Whether a cluster is woken, which follows the end of a read."""
        return self._wakes.acquire(timeout=60)

    def _wake(self, key: Key) -> None:
        self.woken.append(key)
        self._wakes.release()

    def _on_call(self, _name: str, code: str, _seconds: float) -> None:
        self.codes.append(code)
        self.answered.release()


@pytest.fixture
def checked() -> Iterator[CheckedCluster]:
    with probed_cluster() as cluster, patch.object(quorum_check, "ANSWER_SECONDS", ANSWER_SECONDS):
        made = CheckedCluster(cluster)
        yield made
        made.quorum_check.stop()


def test_a_cluster_with_a_quorum_is_left_alone(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    for _ in NAMES:
        checked.check()
    assert checked.codes == ["OK"] * len(NAMES)
    assert checked.woken == []


def test_a_quorum_that_hangs_is_reported_by_the_next_quorum_check(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    for name in NAMES[:2]:
        checked.cluster.etcd.freeze(name)
    checked.check()
    assert checked.wakes()
    assert checked.woken == [KEY]


@pytest.mark.parametrize("hanging", NAMES)
def test_a_voter_that_hangs_is_reported_when_its_turn_comes(checked: CheckedCluster, hanging: str) -> None:
    checked.cluster.probe()
    leader = checked.cluster.etcd.leader
    assert leader is not None
    checked.cluster.etcd.freeze(hanging)
    for _ in NAMES:
        checked.check()
    assert checked.wakes()
    assert hanging == leader.name or checked.woken == [KEY]


def test_a_cluster_that_had_no_quorum_is_not_asked(checked: CheckedCluster) -> None:
    for name in NAMES[:2]:
        checked.cluster.etcd.freeze(name)
    assert checked.cluster.probe().quorum is not True
    checked.cluster.clock.advance(RECENT)
    checked.quorum_check.check()
    assert checked.cluster.prober.settled() == []
    assert checked.codes == []


def test_a_cluster_that_was_just_probed_is_not_asked(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    assert checked.cluster.prober.settled() == []


def test_a_cluster_that_is_being_probed_is_not_asked(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    for name in NAMES:
        checked.cluster.etcd.freeze(name)
    assert checked.cluster.prober.collect(KEY, checked.cluster.endpoints) is None
    checked.cluster.clock.advance(RECENT)
    checked.quorum_check.check()
    assert checked.codes == []
    assert checked.cluster.done.acquire(timeout=60)


def test_a_refused_user_has_heard_a_quorum(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    checked.cluster.etcd.auth.require_root("secret")
    for _ in NAMES:
        checked.check()
    assert "OK" not in checked.codes
    assert checked.woken == []


def test_a_learner_is_not_asked_for_what_it_cannot_answer(checked: CheckedCluster) -> None:
    etcd = checked.cluster.etcd
    with etcd.changed:
        etcd.add(etcd.member("m0"), ("http://m3:2380",), is_learner=True)
    learner = etcd.start("m3", peer_url="http://m3:2380").endpoint
    checked.cluster.endpoints |= {learner}
    assert isinstance(checked.cluster.probe().replies[learner], Answered)
    checked.cluster.clock.advance(RECENT)
    (settled,) = checked.cluster.prober.settled()
    assert len(settled.voters) == len(NAMES)
    assert learner not in settled.voters


def test_a_check_for_which_no_thread_can_be_started_is_repeated_by_the_next(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    checked.cluster.clock.advance(RECENT)
    with patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
        checked.quorum_check.check()
    assert checked.codes == []
    checked.quorum_check.check()
    assert checked.answered.acquire(timeout=60)
    assert checked.woken == []


def test_a_cluster_that_is_deleted_meanwhile_is_no_problem(checked: CheckedCluster) -> None:
    checked.cluster.probe()
    checked.cluster.clock.advance(RECENT)
    (settled,) = checked.cluster.prober.settled()
    checked.cluster.prober.forget(KEY)
    quorum_check = QuorumCheck(lambda: [settled], wake=checked.woken.append, on_call=lambda *_: None)
    quorum_check.check()
    quorum_check.stop()
    assert checked.woken == [KEY]  # whose next pass finds that it is deleted


def checkable(made: Bench) -> ClusterGroup:
    """The group of a settled cluster, whose last probe is so old that its quorum is checked."""
    made.settle()
    operator = made.operator
    assert operator is not None
    [group] = [group for group in operator.cluster_groups if group.prober._slots]
    operator.schedule.advance(RECENT)
    return group


@pytest.mark.parametrize("kind", [ephemeral, persistent])
def test_a_failed_check_leads_to_a_probe_with_the_whole_deadline(kind: Any) -> None:
    """The check has waited as long as the first request of a probe."""
    with bootstrapped(*kind()) as made:
        group = checkable(made)
        for member in made.etcd.etcd.voters:
            made.etcd.etcd.freeze(member.name)
        doubted = threading.Event()
        with patch.object(group.prober, "distrust", side_effect=lambda _: doubted.set()):
            (check,) = group.checks
            check()
            assert doubted.wait(30)


@pytest.mark.parametrize("kind", [ephemeral, persistent])
def test_closing_a_group_ends_the_threads_of_its_check(kind: Any) -> None:
    with bootstrapped(*kind()) as made:
        group = checkable(made)
        before = set(threading.enumerate())
        (check,) = group.checks
        check()
        begun = [each for each in threading.enumerate() if each not in before]
        asking = [each for each in begun if each.name.startswith("quorum-check")]
        assert asking
        for close in group.closing:
            close()
        assert not any(each.is_alive() for each in asking)
