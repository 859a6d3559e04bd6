"""The Event recorder against the fake API server."""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from structlog.testing import capture_logs

from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder, Reference
from etcd_operator.kube.transport import Transport
from unit.fakes.apiserver import Answer, ApiServer, Cut, OnWrite, Stall, no_fault
from unit.fakes.apiserver.faults import Request
from unit.fakes.apiserver.kinds import EVENTS
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

CLUSTER = Reference(api_version="coreos.com/v1", kind="EtcdCluster", namespace="default", name="c", uid="u-1")
OTHER = Reference(api_version="coreos.com/v1", kind="EtcdCluster", namespace="default", name="d", uid="u-2")


class Bench:
    def __init__(self, api: ApiServer, pool: urllib3.PoolManager) -> None:
        self.api, self.clock = api, FakeClock()
        self.client = Client(Transport(pool=pool, base_url=api.url))

    def recorder(self, **options: Any) -> Recorder:
        return Recorder(self.client, instance="operator-1", clock=self.clock, **options)

    def started(self, **options: Any) -> Recorder:
        recorder = self.recorder(**options)
        recorder.start()
        return recorder

    def pass_time_until(self, claim: Callable[[], bool]) -> None:
        def claim_later() -> bool:
            self.clock.advance(0.5)
            return claim()

        eventually(claim_later)

    def events(self) -> list[dict[str, Any]]:
        return self.api.objects.select(EVENTS)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ApiServer() as api, urllib3.PoolManager() as pool:
        yield Bench(api, pool)


