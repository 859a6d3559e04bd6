"""Looks at etcd that make nobody wait and do not cry at a short silence."""

import threading
import time
from collections.abc import Collection, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from etcd_operator.etcd import probe as etcd
from etcd_operator.etcd.errors import NotProbed
from etcd_operator.etcd.probe import Answer, NoAnswer, Probe, Refused
from etcd_operator.etcd.vitals import Page, Reading, Vitals
from etcd_operator.reconcile import prober
from etcd_operator.reconcile.prober import FRESH, FULL_PROBE_SECONDS, LASTING_SILENCE, RECENT
from unit.reconcile.looker import DEADLINE, KEY, NAMES, PATIENCE, Looker, looking


@pytest.fixture
def looker() -> Iterator[Looker]:
    with looking() as made:
        yield made


def test_no_endpoints_need_no_look(looker: Looker) -> None:
    assert looker.prober.take(KEY, frozenset()) == Probe(answers={}, quorum=None)


def test_a_cluster_without_endpoints_has_no_quorum_to_be_checked(looker: Looker) -> None:
    """Or each quorum check asks a pod that is gone, and wakes its cluster, every two seconds for ever."""
    looker.look()
    looker.clock.advance(RECENT)
    assert [cluster.key for cluster in looker.prober.settled()] == [KEY]
    looker.prober.take(KEY, frozenset())
    assert not looker.prober.settled()


def test_a_look_is_used_once(looker: Looker) -> None:
    looker.look()

    assert looker.prober.take(KEY, looker.endpoints) is None
    assert looker.done.acquire(timeout=10)


@pytest.mark.parametrize(("seconds", "is_used"), [(FRESH, True), (FRESH + 0.1, False)])
def test_a_look_that_was_left_lying_is_not_used(looker: Looker, seconds: float, is_used: bool) -> None:
    """Nobody takes the last one when the Lease is lost: hours later another may have changed all."""
    assert looker.prober.take(KEY, looker.endpoints) is None
    assert looker.done.acquire(timeout=10)
    looker.clock.advance(seconds)

    assert (looker.prober.take(KEY, looker.endpoints) is not None) is is_used
    assert is_used or looker.done.acquire(timeout=10)


def test_a_member_that_hesitates_is_asked_again_before_it_is_called_silent(looker: Looker) -> None:
    looker.look()
    looker.etcd.freeze("m1")
    thaw = threading.Timer(PATIENCE * 1.5, lambda: looker.etcd.thaw("m1"))
    thaw.start()
    look = looker.look()
    thaw.join()

    assert all(isinstance(reply, Answer) for reply in look.answers.values())


def test_members_that_want_a_user_are_asked_for_the_quorum_and_missed_when_silent(looker: Looker) -> None:
    looker.etcd.users["root"] = "secret"
    look = looker.look()
    assert {isinstance(reply, Refused) and reply.is_serving for reply in look.answers.values()} == {True}
    looker.clock.advance(RECENT)
    (settled,) = looker.prober.settled()
    assert set(settled.voters) == looker.endpoints

    looker.etcd.freeze("m1")
    looker.calls.clear()
    looker.look()
    assert looker.calls.count("Status") == 2 * len(NAMES)


def test_it_is_remembered_how_long_a_member_has_been_silent(looker: Looker) -> None:
    silent = looker.etcd.member("m1").endpoint
    looker.etcd.freeze("m1")
    assert looker.look().silent_for == {silent: 0.0}
    looker.clock.advance(70.0)
    assert looker.look().silent_for == {silent: 70.0}
    looker.etcd.thaw("m1")
    assert looker.look().silent_for == {}
    looker.etcd.freeze("m1")
    assert looker.look().silent_for == {silent: 0.0}


@pytest.mark.parametrize(("leaving", "times"), [("m1", 1), ("m0", 2)])
def test_only_a_member_that_stays_is_asked_a_second_time(looker: Looker, leaving: str, times: int) -> None:
    looker.look()
    looker.etcd.freeze("m1")
    looker.calls.clear()
    look = looker.look(looker.etcd.member(leaving).endpoint)

    assert isinstance(look.answers[looker.etcd.member("m1").endpoint], NoAnswer)
    assert looker.calls.count("Status") == times * len(NAMES)


