"""Probes make no worker wait, and report no short silence."""

import threading
import time
from collections.abc import Collection, Iterator
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.controllers.etcd_cluster.observe.prober import (
    FRESH,
    FULL_PROBE_SECONDS,
    LASTING_SILENCE,
    RECENT,
)
from etcd_operator.etcd.errors import NotProbed
from etcd_operator.etcd.probe import Probe
from etcd_operator.etcd.values import Answered, MetricsPage, NoAnswer, Refused
from unit.passes.probing import DEADLINE, KEY, NAMES, PATIENCE, ProbedCluster, Threads, probed_cluster


@pytest.fixture
def cluster() -> Iterator[ProbedCluster]:
    with probed_cluster() as made:
        yield made


def test_no_endpoints_need_no_probe(cluster: ProbedCluster) -> None:
    assert cluster.prober.collect(KEY, frozenset()) == Probe(replies={}, quorum=None)


def test_a_cluster_without_endpoints_has_no_quorum_to_be_checked(cluster: ProbedCluster) -> None:
    """Or each quorum check asks a pod that is gone, and wakes its cluster, every two seconds for ever."""
    cluster.probe()
    cluster.clock.advance(RECENT)
    assert [cluster.key for cluster in cluster.prober.settled()] == [KEY]
    cluster.prober.collect(KEY, frozenset())
    assert not cluster.prober.settled()


def test_a_result_is_used_once(cluster: ProbedCluster) -> None:
    cluster.probe()

    assert cluster.prober.collect(KEY, cluster.endpoints) is None
    assert cluster.done.acquire(timeout=60)


@pytest.mark.parametrize(("seconds", "is_used"), [(FRESH, True), (FRESH + 0.1, False)])
def test_a_result_that_nobody_collected_in_time_is_not_used(
    cluster: ProbedCluster, seconds: float, is_used: bool
) -> None:
    """Nobody collects the last one when the Lease is lost: hours later another may have changed all."""
    assert cluster.prober.collect(KEY, cluster.endpoints) is None
    assert cluster.done.acquire(timeout=60)
    cluster.clock.advance(seconds)

    assert (cluster.prober.collect(KEY, cluster.endpoints) is not None) is is_used
    assert is_used or cluster.done.acquire(timeout=60)


def test_a_member_that_hesitates_is_asked_again_before_it_is_reported_silent(cluster: ProbedCluster) -> None:
    cluster.probe()
    cluster.etcd.freeze("m1")
    thaw = threading.Timer(PATIENCE * 1.5, lambda: cluster.etcd.thaw("m1"))
    thaw.start()
    result = cluster.probe()
    thaw.join()

    assert all(isinstance(reply, Answered) for reply in result.replies.values())


def test_members_that_require_a_user_are_asked_for_the_quorum_and_missed_when_silent(
    cluster: ProbedCluster,
) -> None:
    cluster.etcd.auth.require_root("secret")
    result = cluster.probe()
    assert {isinstance(reply, Refused) and reply.is_serving for reply in result.replies.values()} == {True}
    cluster.clock.advance(RECENT)
    (settled,) = cluster.prober.settled()
    assert set(settled.voters) == cluster.endpoints

    cluster.etcd.freeze("m1")
    cluster.calls.clear()
    cluster.probe()
    assert cluster.calls.count("Status") == 2 * len(NAMES)


@pytest.mark.exhaustive
def test_it_is_remembered_how_long_a_member_has_been_silent(cluster: ProbedCluster) -> None:
    silent = cluster.etcd.member("m1").endpoint
    cluster.etcd.freeze("m1")
    assert cluster.probe().silent_for == {silent: 0.0}
    cluster.clock.advance(70.0)
    assert cluster.probe().silent_for == {silent: 70.0}
    cluster.etcd.thaw("m1")
    assert cluster.probe().silent_for == {}
    cluster.etcd.freeze("m1")
    assert cluster.probe().silent_for == {silent: 0.0}


