"""One stream, against servers that cut it, stall it and send nonsense."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from etcd_operator.clock import Clock
from etcd_operator.errors import Forbidden, Gone, NotFound, OperatorError, Throttled, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.decode import LARGEST
from etcd_operator.kube.resources import PODS, Selection
from etcd_operator.kube.transport import NoResponse
from etcd_operator.kube.watch import EventType, Watch
from unit.kube.server import (
    AT_ONCE,
    BRISK,
    Asked,
    Line,
    Script,
    Server,
    bookmark,
    connected,
    pod,
    serving,
)
from unit.kube.things import LeapClock, Thing, in_thread
from unit.waiting import eventually


@contextmanager
def watching(script: Script, **options: Any) -> Iterator[tuple[Watch[Thing], Server]]:
    timeouts = options.pop("timeouts", BRISK)
    clock = options.pop("clock", Clock())
    with serving(script) as server, connected(server, clock=clock) as transport:
        selection = Selection(resource=PODS, namespace="default", label_selector="app=etcd")
        client = Client(transport, timeouts=timeouts)
        options = {"timeout_seconds": 300, "abort": Abort(), **options}
        yield Watch(client, selection, Thing, resource_version="10", **options), server


def streaming(*steps: Any) -> Script:
    """A stream of these events; a callable is done to the line."""

    def script(_asked: Asked, line: Line) -> None:
        line.begin()
        for step in steps:
            if callable(step):
                step(line)
            else:
                line.event(*step)

    return script


def received(watch: Watch[Thing]) -> list[tuple[str, str, str]]:
    return [(event.type.value, event.key.name, event.resource_version) for event in watch]


def test_events_arrive_typed_and_in_order_until_the_server_ends_the_stream() -> None:
    script = streaming(
        ("ADDED", pod("a", 11)),
        ("MODIFIED", pod("a", 12)),
        ("BOOKMARK", bookmark(20)),
        ("DELETED", pod("a", 21)),
        Line.end,
    )
    with watching(script, timeout_seconds=77) as (watch, server):
        events = list(watch)
        assert [(event.type, event.resource_version) for event in events] == [
            (EventType.ADDED, "11"),
            (EventType.MODIFIED, "12"),
            (EventType.BOOKMARK, "20"),
            (EventType.DELETED, "21"),
        ]
        assert events[0].object is not None
        assert events[0].object.metadata.name == "a"
        assert events[2].object is None
        assert events[3].key == Key("default", "a")
        assert server.asked[0].path == "/api/v1/namespaces/default/pods"
        assert server.asked[0].query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "10",
            "timeoutSeconds": "77",
            "labelSelector": "app=etcd",
        }


def test_lines_are_found_however_the_bytes_are_cut() -> None:
    text = b"".join(
        json.dumps({"type": "ADDED", "object": pod(f"p{i}", i)}).encode() + b"\n" for i in range(11, 16)
    )

    def script(_asked: Asked, line: Line) -> None:
        line.begin()
        for begin in range(0, len(text), 7):
            line.chunk(text[begin : begin + 7])
        line.end()

    with watching(script) as (watch, _):
        assert [name for _, name, _ in received(watch)] == ["p11", "p12", "p13", "p14", "p15"]


def test_half_a_line_at_the_end_is_never_an_event() -> None:
    whole = json.dumps({"type": "ADDED", "object": pod("b", 12)}).encode()
    for ending in (Line.end, Line.cut):
        for half in (whole[:40], whole):
            script = streaming(("ADDED", pod("a", 11)), lambda line, half=half: line.chunk(half), ending)
            seen = []
            with watching(script) as (watch, _):
                try:
                    seen += [event.key.name for event in watch]
                except NoResponse:
                    assert ending is Line.cut
            assert seen in (["a"], [])


def test_a_cut_stream_is_no_answer_after_its_events() -> None:
    with watching(streaming(("ADDED", pod("a", 11)), Line.cut)) as (watch, _):
        events = iter(watch)
        assert next(events).key.name == "a"
        with pytest.raises(NoResponse, match="watch pods default: the stream broke"):
            next(events)


@pytest.mark.parametrize(
    ("code", "error"), [(410, Gone), (429, Throttled), (500, Unavailable), (403, Forbidden), (404, NotFound)]
)
def test_a_refusal_is_our_error_as_an_answer_and_within_the_stream(
    code: int, error: type[OperatorError]
) -> None:
    with (
        watching(lambda _, line: line.fail(code, "Odd", "why")) as (watch, _),
        pytest.raises(error) as caught,
    ):
        watch.open()
    assert str(caught.value) == f"watch pods default: {code}: why"
    status = {"kind": "Status", "code": code, "reason": "Odd", "message": "why"}
    with watching(streaming(("ADDED", pod("a", 11)), ("ERROR", status), Line.hang)) as (watch, _):
        events = iter(watch)
        next(events)
        with pytest.raises(error, match=f"{code}: why"):
            next(events)


def test_a_large_object_is_reported_and_not_kept() -> None:
    large = pod("large", 12, **{f"l{number}": "v" * LARGEST for number in range(2)})
    with watching(streaming(("ADDED", large), ("ADDED", pod("a", 13)), Line.end)) as (watch, _):
        events = list(watch)
    assert [(event.key.name, event.object is None) for event in events] == [("large", True), ("a", False)]


def test_an_odd_object_is_reported_and_the_others_arrive() -> None:
    odd: dict[str, Any] = {**pod("odd", 12), "number": "odd"}
    script = streaming(
        ("ADDED", odd),
        ("ADDED", pod("a", 13)),
        ("DELETED", {**odd, "metadata": {**odd["metadata"], "resourceVersion": "14"}}),
        ("ADDED", {"nothing": "known"}),
        ("SURPRISE", pod("b", 15)),
        Line.end,
    )
    with capture_logs() as logs, watching(script) as (watch, _):
        events = list(watch)
    assert [(event.type, event.key.name, event.resource_version) for event in events] == [
        (EventType.ADDED, "odd", "12"),
        (EventType.ADDED, "a", "13"),
        (EventType.DELETED, "odd", "14"),
        (EventType.BOOKMARK, "b", "15"),
    ]
    assert [event.object is None for event in events] == [True, False, True, True]
    assert [event.unreadable is None for event in events] == [False, True, False, True]
    assert [entry["object"] for entry in logs if entry["event"] == "object_unreadable"] == [
        "default/odd",
        "default/odd",
        "",
        "default/b",
    ]


def test_null_is_what_is_not_there_in_an_event_too() -> None:
    body = {"metadata": {**pod("a", 11)["metadata"], "labels": None}}
    with watching(streaming(("ADDED", body), Line.end)) as (watch, _):
        assert [event.object is not None for event in watch] == [True]


def test_an_empty_line_is_no_event() -> None:
    script = streaming(lambda line: line.chunk(b"\n"), ("ADDED", pod("a", 11)), Line.end)
    with watching(script) as (watch, _):
        assert received(watch) == [("ADDED", "a", "11")]


def test_an_error_in_the_stream_that_has_no_code_is_one_of_the_server() -> None:
    script = streaming(("ERROR", {"kind": "Status", "reason": "Odd", "message": "why"}), Line.hang)
    with watching(script) as (watch, _), pytest.raises(Unavailable, match="500: why"):
        list(watch)


def test_a_line_that_is_no_json_ends_the_stream_with_an_error() -> None:
    script = streaming(lambda line: line.chunk(b"{nonsense\n"), Line.hang)
    with watching(script) as (watch, _), pytest.raises(Unavailable, match="a line is not an event"):
        list(watch)


def test_a_silence_ends_the_iteration() -> None:
    script = streaming(("ADDED", pod("a", 11)), Line.hang)
    with watching(script, timeouts=replace(BRISK, silence=1.0)) as (watch, _):
        began = time.monotonic()
        assert received(watch) == [("ADDED", "a", "11")]
        assert time.monotonic() - began < AT_ONCE


def test_a_stream_that_drips_ends_after_its_time_and_a_grace() -> None:
    clock = LeapClock()

    def drip(_asked: Asked, line: Line) -> None:
        line.begin()
        while True:
            line.chunk(b"x")
            clock.leapt += 1
            threading.Event().wait(0.001)

    with watching(drip, clock=clock, timeout_seconds=300) as (watch, _):
        assert received(watch) == []
        assert clock.leapt < 500


def is_reading(thread: threading.Thread) -> bool:
    """Whether the thread is in `socket.SocketIO.readinto`, where it would stay."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == "readinto"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(streaming(("ADDED", pod("a", 11)), Line.hang), id="a silent stream"),
        pytest.param(streaming(Line.hang), id="a stream that never spoke"),
        pytest.param(lambda _, line: line.hang(), id="a server that does not answer"),
    ],
)
def test_an_abort_from_another_thread_unblocks_at_once(script: Script) -> None:
    with watching(script) as (watch, server):
        ended: list[BaseException | None] = []

        def read() -> None:
            try:
                received(watch)
                ended.append(None)
            except Unavailable as error:
                ended.append(error)

        thread = in_thread(read)
        eventually(lambda: server.asked)
        eventually(lambda: is_reading(thread))
        began = time.monotonic()
        watch.abort.trigger()
        thread.join(30)
        assert time.monotonic() - began < AT_ONCE
        assert len(ended) == 1
        assert (ended[0] is None) == (watch._stream is not None)  # an open stream ends without an error


def test_an_abort_of_a_stream_under_a_flood_ends_it_without_an_error() -> None:
    def flood(_asked: Asked, line: Line) -> None:
        line.begin()
        version = 11
        while True:
            line.event("MODIFIED", pod("a", version))
            version += 1

    with watching(flood) as (watch, _):
        seen = 0
        for event in watch:
            seen += 1
            if event.resource_version == "50":
                watch.abort.trigger()
        assert seen == 40