def test_a_member_that_was_removed_is_waited_for_no_more(looker: Looker) -> None:
    """Its process may hang for a moment before it ends."""
    looker.look()
    removed = looker.etcd.member("m1").endpoint
    looker.etcd.freeze("m1")
    looker.prober.invalidate(KEY, removed=frozenset({removed}))
    looker.calls.clear()
    began = time.monotonic()
    with patch.object(prober, "PATIENCE", DEADLINE):
        look = looker.look()

    assert time.monotonic() - began < DEADLINE
    assert look.quorum is True
    assert looker.calls.count("Status") == len(NAMES)


def test_an_address_that_comes_back_is_a_members_again(looker: Looker) -> None:
    looker.look()
    again = looker.etcd.member("m1").endpoint
    looker.prober.invalidate(KEY, removed=frozenset({again}))
    everyone, looker.endpoints = looker.endpoints, looker.endpoints - {again}
    looker.look()
    looker.endpoints = everyone
    looker.etcd.freeze("m1")
    thaw = threading.Timer(PATIENCE / 2, lambda: looker.etcd.thaw("m1"))
    thaw.start()
    look = looker.look()
    thaw.join()

    assert isinstance(look.answers[again], Answer)


def test_a_member_that_was_silent_before_is_not_waited_for_again(looker: Looker) -> None:
    looker.etcd.freeze("m1")
    look = looker.look()

    assert sum(isinstance(reply, NoAnswer) for reply in look.answers.values()) == 1
    assert look.quorum is True


def test_a_look_at_what_is_closed_meanwhile_is_no_crash(looker: Looker) -> None:
    """The operator ends, or the cluster is deleted, while a look begins."""
    looker.look()
    looker.prober.channels(KEY).close()
    with capture_logs() as said:
        assert looker.look() == Probe(answers={}, quorum=None)
    assert said == []


def test_a_probe_that_fails_in_this_process_is_no_silence_of_members(looker: Looker) -> None:
    """A pass that took it for one would report a lost quorum and take the members from their clients."""
    looker.look()
    with patch.object(prober, "probe", side_effect=RuntimeError("can't start new thread")), capture_logs():
        assert looker.prober.take(KEY, looker.endpoints) is None
        assert looker.done.acquire(timeout=10)
        with pytest.raises(NotProbed, match="can't start new thread"):
            looker.prober.take(KEY, looker.endpoints)
    assert looker.look().quorum is True


def test_a_cluster_that_got_no_thread_is_asked_once_there_are_threads_again(looker: Looker) -> None:
    with patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
        for _ in range(3):
            with pytest.raises(NotProbed, match="can't start new thread"):
                looker.prober.take(KEY, looker.endpoints)
    assert looker.look().quorum is True
    looker.prober.stop()
    assert not looker.done.acquire(timeout=0)  # what was left in the queue has asked nobody
    assert looker.calls.count("Status") == len(looker.endpoints)


def test_what_was_seen_before_etcd_was_changed_is_thrown_away(looker: Looker) -> None:
    assert looker.prober.take(KEY, looker.endpoints) is None
    looker.prober.invalidate(KEY)
    assert looker.done.acquire(timeout=10)

    assert looker.prober.take(KEY, looker.endpoints) is None  # another look is begun
    assert looker.done.acquire(timeout=10)
    assert looker.prober.take(KEY, looker.endpoints) is not None


def test_a_look_that_does_not_cover_a_new_member_is_not_used(looker: Looker) -> None:
    two = frozenset(sorted(looker.endpoints)[:2])
    assert looker.prober.take(KEY, two) is None
    assert looker.done.acquire(timeout=10)

    assert looker.prober.take(KEY, looker.endpoints) is None
    assert looker.done.acquire(timeout=10)


def test_pages_are_read_on_the_probers_thread_once_it_is_known_who_answers(looker: Looker) -> None:
    """A page may hang like its process: no worker waits for one."""
    looker.etcd.freeze("m1")
    frozen, readers = looker.etcd.member("m1").endpoint, []

    def read(readings: Collection[Reading]) -> dict[str, Vitals]:
        readers.append(threading.current_thread().name)
        return {reading.endpoint: Vitals(leaders_seen=0) for reading in readings}

    def of_the_silent(look: Probe) -> frozenset[Reading]:
        silent = {at for at, reply in look.answers.items() if not isinstance(reply, Answer)}
        return frozenset(Reading(at, Page.METRICS) for at in silent)

    with patch.object(prober, "read", read):
        assert looker.prober.take(KEY, looker.endpoints, wanted=of_the_silent) is None
        assert looker.done.acquire(timeout=10)
    look = looker.prober.take(KEY, looker.endpoints, wanted=of_the_silent)

    assert look is not None
    assert look.vitals == {frozen: Vitals(leaders_seen=0)}
    assert [name.partition("-")[0] for name in readers] == ["prober"]