def test_a_silence_is_counted_anew_after_leadership_was_lost(cluster: ProbedCluster) -> None:
    """Nobody was asked while another process led: it may have answered that one."""
    silent = cluster.etcd.member("m1").endpoint
    cluster.etcd.freeze("m1")
    cluster.probe()
    cluster.epoch += 1
    cluster.clock.advance(660.0)
    assert cluster.probe().silent_for == {silent: 0.0}
    cluster.clock.advance(70.0)
    assert cluster.probe().silent_for == {silent: 70.0}


@pytest.mark.parametrize(("leaving", "times"), [("m1", 1), ("m0", 2)])
def test_only_a_member_that_is_kept_is_asked_a_second_time(
    cluster: ProbedCluster, leaving: str, times: int
) -> None:
    cluster.probe()
    cluster.etcd.freeze("m1")
    cluster.calls.clear()
    result = cluster.probe(cluster.etcd.member(leaving).endpoint)

    assert isinstance(result.replies[cluster.etcd.member("m1").endpoint], NoAnswer)
    assert cluster.calls.count("Status") == times * len(NAMES)


def test_a_member_that_was_removed_is_waited_for_no_more(cluster: ProbedCluster) -> None:
    """Its process may hang for a moment before it ends."""
    cluster.probe()
    removed = cluster.etcd.member("m1").endpoint
    cluster.etcd.freeze("m1")
    cluster.prober.invalidate(KEY, removed=frozenset({removed}))
    cluster.calls.clear()
    began = time.monotonic()
    with patch.object(prober, "PATIENCE", DEADLINE):
        result = cluster.probe()

    assert time.monotonic() - began < DEADLINE
    assert result.quorum is True
    assert cluster.calls.count("Status") == len(NAMES)


def test_a_probe_ends_once_the_pods_that_are_left_are_too_few_for_a_quorum(cluster: ProbedCluster) -> None:
    """The loss is known seconds earlier: an address without a pod may let a connection hang."""
    cluster.probe()
    left = frozenset({cluster.etcd.member("m0").endpoint})
    for name in NAMES:
        if name != "m0":
            cluster.etcd.freeze(name)
    cluster.calls.clear()
    with patch.object(prober, "PATIENCE", DEADLINE * 0.9):
        assert cluster.prober.collect(KEY, cluster.endpoints) is None
        assert cluster.prober.collect(KEY, left) is None
        assert cluster.done.acquire(timeout=60)
        result = cluster.prober.collect(KEY, left)

    assert result is not None
    assert result.quorum is False
    assert cluster.calls.count("Status") == len(NAMES), "nobody was asked again with the whole deadline"


def test_an_address_that_comes_back_is_a_members_again(cluster: ProbedCluster) -> None:
    cluster.probe()
    again = cluster.etcd.member("m1").endpoint
    cluster.prober.invalidate(KEY, removed=frozenset({again}))
    everyone, cluster.endpoints = cluster.endpoints, cluster.endpoints - {again}
    cluster.probe()
    cluster.endpoints = everyone
    cluster.etcd.freeze("m1")
    thaw = threading.Timer(PATIENCE / 2, lambda: cluster.etcd.thaw("m1"))
    thaw.start()
    result = cluster.probe()
    thaw.join()

    assert isinstance(result.replies[again], Answered)


def test_a_member_that_was_silent_before_is_not_waited_for_again(cluster: ProbedCluster) -> None:
    cluster.etcd.freeze("m1")
    result = cluster.probe()

    assert sum(isinstance(reply, NoAnswer) for reply in result.replies.values()) == 1
    assert result.quorum is True


def test_a_probe_of_what_is_closed_meanwhile_is_no_crash(cluster: ProbedCluster) -> None:
    """The operator ends, or the cluster is deleted, while a probe begins."""
    cluster.probe()
    cluster.prober.channels(KEY).close()
    with capture_logs() as logged:
        assert cluster.probe() == Probe(replies={}, quorum=None)
    assert logged == []


