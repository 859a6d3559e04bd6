"""A quorum that goes without an event is noticed between two looks, by one read at one voter."""

import threading
from collections.abc import Iterator

import pytest

from etcd_operator.etcd.probe import Answer
from etcd_operator.keys import Key
from etcd_operator.reconcile.prober import RECENT
from etcd_operator.reconcile.quorum_check import QuorumCheck
from unit.reconcile.looker import KEY, NAMES, Looker, looking


class Feeler:
    """A pulse on the clusters that a prober looked at; `answered` counts the ends of its reads."""

    def __init__(self, looker: Looker) -> None:
        self.looker = looker
        self.woken: list[Key] = []
        self.codes: list[str] = []
        self.answered = threading.Semaphore(0)
        self.quorum_check = QuorumCheck(looker.prober.settled, wake=self._wake, on_call=self._on_call)
        self._wakes = threading.Semaphore(0)

    def check(self) -> None:
        """One beat, and the end of its read."""
        self.looker.clock.advance(RECENT)
        self.quorum_check.check()
        assert self.answered.acquire(timeout=10)

    def wakes(self) -> bool:
        """Whether a cluster is told, which follows the end of a read."""
        return self._wakes.acquire(timeout=10)

    def _wake(self, key: Key) -> None:
        self.woken.append(key)
        self._wakes.release()

    def _on_call(self, _name: str, code: str, _seconds: float) -> None:
        self.codes.append(code)
        self.answered.release()


@pytest.fixture
def feeler() -> Iterator[Feeler]:
    with looking() as looker:
        made = Feeler(looker)
        yield made
        made.quorum_check.stop()


def test_a_cluster_with_a_quorum_is_left_alone(feeler: Feeler) -> None:
    feeler.looker.look()
    for _ in NAMES:
        feeler.check()
    assert feeler.codes == ["OK"] * len(NAMES)
    assert feeler.woken == []


def test_a_quorum_that_hangs_is_reported_by_the_next_quorum_check(feeler: Feeler) -> None:
    feeler.looker.look()
    for name in NAMES[:2]:
        feeler.looker.etcd.freeze(name)
    feeler.check()
    assert feeler.wakes()
    assert feeler.woken == [KEY]


@pytest.mark.parametrize("hanging", NAMES)
def test_a_voter_that_hangs_is_reported_when_its_turn_comes(feeler: Feeler, hanging: str) -> None:
    feeler.looker.look()
    leader = feeler.looker.etcd.leader
    assert leader is not None
    feeler.looker.etcd.freeze(hanging)
    for _ in NAMES:
        feeler.check()
    assert feeler.wakes()
    assert hanging == leader.name or feeler.woken == [KEY]


def test_a_cluster_that_had_no_quorum_is_not_asked(feeler: Feeler) -> None:
    for name in NAMES[:2]:
        feeler.looker.etcd.freeze(name)
    assert feeler.looker.look().quorum is not True
    feeler.looker.clock.advance(RECENT)
    feeler.quorum_check.check()
    assert feeler.looker.prober.settled() == []
    assert feeler.codes == []


def test_a_cluster_that_was_just_looked_at_is_not_asked(feeler: Feeler) -> None:
    feeler.looker.look()
    assert feeler.looker.prober.settled() == []


def test_a_cluster_that_is_being_looked_at_is_not_asked(feeler: Feeler) -> None:
    feeler.looker.look()
    for name in NAMES:
        feeler.looker.etcd.freeze(name)
    assert feeler.looker.prober.take(KEY, feeler.looker.endpoints) is None
    feeler.looker.clock.advance(RECENT)
    feeler.quorum_check.check()
    assert feeler.codes == []
    assert feeler.looker.done.acquire(timeout=20)


def test_a_refused_user_has_heard_a_quorum(feeler: Feeler) -> None:
    feeler.looker.look()
    feeler.looker.etcd.users["root"] = "secret"
    for _ in NAMES:
        feeler.check()
    assert "OK" not in feeler.codes
    assert feeler.woken == []


def test_a_learner_is_not_asked_for_what_it_cannot_answer(feeler: Feeler) -> None:
    etcd = feeler.looker.etcd
    with etcd.changed:
        etcd.add(etcd.member("m0"), ("http://m3:2380",), is_learner=True)
    learner = etcd.start("m3", peer_url="http://m3:2380").endpoint
    feeler.looker.endpoints |= {learner}
    assert isinstance(feeler.looker.look().answers[learner], Answer)
    feeler.looker.clock.advance(RECENT)
    (settled,) = feeler.looker.prober.settled()
    assert len(settled.voters) == len(NAMES)
    assert learner not in settled.voters


def test_a_cluster_that_is_gone_meanwhile_is_no_trouble(feeler: Feeler) -> None:
    feeler.looker.look()
    feeler.looker.clock.advance(RECENT)
    (settled,) = feeler.looker.prober.settled()
    feeler.looker.prober.forget(KEY)
    quorum_check = QuorumCheck(lambda: [settled], wake=feeler.woken.append, on_call=lambda *_: None)
    quorum_check.check()
    quorum_check.stop()
    assert feeler.woken == [KEY]  # whose next pass finds that it is gone
