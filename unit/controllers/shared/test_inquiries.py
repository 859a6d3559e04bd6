"""Questions to backup tools: on threads of their own, one at a time for each cluster."""

import threading
from collections.abc import Iterator

import pytest

from etcd_operator.controllers.shared.inquiries import Inquiries, LastAnswer, PodServer
from etcd_operator.keys import Key
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.http_client import Server
from etcd_operator.pods.reports import ToolReport
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

KEY, OWNER = Key("default", "c"), "cluster"
TOOL = PodServer(uid="pod", owner=OWNER, server=Server(address=("10.0.0.1", 19999), token="t"))


class Bed:
    """Inquiries on real threads; `gate` holds the answers."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.epoch = 0
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.answered: list[Key] = []
        self.problem: Exception | None = None
        self.inquiries = Inquiries(
            "backup-tools",
            on_answer=self.answered.append,
            clock=self.clock,
            epoch=lambda: self.epoch,
            ask=self.ask,
        )

    def ask(self, _: PodServer) -> ToolReport:
        self.asked.append(threading.current_thread().name)
        assert self.gate.wait(20)
        if self.problem is not None:
            raise self.problem
        return ToolReport(count=len(self.asked))

    def answers(self, number: int) -> None:
        eventually(lambda: len(self.answered) == number)


@pytest.fixture
def bed() -> Iterator[Bed]:
    bed = Bed()
    yield bed
    bed.gate.set()
    bed.inquiries.stop()


def test_a_caller_never_waits_and_one_question_is_under_way(bed: Bed) -> None:
    bed.gate.clear()
    assert bed.inquiries.last_answer(KEY, OWNER) == LastAnswer()
    assert bed.inquiries.renew(KEY, TOOL, 30.0) == 30.0
    bed.clock.advance(100.0)
    assert bed.inquiries.renew(KEY, TOOL, 30.0) == 1.0
    bed.gate.set()
    bed.answers(1)
    assert [name.startswith("backup-tools") for name in bed.asked] == [True]
    assert bed.answered == [KEY]


def test_an_answer_is_kept_with_its_age_while_the_tool_is_silent(bed: Bed) -> None:
    bed.inquiries.renew(KEY, TOOL, 30.0)
    bed.answers(1)
    bed.clock.advance(10.0)
    assert bed.inquiries.renew(KEY, TOOL, 30.0) == 20.0
    bed.clock.advance(20.0)
    bed.problem = NoReport("Connection refused")
    bed.inquiries.renew(KEY, TOOL, 30.0)
    bed.answers(2)
    answer = bed.inquiries.last_answer(KEY, OWNER)
    assert answer.report == ToolReport(count=1)
    assert (answer.age, answer.server_age, answer.problem) == (30.0, 30.0, "Connection refused")


def test_another_pod_is_asked_at_once_and_another_cluster_begins_anew(bed: Bed) -> None:
    bed.inquiries.renew(KEY, TOOL, 30.0)
    bed.answers(1)
    bed.clock.advance(5.0)
    other = PodServer(uid="pod-2", owner=OWNER, server=TOOL.server)
    assert bed.inquiries.renew(KEY, other, 30.0) == 30.0
    bed.answers(2)
    assert bed.inquiries.last_answer(KEY, OWNER).server_age == 0.0
    assert bed.inquiries.last_answer(KEY, "another cluster") == LastAnswer()
    again = PodServer(uid="pod-3", owner="another cluster", server=TOOL.server)
    bed.inquiries.renew(KEY, again, 30.0)
    assert bed.inquiries.last_answer(KEY, OWNER) == LastAnswer()
    bed.answers(3)
    bed.inquiries.forget(KEY)
    assert bed.inquiries.last_answer(KEY, "another cluster") == LastAnswer()


def test_a_bug_frees_the_slot_and_is_shown(bed: Bed) -> None:
    bed.problem = ZeroDivisionError("by zero")
    bed.inquiries.renew(KEY, TOOL, 30.0)
    bed.answers(1)
    assert bed.inquiries.last_answer(KEY, OWNER).problem == "ZeroDivisionError: by zero"
    bed.problem = None
    bed.clock.advance(30.0)
    bed.inquiries.renew(KEY, TOOL, 30.0)
    bed.answers(2)
    assert bed.inquiries.last_answer(KEY, OWNER).problem == ""


def test_a_process_that_stops_asks_no_more(bed: Bed) -> None:
    bed.inquiries.stop()
    bed.inquiries.renew(KEY, TOOL, 30.0)
    assert bed.asked == []
    assert "no thread" in bed.inquiries.last_answer(KEY, OWNER).problem