def test_a_look_without_the_pages_that_a_pass_needs_is_not_used(looker: Looker) -> None:
    """What a pass knows of the cluster may have changed since the look was begun."""

    def of_all(look: Probe) -> frozenset[Reading]:
        return frozenset(Reading(at, Page.METRICS) for at in look.answers)

    assert looker.prober.take(KEY, looker.endpoints) is None
    assert looker.done.acquire(timeout=10)

    assert looker.prober.take(KEY, looker.endpoints, wanted=of_all) is None
    assert looker.done.acquire(timeout=10)
    look = looker.prober.take(KEY, looker.endpoints, wanted=of_all)
    assert look is not None
    assert look.vitals.keys() == looker.endpoints


class Threads:
    """On which threads, and with which deadline, a prober asks."""

    def __init__(self, looker: Looker) -> None:
        self._looker = looker
        self.asked: list[tuple[str, float]] = []

    def probe(self, *args: Any, deadline: float, **options: Any) -> Probe:
        self.asked.append((threading.current_thread().name.split("-")[1].partition("_")[0], deadline))
        return etcd.probe(*args, deadline=deadline, **options)

    def of_look(self, after: float = 0.0) -> list[tuple[str, float]]:
        """Those of one look that is begun `after` so many seconds."""
        self._looker.clock.advance(after)
        self.asked.clear()
        self._looker.look()
        return self.asked[:]


@pytest.fixture
def threads(looker: Looker) -> Iterator[Threads]:
    made = Threads(looker)
    with (
        patch.object(prober, "probe", made.probe),
        patch.object(prober, "PATIENCE", SHORT),
        patch.object(looker.prober, "_deadline", FULL),
    ):
        yield made


SHORT, FULL = 1.0, 1.3
QUICK, CONFIRM = ("quick", SHORT), ("confirm", FULL)


def test_whoever_is_silent_is_waited_for_on_other_threads(looker: Looker, threads: Threads) -> None:
    for name in NAMES:
        looker.etcd.freeze(name)
    assert threads.of_look() == [QUICK, CONFIRM]
    assert threads.of_look(LASTING_SILENCE - 0.1) == [CONFIRM]
    assert threads.of_look(0.1) == [("silent", SHORT)]


def test_a_lasting_silence_is_given_the_whole_deadline_now_and_then(looker: Looker, threads: Threads) -> None:
    for name in NAMES:
        looker.etcd.freeze(name)
    threads.of_look()
    assert threads.of_look(FULL_PROBE_SECONDS) == [("silent", SHORT), ("silent", FULL)]
    assert threads.of_look(FULL_PROBE_SECONDS - 0.1) == [("silent", SHORT)]


@pytest.mark.parametrize(("back", "quorum"), [(NAMES[:1], False), (NAMES, True)])
def test_who_comes_back_is_heard_among_the_silent(
    looker: Looker, threads: Threads, back: tuple[str, ...], quorum: bool
) -> None:
    for name in NAMES:
        looker.etcd.freeze(name)
    threads.of_look()
    for name in back:
        looker.etcd.thaw(name)
    asked = threads.of_look(LASTING_SILENCE)
    assert asked == [("silent", SHORT)] + ([] if quorum else [CONFIRM])
    assert bool(looker.look().quorum) is quorum


def test_a_silent_cluster_whose_pods_change_is_asked_at_once(looker: Looker, threads: Threads) -> None:
    for name in NAMES[:2]:
        looker.etcd.freeze(name)
    threads.of_look()
    assert threads.of_look(LASTING_SILENCE)[0] == ("silent", SHORT)
    looker.endpoints = frozenset(sorted(looker.endpoints)[1:])
    assert threads.of_look()[0] == QUICK


def test_a_member_that_falls_silent_is_asked_again_on_other_threads(looker: Looker, threads: Threads) -> None:
    assert threads.of_look() == [QUICK]
    looker.etcd.freeze("m1")
    assert threads.of_look() == [QUICK, CONFIRM]
    assert threads.of_look() == [QUICK]