def test_a_probe_that_fails_in_this_process_is_no_silence_of_members(cluster: ProbedCluster) -> None:
    """A pass that mistook it for one would report a lost quorum and take the members from their clients."""
    cluster.probe()
    with patch.object(prober, "probe", side_effect=RuntimeError("can't start new thread")), capture_logs():
        assert cluster.prober.collect(KEY, cluster.endpoints) is None
        assert cluster.done.acquire(timeout=60)
        with pytest.raises(NotProbed, match="can't start new thread"):
            cluster.prober.collect(KEY, cluster.endpoints)
    assert cluster.probe().quorum is True


def test_a_cluster_that_got_no_thread_is_asked_once_there_are_threads_again(cluster: ProbedCluster) -> None:
    with patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
        for _ in range(3):
            with pytest.raises(NotProbed, match="can't start new thread"):
                cluster.prober.collect(KEY, cluster.endpoints)
    assert cluster.probe().quorum is True
    cluster.prober.stop()
    assert not cluster.done.acquire(timeout=0)  # what was left in the queue has asked nobody
    assert cluster.calls.count("Status") == len(cluster.endpoints)


def test_what_was_seen_before_etcd_was_changed_is_discarded(cluster: ProbedCluster) -> None:
    assert cluster.prober.collect(KEY, cluster.endpoints) is None
    cluster.prober.invalidate(KEY)
    assert cluster.done.acquire(timeout=60)

    assert cluster.prober.collect(KEY, cluster.endpoints) is None  # another probe is begun
    assert cluster.done.acquire(timeout=60)
    assert cluster.prober.collect(KEY, cluster.endpoints) is not None


def test_a_result_that_does_not_cover_a_new_member_is_not_used(cluster: ProbedCluster) -> None:
    two = frozenset(sorted(cluster.endpoints)[:2])
    assert cluster.prober.collect(KEY, two) is None
    assert cluster.done.acquire(timeout=60)

    assert cluster.prober.collect(KEY, cluster.endpoints) is None
    assert cluster.done.acquire(timeout=60)


def test_pages_are_read_on_the_probers_thread_once_it_is_known_who_answers(cluster: ProbedCluster) -> None:
    """A page may hang like its process: no worker waits for one."""
    cluster.etcd.freeze("m1")
    frozen, readers = cluster.etcd.member("m1").endpoint, []

    def read(endpoints: Collection[str]) -> dict[str, MetricsPage]:
        readers.append(threading.current_thread().name)
        return {endpoint: MetricsPage(leaders_seen=0) for endpoint in endpoints}

    def of_the_silent(result: Probe) -> frozenset[str]:
        return frozenset(at for at, reply in result.replies.items() if not isinstance(reply, Answered))

    with patch.object(prober, "read", read):
        assert cluster.prober.collect(KEY, cluster.endpoints, pages_needed=of_the_silent) is None
        assert cluster.done.acquire(timeout=60)
    result = cluster.prober.collect(KEY, cluster.endpoints, pages_needed=of_the_silent)

    assert result is not None
    assert result.pages == {frozen: MetricsPage(leaders_seen=0)}
    assert [name.partition("-")[0] for name in readers] == ["prober"]


def test_a_result_without_the_pages_that_a_pass_needs_is_not_used(cluster: ProbedCluster) -> None:
    """What a pass knows of the cluster may have changed since the probe was begun."""

    def of_all(result: Probe) -> frozenset[str]:
        return frozenset(result.replies)

    assert cluster.prober.collect(KEY, cluster.endpoints) is None
    assert cluster.done.acquire(timeout=60)

    assert cluster.prober.collect(KEY, cluster.endpoints, pages_needed=of_all) is None
    assert cluster.done.acquire(timeout=60)
    result = cluster.prober.collect(KEY, cluster.endpoints, pages_needed=of_all)
    assert result is not None
    assert result.pages.keys() == cluster.endpoints


def test_a_result_that_waited_while_leadership_was_lost_is_not_used() -> None:
    """Its silences are counted from a time at which this process led, too."""
    with probed_cluster() as cluster:
        cluster.etcd.freeze("m1")
        cluster.probe()
        cluster.clock.advance(599.0)
        assert cluster.prober.collect(KEY, cluster.endpoints) is None
        assert cluster.done.acquire(timeout=60)
        cluster.epoch += 2
        cluster.clock.advance(20.0)
        assert cluster.prober.collect(KEY, cluster.endpoints) is None


