import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from etcd_operator.clock import SystemClock
from etcd_operator.engine.workqueue import TURN, ShutDown, WorkQueue
from unit.engine.support import eventually
from unit.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock)


def take_all(queue: WorkQueue[str]) -> Iterator[str]:
    while queue.depth:
        item = queue.get()
        queue.done(item)
        yield item


def test_items_are_taken_in_the_order_in_which_they_were_added(queue: WorkQueue[str]) -> None:
    for item in "cabcab":
        queue.add(item)
    assert list(take_all(queue)) == ["c", "a", "b"]


def test_an_item_in_work_is_handed_to_nobody_else(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get()
    queue.add("a")
    with pytest.raises(TimeoutError):
        queue.get(timeout=0)


def test_an_item_added_while_in_work_is_processed_once_more_at_the_end_of_the_line(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    queue.get()
    for item in "aba":
        queue.add(item)
    queue.done("a")
    assert list(take_all(queue)) == ["b", "a"]


def test_an_item_that_is_done_is_not_processed_again(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.done(queue.get())
    assert queue.depth == queue.in_flight == 0


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
    eventually(ended.is_set, clock)
    thread.join()


def test_a_shut_down_queue_refuses_new_items_and_hands_out_the_old_ones(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert list(take_all(queue)) == ["a"]
    with pytest.raises(ShutDown):
        queue.get()


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
        thread.join(2)  # well before the fake clock's own five seconds
    assert len(ended) == 4


def test_what_was_added_while_in_work_survives_the_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    assert queue.get() == "a"


def test_a_queue_knows_how_long_its_workers_take(queue: WorkQueue[str], clock: FakeClock) -> None:
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (0, 0)
    queue.add("a")
    queue.add("b")
    queue.get()
    clock.advance(5)
    queue.get()
    clock.advance(2)
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (9, 7)
    queue.done("a")
    assert queue.longest_running_seconds() == 2


def test_a_queue_that_nobody_takes_from_is_stalled(queue: WorkQueue[str], clock: FakeClock) -> None:
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


def test_a_queue_reports_waiting_and_working_times(clock: FakeClock) -> None:
    class Metrics(list[tuple[str, float]]):
        def added(self) -> None:
            self.append(("added", 1))

        def taken(self, waited: float) -> None:
            self.append(("taken", waited))

        def finished(self, worked: float) -> None:
            self.append(("finished", worked))

    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue(clock, metrics)
    queue.add("a")
    queue.add("a")
    clock.advance(3)
    queue.get()
    clock.advance(4)
    queue.done("a")
    assert metrics == [("added", 1), ("taken", 3), ("finished", 4)]


def test_others_are_taken_before_late_items_however_many_there_are(queue: WorkQueue[str]) -> None:
    for n in range(1000):
        queue.add(f"late {n}", is_late=True)
    queue.add("a")
    queue.add("b")
    assert [item for item, _ in zip(take_all(queue), range(3), strict=False)] == ["a", "b", "late 0"]


def test_late_items_have_their_turn_while_others_keep_coming(queue: WorkQueue[str]) -> None:
    queue.add("late", is_late=True)
    taken = []
    for n in range(2 * TURN):
        queue.add(f"{n}")
        taken.append(queue.get())
        queue.done(taken[-1])
    assert taken.index("late") == TURN - 1
    assert queue.depth == 1


def test_an_item_that_is_late_no_more_leaves_that_line(queue: WorkQueue[str]) -> None:
    for item in "ab":
        queue.add(item, is_late=True)
    queue.add("b")
    queue.add("b", is_late=True)
    assert list(take_all(queue)) == ["b", "a"]


def test_only_so_many_late_items_are_in_work_at_once(queue: WorkQueue[str]) -> None:
    queue.allow_late(1)
    for item in "abc":
        queue.add(item, is_late=True)
    assert queue.get() == "a"
    with pytest.raises(TimeoutError):
        queue.get(timeout=0)
    queue.add("d")
    assert queue.get() == "d"
    queue.done("a")
    assert queue.get() == "b"
    queue.allow_late(2)
    assert queue.get() == "c"


def test_a_worker_waits_for_its_share_of_late_items(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.allow_late(1)
    queue.add("a", is_late=True)
    queue.add("b", is_late=True)
    queue.get()
    taken: list[str] = []
    threads = [threading.Thread(target=lambda: taken.append(queue.get())) for _ in range(1)]
    for thread in threads:
        thread.start()
    eventually(lambda: clock.waiting == 1)
    queue.done("a")
    for thread in threads:
        thread.join(2)  # well before the fake clock's own five seconds
    assert taken == ["b"]


def test_a_shut_down_queue_hands_out_late_items_without_a_limit(queue: WorkQueue[str]) -> None:
    queue.allow_late(1)
    for item in "ab":
        queue.add(item, is_late=True)
    queue.shut_down()
    assert [queue.get(), queue.get()] == ["a", "b"]


def test_what_was_added_while_in_work_can_be_taken_back(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert not queue.retract("a")  # it waits: nobody is at work at it
    queue.get()
    assert not queue.retract("a")
    queue.add("a")
    assert queue.retract("a")
    queue.done("a")
    assert queue.depth == 0


@contextmanager
def watching(queue: WorkQueue[str], clock: FakeClock, seconds: float) -> Iterator[list[float]]:
    """When it was reported that something is held up for so long."""
    times: list[float] = []

    def watch() -> None:
        while queue.await_hold_up(seconds):
            times.append(clock.monotonic())

    thread = threading.Thread(target=watch)
    thread.start()
    eventually(lambda: clock.waiting == 1)
    yield times
    queue.shut_down()
    thread.join(2)  # well before the fake clock's own five seconds
    assert not thread.is_alive()


def test_what_waits_behind_a_long_pass_is_reported_once_in_its_time(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    with watching(queue, clock, 2.0) as times:
        queue.add("long")
        queue.get()
        clock.advance(10)
        queue.add("a")
        for expected in ([12.0], [12.0, 14.0]):
            clock.advance(1.0)
            clock.advance(1.0)
            eventually(lambda expected=expected: times == expected, clock)  # type: ignore[misc]


def test_one_long_pass_is_enough_though_others_go_on(queue: WorkQueue[str], clock: FakeClock) -> None:
    with watching(queue, clock, 2.0) as times:
        for item in ("long", "a", "b"):
            queue.add(item)
        queue.get()
        clock.advance(1.5)
        queue.done(queue.get())
        clock.advance(0.5)
        eventually(lambda: times == [2.0], clock)
        assert queue.stalled_seconds() == 0.5


def test_a_long_line_that_moves_is_no_reason_for_a_report(queue: WorkQueue[str], clock: FakeClock) -> None:
    with watching(queue, clock, 2.0) as times:
        for n in range(10):
            queue.add(f"{n}")
        for _ in range(9):
            item = queue.get()
            clock.advance(1.0)
            queue.done(item)
        queue.get()
    assert times == []


def test_many_producers_and_workers_lose_nothing_and_never_share_an_item() -> None:
    """Every add is followed by a pass that began after it, and no two passes of one item overlap."""
    queue: WorkQueue[int] = WorkQueue(SystemClock())
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
        thread.join(10)
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
