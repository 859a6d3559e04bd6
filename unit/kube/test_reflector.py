"""The reflector against servers that cut, stall, expire, throttle and go away."""

import threading
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from etcd_operator.clock import Clock
from etcd_operator.errors import NotFound, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube import reflector
from etcd_operator.kube.reflector import REFUSED
from etcd_operator.pacing import Exponential
from unit.kube.reflecting import Step, failing, following, items, scripted, stream, waits
from unit.kube.server import AT_ONCE, Asked, Line, Script, bookmark, pod, serving
from unit.kube.things import LeapClock
from unit.waiting import eventually


def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    script = scripted([items(pod("a", 5))], [stream(("ADDED", pod("b", 11)), ("DELETED", pod("a", 12)))])
    with following(script) as world:
        eventually(lambda: world.names == ["b"])
        assert world.reported == ["added a", "added b", "deleted a"]
        assert world.watched_from == ["10"]
        assert world.synced.is_set()
        assert world.reflector.last_error is None


def test_the_position_is_kept_on_every_event_and_bookmark() -> None:
    script = scripted(
        [items()],
        [
            stream(("ADDED", pod("a", 11)), ("MODIFIED", pod("a", 15)), then=Line.cut),
            stream(("BOOKMARK", bookmark(40)), then=Line.end),
            stream(("DELETED", pod("a", 50)), then=Line.cut),
        ],
    )
    with following(script) as world:
        eventually(lambda: len(world.watched_from) == 4)
        assert world.watched_from == ["10", "15", "40", "50"]
        assert world.reported == ["added a", "changed a", "deleted a"]
        assert world.lists == 1


def test_half_a_line_is_no_event_and_the_stream_goes_on_from_before_it() -> None:
    def half(line: Line) -> None:
        line.begin()
        line.event("ADDED", pod("a", 11))
        line.chunk(b'{"type":"ADDED","object":{"metadata":{"name":"b","resourceVersion":"12"')
        line.cut()

    script = scripted([items()], [half, stream(("ADDED", pod("b", 12)))])
    with following(script) as world:
        eventually(lambda: world.reported == ["added a", "added b"])
        assert world.watched_from == ["10", "11"]


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param(failing(410, "Expired"), id="as an answer"),
        pytest.param(
            stream(("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})), id="in the stream"
        ),
        pytest.param(stream(("ADDED", pod("x", 9))), id="as versions that go back"),
    ],
)
def test_an_expired_position_means_a_new_list_whose_difference_is_reported(expired: Step) -> None:
    script = scripted(
        [items(pod("a", 5), pod("b", 6)), items(pod("b", 6), pod("c", 20), version=21)], [expired]
    )
    with following(script) as world:
        eventually(lambda: world.watched_from == ["10", "21"])
        assert world.reported == ["added a", "added b", "deleted a", "added c"]
        assert world.lists == 2


def test_a_watch_that_always_expires_causes_no_storm_of_lists() -> None:
    script = scripted([items()], [failing(410, "Expired")] * 5)
    with following(script) as world:
        eventually(lambda: len(world.watched_from) == 6)
        assert waits(world) == [0.8, 1.2, 1.8, 2.7, 4.0]


def test_a_429_waits_as_long_as_the_server_requests_but_a_minute_at_most() -> None:
    refusals = [
        failing(429, Retry_After="7"),
        failing(429, Retry_After="86400"),
        failing(429, Retry_After="0"),
    ]
    with following(scripted([*refusals, items()], [])) as world:
        eventually(lambda: world.watched_from)
        assert waits(world) == [7.0, 60.0, 1.8]


def test_errors_that_the_server_answers_back_off_to_30_seconds() -> None:
    with following(scripted([failing(500)] * 15 + [items()], [])) as world:
        eventually(lambda: world.watched_from)
        assert waits(world)[:4] == [0.8, 1.2, 1.8, 2.7]
        assert waits(world)[-3:] == [30.0, 30.0, 30.0]