def test_a_fact_becomes_an_event_on_its_object(bench: Bench) -> None:
    recorder = bench.started()
    recorder.record(CLUSTER, "Normal", "MemberAdded", "c-0003 joins as a learner")
    assert recorder.stop(30)
    (event,) = bench.events()
    assert event["involvedObject"] == {
        "apiVersion": "coreos.com/v1",
        "kind": "EtcdCluster",
        "namespace": "default",
        "name": "c",
        "uid": "u-1",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Normal", "MemberAdded", 1)
    assert event["message"] == "c-0003 joins as a learner"
    assert (event["reportingComponent"], event["reportingInstance"]) == ("etcd-operator", "operator-1")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


def test_the_same_fact_again_counts_up_one_event(bench: Bench) -> None:
    recorder = bench.started()
    for _ in range(3):
        recorder.record(CLUSTER, "Warning", "MemberUnhealthy", "waiting")
    recorder.record(CLUSTER, "Warning", "MemberUnhealthy", "waiting for another")
    assert recorder.stop(30)
    assert sorted((event["message"], event["count"]) for event in bench.events()) == [
        ("waiting", 3),
        ("waiting for another", 1),
    ]


def test_a_fact_whose_event_has_expired_is_reported_anew(bench: Bench) -> None:
    recorder = bench.started()
    recorder.record(CLUSTER, "Normal", "LeaderMoved", "to c-0001")
    eventually(bench.events)
    (event,) = bench.events()
    bench.api.objects.delete(EVENTS, "default", event["metadata"]["name"])
    recorder.record(CLUSTER, "Normal", "LeaderMoved", "to c-0001")
    assert recorder.stop(30)
    assert [event["count"] for event in bench.events()] == [1]


def test_a_cluster_wide_object_has_its_events_in_the_default_namespace(bench: Bench) -> None:
    recorder = bench.started()
    node = Reference(api_version="v1", kind="Node", namespace="", name="node-1", uid="u-3")
    recorder.record(node, "Normal", "Seen", "it is there")
    assert recorder.stop(30)
    assert bench.events()[0]["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("name", ["a" * 253, "a" * 235 + "." + "b" * 17, "a" * 234 + "-." + "b" * 17])
def test_the_longest_name_of_an_object_has_events(bench: Bench, name: str) -> None:
    recorder = bench.started()
    about = Reference(api_version="v1", kind="EtcdBackup", namespace="default", name=name, uid="u-4")
    recorder.record(about, "Normal", "BackupStarted", "created its Job")
    assert recorder.stop(30)
    (event,) = bench.events()
    assert len(event["metadata"]["name"]) <= 253
    assert re.fullmatch(r"a+[.][0-9a-f]{16}", event["metadata"]["name"])
    assert event["involvedObject"]["name"] == name


def test_one_noisy_object_does_not_silence_another(bench: Bench) -> None:
    recorder = bench.started(burst=3, refill_seconds=30.0)
    for number in range(10):
        recorder.record(CLUSTER, "Normal", "Noise", str(number))
    recorder.record(OTHER, "Normal", "Heard", "yes")
    assert recorder.stop(30)
    assert len(bench.events()) == 4
    assert recorder.dropped["limited"] == 7


def test_each_cause_is_counted_from_0_on(bench: Bench) -> None:
    """Otherwise `increase` in Prometheus would miss the first one."""
    recorder = bench.recorder(burst=1)
    assert recorder.dropped == {"full": 0, "limited": 0, "failed": 0, "stopped": 0}
    for _ in range(2):
        recorder.record(CLUSTER, "Normal", "Noise", "is limited")
    assert recorder.dropped == {"full": 0, "limited": 1, "failed": 0, "stopped": 0}


def test_recording_does_not_wait_for_a_server_that_hangs(bench: Bench) -> None:
    stall = Stall()
    bench.api.before = lambda _: stall
    recorder = bench.started(capacity=2)
    recorder.record(CLUSTER, "Normal", "First", "is being posted")
    eventually(lambda: not recorder._queue)
    for number in range(5):
        recorder.record(CLUSTER, "Normal", "More", str(number))
    assert recorder.dropped["full"] == 3
    stall.released.set()
    assert recorder.stop(30)
    assert len(bench.events()) == 3


def test_a_lost_reply_does_not_make_a_second_event(bench: Bench) -> None:
    bench.api.after = OnWrite(1, Cut())
    recorder = bench.started()
    recorder.record(CLUSTER, "Normal", "MemberAdded", "once")
    bench.pass_time_until(lambda: len(bench.api.writes) == 2)
    assert recorder.stop(30)
    assert [event["count"] for event in bench.events()] == [1]
    assert not recorder.dropped.get("failed")


def test_a_post_that_keeps_failing_is_given_up_counted_and_logged_once(bench: Bench) -> None:
    bench.api.before = lambda _: Answer(code=503)
    recorder = bench.recorder()
    with capture_logs() as logs:
        recorder.start()
        recorder.record(CLUSTER, "Normal", "MemberAdded", "never")
        bench.pass_time_until(lambda: recorder.dropped.get("failed") == 1)
        bench.api.before = no_fault
        recorder.record(CLUSTER, "Normal", "MemberAdded", "later")
        assert recorder.stop(30)
    assert [log["event"] for log in logs] == ["event_dropped"]
    assert [event["message"] for event in bench.events()] == ["later"]
    assert len(bench.api.writes) == 5


def test_facts_that_cannot_be_posted_hold_up_no_others(bench: Bench) -> None:
    """As those of a namespace whose webhook is down."""

    def refuse(request: Request) -> Answer | None:
        return (
            Answer(code=500) if request.is_write and request.body["involvedObject"]["name"] == "c" else None
        )

    bench.api.before = refuse
    recorder = bench.started()
    for n in range(20):
        recorder.record(CLUSTER, "Normal", "MemberAdded", f"c-{n:04}")
    recorder.record(OTHER, "Normal", "MemberAdded", "d-0001")
    eventually(lambda: len(bench.events()) == 1)  # time stands still: no second try has begun
    bench.api.before = no_fault
    bench.pass_time_until(lambda: len(bench.events()) == 21)
    assert recorder.stop(30)
    assert not any(recorder.dropped.values())


def test_a_refusal_that_cannot_pass_later_is_not_tried_again(bench: Bench) -> None:
    bench.api.before = lambda _: Answer(code=403, reason="Forbidden")
    recorder = bench.started()
    recorder.record(CLUSTER, "Normal", "MemberAdded", "never")
    assert recorder.stop(30)
    assert len(bench.api.writes) == 1
    assert recorder.dropped["failed"] == 1


def test_a_stop_abandons_what_cannot_be_sent_in_time(bench: Bench) -> None:
    stall = Stall()
    bench.api.before = lambda _: stall
    recorder = bench.started()
    for number in range(3):
        recorder.record(CLUSTER, "Normal", "Late", str(number))
    eventually(lambda: len(recorder._queue) == 2)
    assert not recorder.stop(0.05)
    assert recorder.dropped["stopped"] == 2
    recorder.record(CLUSTER, "Normal", "Late", "after the end")
    assert recorder.dropped["stopped"] == 3
    stall.released.set()
    eventually(lambda: "events" not in {thread.name for thread in threading.enumerate()})


def test_a_long_message_is_cut(bench: Bench) -> None:
    recorder = bench.started()
    recorder.record(CLUSTER, "Normal", "Long", "x" * 5000)
    assert recorder.stop(30)
    assert len(bench.events()[0]["message"]) == 1024
