"""A process that loses its Lease and leads again; its electors are real, and their API server is a fake."""

import threading
from collections.abc import Iterator
from unittest.mock import Mock, patch

import pytest
import urllib3

from etcd_operator.controllers.shared.groups import Group
from etcd_operator.kube.lease import Elector
from etcd_operator.kube.lease_lock import Candidate
from etcd_operator.process import leadership
from etcd_operator.process.leadership import Leadership, LeaderThreads
from unit.fakes.apiserver import ApiServer, Cut, no_fault
from unit.kube.electors import KEY, Bench
from unit.waiting import eventually


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ApiServer() as api, urllib3.PoolManager(maxsize=8) as pool:
        yield Bench(api, pool)


class Process:
    """epochs: what each change of leadership has found."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.electors: list[Elector] = []
        self.changes: list[tuple[bool, int]] = []
        self.leadership = Leadership(self._elector, on_first=lambda: None, on_change=self._changed)

    def _elector(self, on_started: object, on_stopped: object) -> Elector:
        elector = Elector(
            self._bench.client,
            KEY,
            Candidate("first", None),
            clock=self._bench.clock,
            on_started_leading=on_started,  # type: ignore[arg-type]
            on_stopped_leading=on_stopped,  # type: ignore[arg-type]
        )
        self.electors.append(elector)
        return elector

    def _changed(self, leads: bool) -> None:
        self.changes.append((leads, self.leadership.epoch()))


def test_the_epoch_changes_with_leadership_and_not_later(bench: Bench) -> None:
    """A pass may run as soon as this process leads, before the thread that announces it."""
    made = Process(bench)
    before = made.leadership.epoch()
    made.electors[0]._attempt()
    assert made.leadership.is_leader()
    assert made.changes == []
    assert made.leadership.epoch() != before
    led = made.leadership.epoch()
    bench.clock.advance(2.0)
    made.electors[0]._attempt()
    assert made.leadership.epoch() == led


def test_a_process_that_leads_again_does_so_in_an_epoch_of_its_own(bench: Bench) -> None:
    made = Process(bench)
    made.leadership.start()
    eventually(lambda: len(made.changes) == 1)
    bench.api.before = lambda _: Cut()
    eventually(lambda: bench.clock.waiting == 2)
    bench.clock.advance(10.0)
    eventually(lambda: len(made.electors) == 2)
    between = made.leadership.epoch()
    assert not made.leadership.is_leader()
    bench.api.before = no_fault
    eventually(lambda: _moves(bench) and made.leadership.is_leader())
    eventually(lambda: len(made.changes) == 3)
    assert made.leadership.stop(30)
    assert [leads for leads, _ in made.changes] == [True, False, True]
    first, second = made.changes[0][1], made.changes[2][1]
    assert len({first, between, second}) == 3


def _moves(bench: Bench) -> bool:
    bench.clock.advance(0.5)
    return True


def group(check: threading.Event) -> Group:
    return Group(name="group", informers=(), controllers=(), others=(), checks=(check.set,))


def test_the_checks_of_all_groups_run_as_soon_as_this_process_leads() -> None:
    checks = (threading.Event(), threading.Event())
    ended, leads, asked, crashed = threading.Event(), threading.Event(), threading.Semaphore(0), Mock()

    def may_act() -> bool:
        asked.release()
        return leads.is_set()

    with patch.object(leadership, "QUORUM_CHECK_SECONDS", 0.01):
        threads = LeaderThreads(
            [group(check) for check in checks],
            defined=threading.Event(),
            ended=ended,
            may_act=may_act,
            on_crash=crashed,
        )
        threads.start()
        assert all(asked.acquire(timeout=30) for _ in range(2))  # so one round has ended
        assert not any(check.is_set() for check in checks)
        leads.set()
        assert all(check.wait(30) for check in checks)
        ended.set()
        assert threads.stop(lambda most: most) == []
    assert not crashed.called