def test_the_back_off_has_jitter() -> None:
    numbers = iter([0.5, 1.0, 0.0] + [0.0] * 20)
    with following(scripted([failing(500)] * 3 + [items()], []), random=lambda: next(numbers)) as world:
        eventually(lambda: world.watched_from)
        assert waits(world) == [0.9, 1.4, 1.8]


def test_the_back_off_is_forgotten_after_two_quiet_minutes() -> None:
    clock = LeapClock()

    def refuse(seconds: float) -> Step:
        def run(line: Line) -> None:
            clock.leapt += seconds
            line.fail(500, "Odd")

        return run

    streams = [refuse(0), refuse(100), refuse(125), refuse(0)]
    with following(scripted([items()], streams), clock=clock) as world:
        eventually(lambda: len(world.watched_from) == 5)
        assert waits(world) == [0.8, 1.2, 0.8, 1.2]


def test_a_stream_that_ends_at_once_again_and_again_backs_off() -> None:
    brief = stream(("BOOKMARK", bookmark(11)), then=Line.end)
    with following(scripted([items()], [brief] * 3)) as world:
        eventually(lambda: len(world.watched_from) == 4)
        assert waits(world) == [0.8, 1.2, 1.8]


def test_a_stream_that_ends_after_its_time_is_reopened_at_once() -> None:
    clock = LeapClock()
    seen = threading.Event()

    def ripe(line: Line) -> None:
        line.begin()
        line.event("BOOKMARK", bookmark(30))
        seen.wait(30)
        clock.leapt += 300
        line.end()

    with following(scripted([items()], [ripe]), clock=clock) as world:
        eventually(lambda: world.store.version == "30")
        seen.set()
        eventually(lambda: world.watched_from == ["10", "30"])
        assert waits(world) == []


def test_a_half_open_connection_is_noticed_and_the_stream_reopened_where_it_was() -> None:
    script = scripted([items()], [stream(("ADDED", pod("a", 11))), stream(("ADDED", pod("b", 12)))])
    with following(script, silence=1.0) as world:
        eventually(lambda: world.reported == ["added a", "added b"])
        assert world.watched_from[:2] == ["10", "11"]
        assert world.lists == 1


def test_each_stream_requests_its_end_after_five_to_ten_minutes() -> None:
    for random, seconds in ((0.0, "300"), (0.5, "450"), (0.999, "599")):
        with following(scripted([items()], []), random=lambda random=random: random) as world:  # type: ignore[misc]
            eventually(lambda: world.watched_from)
            assert world.server.asked[-1].query["timeoutSeconds"] == seconds


def test_a_missing_api_is_not_fatal_and_is_found_once_it_is_there() -> None:
    there = threading.Event()
    asked_in_vain: list[Asked] = []

    def script(asked: Asked, line: Line) -> None:
        if not there.is_set():
            asked_in_vain.append(asked)
            line.answer(404, b"404 page not found")
            return
        scripted([items(pod("a", 5))], [])(asked, line)

    with following(script) as world:
        eventually(lambda: len(asked_in_vain) > 3)
        assert not world.synced.is_set()
        assert isinstance(world.reflector.last_error, NotFound)
        there.set()
        eventually(lambda: world.names == ["a"])
        eventually(lambda: world.reflector.last_error is None)


def test_the_last_error_is_set_while_the_stream_is_broken() -> None:
    back = threading.Event()

    def broken(line: Line) -> None:
        if not back.wait(0.001):
            line.fail(500, "Odd")
        else:
            stream()(line)

    with following(scripted([items()], [broken] * 10_000)) as world:
        eventually(lambda: isinstance(world.reflector.last_error, Unavailable))
        # Since the first failure, not the last.
        eventually(lambda: world.reflector.failing_for > 2 * REFUSED.cap)
        back.set()
        eventually(lambda: world.reflector.last_error is None)
        assert world.reflector.failing_for == 0.0


