"""Silent members are waited for on other threads than those that answer."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.controllers.etcd_cluster.observe.prober import FULL_PROBE_SECONDS, LASTING_SILENCE
from unit.passes.probing import KEY, NAMES, ProbedCluster, Threads, probed_cluster


@pytest.fixture
def cluster() -> Iterator[ProbedCluster]:
    with probed_cluster() as made:
        yield made


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
