"""The queue as such: order, one worker per item, the end, and what it reports."""

import threading
from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from etcd_operator.clock import Clock
from etcd_operator.engine.workqueue import ShutDown, WorkQueue
from unit.fakes.clock import FakeClock
from unit.waiting import eventually


def test_done_refuses_what_nobody_has_taken(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match="not in work: a"):
        queue.done("a")


def test_get_gives_up_when_its_time_is_over(queue: WorkQueue[str], clock: FakeClock) -> None:
    ended = threading.Event()

    def worker() -> None:
        with pytest.raises(TimeoutError):
            queue.get(timeout=30)
        ended.set()

    thread = threading.Thread(target=worker)
    thread.start()
    clock.advance(29)
    assert not ended.is_set()
    clock.advance(2)
    eventually(ended.is_set, clock=clock)
    thread.join()


def test_shut_down_wakes_every_waiting_worker(queue: WorkQueue[str], clock: FakeClock) -> None:
    ended: list[bool] = []

    def worker() -> None:
        with pytest.raises(ShutDown):
            queue.get()
        ended.append(True)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(clock._waiting) == 4)
    queue.shut_down()
    for thread in threads:
        thread.join(4.5)  # before the fake clock's own five seconds
    assert len(ended) == 4


def test_a_queue_from_which_nothing_is_taken_is_stalled(queue: WorkQueue[str], clock: FakeClock) -> None:
    clock.advance(100)
    assert queue.stalled_seconds() == 0  # nothing waits
    for item in "abc":
        queue.add(item)
    clock.advance(5)
    assert queue.stalled_seconds() == 5
    queue.get()
    assert queue.stalled_seconds() == 0  # it moves, however long the others have waited
    clock.advance(3)
    assert queue.stalled_seconds() == 3
    queue.get()
    queue.get()
    clock.advance(3)
    assert queue.stalled_seconds() == 0


def test_what_was_added_while_in_work_can_be_taken_back(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert not queue.retract("a")  # it waits: nobody is at work at it
    queue.get()
    assert not queue.retract("a")
    queue.add("a")
    assert queue.retract("a")
    queue.done("a")
    assert queue.depth == 0


def test_many_producers_and_workers_lose_nothing_and_never_share_an_item() -> None:
    """Every add is followed by a pass that began after it, and no two passes of one item overlap."""
    queue: WorkQueue[int] = WorkQueue(Clock())
    wanted = [0] * 20  # the version that each item should reach
    seen = [0] * 20
    holders: Counter[int] = Counter()
    shared: list[int] = []

    def produce(offset: int) -> None:
        for n in range(2000):
            item = (n + offset) % 20
            wanted[item] = max(wanted[item], n)
            queue.add(item)

    def work() -> None:
        while True:
            try:
                item = queue.get()
            except ShutDown:
                return
            holders[item] += 1
            if holders[item] > 1:
                shared.append(item)
            seen[item] = wanted[item]
            holders[item] -= 1
            queue.done(item)

    workers = [threading.Thread(target=work) for _ in range(8)]
    producers = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
    for thread in [*workers, *producers]:
        thread.start()
    for thread in producers:
        thread.join()
    queue.shut_down()
    for thread in workers:
        thread.join(30)
    assert not any(thread.is_alive() for thread in workers)
    assert not shared
    assert seen == wanted


class QueueModel(RuleBasedStateMachine):
    """The queue against a model of a line, a set in work and a set to be done again."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[int] = WorkQueue(FakeClock())
        self.line: list[int] = []
        self.working: set[int] = set()
        self.again: set[int] = set()
        self.is_open = True

    @rule(item=st.integers(0, 4))
    def add(self, item: int) -> None:
        self.queue.add(item)
        if not self.is_open or item in self.line:
            return
        if item in self.working:
            self.again.add(item)
        else:
            self.line.append(item)

    @precondition(lambda self: self.line)
    @rule()
    def get(self) -> None:
        item = self.queue.get(timeout=0)
        assert item == self.line.pop(0)
        assert item not in self.working
        self.working.add(item)

    @precondition(lambda self: not self.line)
    @rule()
    def get_of_nothing(self) -> None:
        with pytest.raises(TimeoutError if self.is_open else ShutDown):
            self.queue.get(timeout=0)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(item)
        self.working.remove(item)
        if item in self.again:
            self.again.remove(item)
            self.line.append(item)

    @rule()
    def shut_down(self) -> None:
        self.queue.shut_down()
        self.is_open = False

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.depth == len(self.line)
        assert self.queue.in_flight == len(self.working)


TestQueueModel = QueueModel.TestCase
