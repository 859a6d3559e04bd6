"""The informer: a thread, a store and handlers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import PODS, Selection
from unit.kube.server import (
    AT_ONCE,
    BRISK,
    Asked,
    Line,
    Script,
    bookmark,
    connected,
    listing,
    pod,
    serving,
)
from unit.kube.things import Thing
from unit.waiting import eventually

A = Key("default", "a")


def steady(*events: tuple[str, dict[str, Any]], go: threading.Event | None = None) -> Script:
    """A list of one pod at version 10, then these events (once `go` is set), then silence."""

    def script(asked: Asked, line: Line) -> None:
        if "watch" not in asked.query:
            line.answer(200, listing(pod("a", 5, cluster="x"), version=10))
            return
        line.begin()
        if go is not None:
            go.wait(30)
        for event in events:
            line.event(*event)
        line.hang()

    return script


@contextmanager
def informing(script: Script, crashes: list[Any] | None = None) -> Iterator[Informer[Thing]]:
    with serving(script) as server, connected(server) as transport:
        informer = Informer(
            Client(transport, timeouts=BRISK),
            Selection(resource=PODS),
            Thing,
            indexes={"cluster": lambda value: [value.metadata.labels.get("cluster", "")]},
            on_crash=lambda name, error: (crashes if crashes is not None else []).append((name, error)),
        )
        try:
            yield informer
        finally:
            assert informer.stop(30)


def test_it_syncs_and_then_reports_each_change_to_every_handler() -> None:
    with informing(steady(("MODIFIED", pod("a", 11)), ("DELETED", pod("a", 12)))) as informer:
        reported: list[list[tuple[str, str]]] = [[], []]

        def version(value: Thing | None) -> str:
            return value.metadata.resource_version if value else ""

        for seen in reported:
            informer.add_handler(lambda old, new, seen=seen: seen.append((version(old), version(new))))  # type: ignore[misc]
        assert not informer.has_synced
        informer.start()
        assert informer.wait_synced(30)
        eventually(lambda: len(reported[1]) == 3)
        assert reported[0] == reported[1] == [("", "5"), ("5", "11"), ("11", "")]
        assert informer.reflector.last_error is None


def test_it_has_synced_only_after_the_first_list_was_reported_to_the_handlers() -> None:
    with informing(steady()) as informer:
        entered, release = threading.Event(), threading.Event()

        def slow(_old: Thing | None, _new: Thing | None) -> None:
            entered.set()
            release.wait(30)

        informer.add_handler(slow)
        is_listing = [informer.is_listing]
        informer.start()
        assert entered.wait(30)
        assert informer.store.get(A) is not None
        is_listing.append(informer.is_listing)
        assert not informer.has_synced
        assert not informer.wait_synced(0.01)
        release.set()
        assert informer.wait_synced(30)
        assert [*is_listing, informer.is_listing] == [False, True, False]
        assert informer.has_synced


def test_an_object_that_was_never_read_is_reported_to_its_own_handlers() -> None:
    odd = {**pod("odd", 11), "number": "odd"}
    with capture_logs() as logs, informing(steady(("ADDED", odd), ("ADDED", pod("b", 12)))) as informer:
        seen: list[Key] = []

        def broken(_key: Key) -> None:
            raise RuntimeError("broken on purpose")

        informer.add_unreadable_handler(broken)
        informer.add_unreadable_handler(seen.append)
        informer.start()
        eventually(lambda: informer.store.get(Key("default", "b")) is not None)
        assert seen == [Key("default", "odd")]
        with pytest.raises(RuntimeError, match="has started"):
            informer.add_unreadable_handler(seen.append)
    assert "handler_crashed" in {entry["event"] for entry in logs}


def test_a_handler_that_crashes_is_reported_and_costs_only_that_call() -> None:
    with capture_logs() as logs, informing(steady(("ADDED", pod("b", 11)))) as informer:
        seen: list[str] = []

        def broken(_old: Thing | None, _new: Thing | None) -> None:
            raise RuntimeError("broken on purpose")

        informer.add_handler(broken)
        informer.add_handler(lambda old, new: seen.append(new.metadata.name if new else ""))
        informer.start()
        eventually(lambda: seen == ["a", "b"])
    assert [entry["informer"] for entry in logs if entry["event"] == "handler_crashed"] == [
        "informer-pods"
    ] * 2


def test_a_handler_added_late_is_refused() -> None:
    with informing(steady()) as informer:
        informer.start()
        with pytest.raises(RuntimeError, match="miss the first list"):
            informer.add_handler(lambda old, new: None)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(("MODIFIED", pod("a", 20)), id="the write itself"),
        pytest.param(("DELETED", pod("a", 20)), id="a deletion"),
        pytest.param(("ADDED", pod("other", 20)), id="a later write to another object"),
        pytest.param(("BOOKMARK", bookmark(20)), id="a bookmark"),
    ],
)
def test_it_has_caught_up_with_a_write_once_anything_as_new_was_seen(
    event: tuple[str, dict[str, Any]],
) -> None:
    go = threading.Event()
    with informing(steady(event, go=go)) as informer:
        assert not informer.caught_up(A, 5)
        informer.start()
        assert informer.wait_synced(30)
        assert informer.caught_up(A, 10)
        assert not informer.caught_up(A, 20)
        go.set()
        eventually(lambda: informer.caught_up(A, 20))
        assert not informer.caught_up(A, 21)


def test_a_list_that_was_begun_before_a_write_does_not_show_it() -> None:
    again, answer = threading.Event(), threading.Event()

    def script(asked: Asked, line: Line) -> None:
        if "watch" in asked.query:
            assert again.wait(30)
            line.fail(410, "Expired")
            return
        assert not again.is_set() or answer.wait(30)
        line.answer(200, listing(pod("a", 5), version=10))

    with informing(script) as informer:
        assert (informer.reflector.lists_begun, informer.has_listed_since(0)) == (0, False)
        informer.start()
        assert informer.wait_synced(30)
        assert [informer.has_listed_since(begun) for begun in (0, 1)] == [True, False]
        again.set()
        eventually(lambda: informer.reflector.lists_begun == 2)
        assert not informer.has_listed_since(1)
        answer.set()
        eventually(lambda: informer.has_listed_since(1))
        assert not informer.has_listed_since(2)


def test_values_are_found_by_index() -> None:
    with informing(steady()) as informer:
        informer.start()
        assert informer.wait_synced(30)
        assert [value.metadata.name for value in informer.store.by_index("cluster", "x")] == ["a"]


def test_its_thread_is_named_no_daemon_and_ends_soon_after_stop() -> None:
    with informing(steady()) as informer:
        informer.start()
        assert informer.wait_synced(30)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "informer-pods"]
        assert not thread.daemon
        began = time.monotonic()
        assert informer.stop(30)
        assert time.monotonic() - began < AT_ONCE
        assert not thread.is_alive()


def test_it_is_known_whether_its_thread_has_ended() -> None:
    with informing(steady()) as informer:
        assert not informer.has_ended  # nor begun
        informer.start()
        assert informer.wait_synced(30)
        assert not informer.has_ended
        informer.reflector.stop()  # as if its loop had returned for no reason
        eventually(lambda: informer.has_ended)


def test_stop_reports_so_when_the_thread_does_not_end_in_time() -> None:
    with informing(steady()) as informer:
        entered, release = threading.Event(), threading.Event()

        def hanging(_old: Thing | None, _new: Thing | None) -> None:
            entered.set()
            release.wait(30)

        informer.add_handler(hanging)
        informer.start()
        assert entered.wait(30)
        assert not informer.stop(timeout=0.01)
        release.set()


def test_one_that_was_never_started_stops() -> None:
    with informing(steady()) as informer:
        assert informer.stop(30)


def test_a_loop_that_breaks_is_reported_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    crashes: list[Any] = []
    with capture_logs() as logs, informing(steady(), crashes) as informer:
        monkeypatch.setattr(informer.store, "replace", lambda *_, **__: 1 / 0)
        informer.start()
        eventually(lambda: crashes)
    assert crashes[0][0] == "informer-pods"
    assert isinstance(crashes[0][1], ZeroDivisionError)
    assert "informer_crashed" in [entry["event"] for entry in logs]
