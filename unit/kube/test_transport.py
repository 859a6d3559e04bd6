"""Deadlines, dropped connections and aborts, against sockets that misbehave."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.errors import Unavailable
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import NoResponse, Transport
from unit.kube.exchanges import READ, WRITE, hello, open_stream, took
from unit.kube.server import AT_ONCE, BRISK, Asked, Line, Script, connected, serving
from unit.waiting import eventually


def second(odd: Script) -> Script:
    """A misbehaviour for the second request only."""
    seen: list[Asked] = []

    def script(asked: Asked, line: Line) -> None:
        seen.append(asked)
        (odd if len(seen) == 2 else hello)(asked, line)

    return script


def test_connections_are_kept_alive_between_requests() -> None:
    with serving(hello) as server, connected(server) as transport:
        for _ in range(3):
            assert transport.exchange(READ, BRISK).body == b"hello"
        assert server.connections == 1


def test_a_read_on_a_dropped_kept_alive_connection_is_sent_again() -> None:
    with serving(second(lambda _, line: line.cut())) as server, connected(server) as transport:
        transport.exchange(READ, BRISK)
        assert transport.exchange(READ, BRISK).body == b"hello"
        assert len(server.asked) == 3


def test_a_stream_on_a_dropped_kept_alive_connection_is_opened_again() -> None:
    def script(asked: Asked, line: Line) -> None:
        if len(server.asked) == 2:
            line.cut()
        else:
            line.answer(200, b"hello")

    with serving(script) as server, connected(server) as transport:
        transport.exchange(READ, BRISK)
        stream = open_stream(transport, Abort())
        assert b"".join(stream.chunks()) == b"hello"
        stream.close()
        assert len(server.asked) == 3


def test_a_write_on_a_dropped_kept_alive_connection_is_not_sent_again_but_maybe_applied() -> None:
    with serving(second(lambda _, line: line.cut())) as server, connected(server) as transport:
        transport.exchange(READ, BRISK)
        with pytest.raises(NoResponse) as caught:
            transport.exchange(WRITE, BRISK)
        assert caught.value.maybe_applied
        assert len(server.asked) == 2


def test_a_write_goes_over_a_new_connection_when_the_server_closed_the_idle_one() -> None:
    def once(_asked: Asked, line: Line) -> None:
        line.answer(200, b"hello")
        line.cut()

    with serving(once) as server, connected(server) as transport:
        transport.exchange(READ, BRISK)
        eventually(lambda: all(not line.open for line in server._lines))
        assert transport.exchange(WRITE, BRISK).status == 200
        assert [asked.method for asked in server.asked] == ["GET", "POST"]


def test_a_read_on_a_fresh_connection_that_is_cut_is_not_sent_again() -> None:
    with serving(lambda _, line: line.cut()) as server, connected(server) as transport:
        with pytest.raises(NoResponse):
            transport.exchange(READ, BRISK)
        assert len(server.asked) == 1


def test_a_write_that_never_found_a_server_is_not_applied() -> None:
    with serving(hello) as server:
        pass
    with (
        connected(server) as transport,
        pytest.raises(NoResponse, match=r"create x: no response: .*refused") as caught,
    ):
        transport.exchange(WRITE, BRISK)
    assert not caught.value.maybe_applied


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(lambda line: line.hang(), id="nothing at all"),
        pytest.param(lambda line: (line.send(b"HTTP/1.1 200 OK\r\nContent-"), line.hang()), id="half a head"),
        pytest.param(
            lambda line: (line.head(200, {"Content-Length": "10"}), line.send(b"half"), line.hang()),
            id="half a body, then silence",
        ),
        pytest.param(
            lambda line: (line.head(200, {"Content-Length": "10"}), line.send(b"half"), line.cut()),
            id="half a body, then the end",
        ),
        pytest.param(
            lambda line: (line.begin(), line.chunk(b"half"), line.cut()), id="a chunked body cut off"
        ),
        pytest.param(lambda line: (line.send(b"garbage\r\n\r\n"), line.cut()), id="no HTTP"),
    ],
)
def test_an_incomplete_answer_is_no_answer_and_bounded_in_time(odd: Callable[[Line], Any]) -> None:
    quick = replace(BRISK, read=0.2)
    with serving(lambda _, line: odd(line)) as server, connected(server) as transport:
        for request in (READ, WRITE):
            with pytest.raises(NoResponse) as caught:
                transport.exchange(request, quick)
            assert caught.value.maybe_applied == (request is WRITE)
            assert "\n" not in str(caught.value)


def test_a_redirect_is_not_followed() -> None:
    def away(_asked: Asked, line: Line) -> None:
        line.answer(302, b"", {"Location": "/elsewhere"})

    with serving(away) as server, connected(server) as transport:
        assert transport.exchange(READ, BRISK).status == 302
        assert len(server.asked) == 1


def test_headers_are_read_for_each_request() -> None:
    tokens = iter(["one", "two"])
    with (
        serving(hello) as server,
        connected(server, headers=lambda: {"Authorization": next(tokens)}) as transport,
    ):
        transport.exchange(READ, BRISK)
        transport.exchange(READ, BRISK)
        assert [asked.headers["authorization"] for asked in server.asked] == ["one", "two"]


def test_an_abort_ends_an_exchange_that_waits_and_refuses_later_ones() -> None:
    abort = Abort()
    raised: list[Unavailable] = []

    def call(transport: Transport) -> None:
        try:
            transport.exchange(READ, BRISK, abort)
        except Unavailable as error:
            raised.append(error)

    with serving(lambda _, line: line.hang()) as server, connected(server) as transport:
        thread = threading.Thread(target=call, args=(transport,))
        thread.start()
        eventually(lambda: server.asked)
        abort.trigger()
        assert took(lambda: thread.join(30)) < AT_ONCE
        with pytest.raises(Unavailable, match="stopped"):
            transport.exchange(READ, BRISK, abort)
        assert len(raised) == len(server.asked) == 1


def test_an_abort_after_the_answer_does_not_touch_the_connection_of_others() -> None:
    abort = Abort()
    with serving(hello) as server, connected(server) as transport:
        transport.exchange(READ, BRISK, abort)
        abort.trigger()
        assert transport.exchange(WRITE, BRISK).status == 200
        assert server.connections == 1