def test_an_odd_object_is_passed_over_and_the_position_moves_on() -> None:
    odd: dict[str, Any] = {**pod("a", 12), "number": "odd"}
    script = scripted(
        [items(pod("a", 5)), items({**odd}, version=21)],
        [
            stream(("MODIFIED", odd), then=Line.cut),
            failing(410),
            stream(
                ("ADDED", pod("b", 22)),
                ("DELETED", {**odd, "metadata": {**odd["metadata"], "resourceVersion": "30"}}),
            ),
        ],
    )
    with following(script) as world:
        eventually(lambda: "deleted a" in world.reported)
        assert world.reported == ["added a", "changed a", "added b", "deleted a"]
        assert world.watched_from == ["10", "12", "21"]
        assert world.store.unreadable == ()


def test_a_server_that_went_away_is_found_within_five_seconds_without_a_restart() -> None:
    """The waits while it is away are what bounds the return: never more than 2.4 s."""
    script = scripted([items(pod("a", 5))], [stream(("ADDED", pod("b", 11)))])
    with following(script, random=lambda: 0.99) as world:
        eventually(lambda: world.names == ["a", "b"])
        port = world.server.port
        world.server.stop()
        assert isinstance(world.clock, LeapClock)
        clock = world.clock
        eventually(lambda: clock.leapt > 60)
        again = scripted([failing(500)], [failing(503), stream(("ADDED", pod("c", 12)))])
        with serving(again, port) as returned:
            eventually(lambda: world.names == ["a", "b", "c"])
            assert max(world.clock.waits) < 2.4
            assert [asked.query["resourceVersion"] for asked in returned.asked] == ["11", "11"]
            world.reflector.stop()
        assert world.reported == ["added a", "added b", "added c"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(scripted([Line.hang], []), id="while it lists"),
        pytest.param(scripted([items()], [Line.hang]), id="while it opens a stream"),
        pytest.param(scripted([items()], []), id="while it watches"),
    ],
)
def test_stop_ends_it_at_once_and_is_no_failure(script: Script) -> None:
    with capture_logs() as logs, following(script, clock=Clock()) as world:
        eventually(lambda: world.watched_from or world.server.asked)
        began = time.monotonic()
    assert time.monotonic() - began < AT_ONCE
    assert "watch_failed" not in {entry["event"] for entry in logs}


def test_a_deleted_object_is_named_by_its_key() -> None:
    script = scripted([items(pod("a", 5))], [stream(("DELETED", pod("a", 11)))])
    with following(script) as world:
        eventually(lambda: "deleted a" in world.reported)
        assert world.store.get(Key("default", "a")) is None


def test_stop_ends_its_wait_after_a_failure_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "REFUSED", Exponential(60.0))
    with following(scripted([failing(500)], []), clock=Clock()) as world:
        eventually(lambda: world.reflector._stopping._waiters)  # type: ignore[attr-defined]
        began = time.monotonic()
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize(
    ("version", "lists"), [pytest.param(510, 2, id="in the future"), pytest.param(1000, 1, id="current")]
)
def test_a_position_that_the_api_server_has_not_reached_is_found_after_a_stream_without_events(
    version: int, lists: int
) -> None:
    """It takes such a watch and sends nothing: its etcd was restored from a backup."""
    full = [items(pod("a", 995), version=1000), items(pod("b", 501), version=version)]
    current = items(pod("b", 501), version=version)

    def script(asked: Asked, line: Line) -> None:
        if "watch" in asked.query:
            line.begin()
            line.hang()
        else:
            (current if asked.query.get("limit") == "1" else full.pop(0))(line)

    with following(script, clock=LeapClock(), silence=1.2) as world:
        eventually(lambda: len(world.watched_from) > 2)
        listed = [a for a in world.server.asked_for(watch=False) if a.query.get("limit") != "1"]
        assert (len(listed), world.reflector.lists_stored) == (lists, lists)
        assert world.watched_from[-1] == str(version)