@pytest.fixture
def threads(cluster: ProbedCluster) -> Iterator[Threads]:
    made = Threads(cluster)
    with (
        patch.object(prober, "probe", made.probe),
        patch.object(prober, "PATIENCE", SHORT),
        patch.object(cluster.prober, "_deadline", FULL),
    ):
        yield made


SHORT, FULL = 1.0, 1.3
QUICK, CONFIRM = ("quick", SHORT), ("confirm", FULL)


def test_silent_members_are_waited_for_on_other_threads(cluster: ProbedCluster, threads: Threads) -> None:
    for name in NAMES:
        cluster.etcd.freeze(name)
    assert threads.of_probe() == [QUICK, CONFIRM]
    assert threads.of_probe(LASTING_SILENCE - 0.1) == [CONFIRM]
    assert threads.of_probe(0.1) == [("silent", SHORT)]


def test_a_lasting_silence_is_given_the_whole_deadline_now_and_then(
    cluster: ProbedCluster, threads: Threads
) -> None:
    for name in NAMES:
        cluster.etcd.freeze(name)
    threads.of_probe()
    assert threads.of_probe(FULL_PROBE_SECONDS) == [("silent", SHORT), ("silent", FULL)]
    assert threads.of_probe(FULL_PROBE_SECONDS - 0.1) == [("silent", SHORT)]


@pytest.mark.parametrize(("back", "quorum"), [(NAMES[:1], False), (NAMES, True)])
def test_a_member_that_comes_back_is_heard_among_silent_ones(
    cluster: ProbedCluster, threads: Threads, back: tuple[str, ...], quorum: bool
) -> None:
    for name in NAMES:
        cluster.etcd.freeze(name)
    threads.of_probe()
    for name in back:
        cluster.etcd.thaw(name)
    asked = threads.of_probe(LASTING_SILENCE)
    assert asked == [("silent", SHORT)] + ([] if quorum else [CONFIRM])
    assert bool(cluster.probe().quorum) is quorum


def test_a_silent_cluster_whose_pods_change_is_asked_at_once(
    cluster: ProbedCluster, threads: Threads
) -> None:
    for name in NAMES[:2]:
        cluster.etcd.freeze(name)
    threads.of_probe()
    assert threads.of_probe(LASTING_SILENCE)[0] == ("silent", SHORT)
    cluster.endpoints = frozenset(sorted(cluster.endpoints)[1:])
    assert threads.of_probe()[0] == QUICK


def test_a_member_that_falls_silent_is_asked_again_on_other_threads(
    cluster: ProbedCluster, threads: Threads
) -> None:
    assert threads.of_probe() == [QUICK]
    cluster.etcd.freeze("m1")
    assert threads.of_probe() == [QUICK, CONFIRM]
    assert threads.of_probe() == [QUICK]


def test_a_cluster_whose_quorum_check_was_not_answered_is_given_the_whole_deadline_once(
    cluster: ProbedCluster, threads: Threads
) -> None:
    assert threads.of_probe() == [QUICK]
    cluster.prober.distrust(KEY)
    assert threads.of_probe() == [CONFIRM]
    assert threads.of_probe() == [QUICK]


def test_a_doubt_about_a_cluster_without_a_quorum_occupies_no_other_threads(
    cluster: ProbedCluster, threads: Threads
) -> None:
    for name in NAMES:
        cluster.etcd.freeze(name)
    threads.of_probe()
    cluster.prober.distrust(KEY)
    assert threads.of_probe(LASTING_SILENCE) == [("silent", SHORT)]


def test_a_cluster_that_is_deleted_before_its_check_ends_is_not_doubted(cluster: ProbedCluster) -> None:
    cluster.probe()
    cluster.prober.forget(KEY)
    cluster.prober.distrust(KEY)
    assert cluster.probe().quorum
