"""Total deadlines, against servers that send a little at a time and would keep a thread for hours."""

import threading
from dataclasses import replace

import pytest

from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import NoResponse
from unit.kube.exchanges import READ, WRITE, encrypted, hello, open_stream, took
from unit.kube.server import AT_ONCE, BRISK, Asked, Line, Script, connected, first_then, serving
from unit.kube.things import LeapClock

HEAD = b"HTTP/1.1 200 OK\r\n"
HEADS = [
    pytest.param(b"HTTP/1.1 200 O", b"K", id="the status line"),
    pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="a status before the status"),
    pytest.param(HEAD + b"X-Header: ", b"x", id="a header"),
]
BODIES = [
    pytest.param(HEAD + b"Content-Length: 1000\r\n\r\n", b".", id="the body"),
    pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", id="the size of a chunk"),
]


def dripping(
    clock: LeapClock, begin: bytes, piece: bytes, *, waits_for: threading.Event | None = None
) -> Script:
    """A response of which a piece comes every second of that clock: 100 of them, and then nothing more."""

    def script(_asked: Asked, line: Line) -> None:
        line.send(begin)
        assert waits_for is None or waits_for.wait(30)
        for _ in range(100):
            clock.leapt += 1.0
            line.send(piece)
        line.cut()

    return script


@pytest.mark.parametrize(("begin", "piece"), [*HEADS, *BODIES])
def test_a_response_is_bounded_by_the_total_wherever_it_drips(begin: bytes, piece: bytes) -> None:
    clock = LeapClock()
    script = first_then(dripping(clock, begin, piece), hello)
    with serving(script) as server, connected(server, clock=clock) as transport:
        with pytest.raises(NoResponse, match=r"longer than 40 s") as caught:
            transport.exchange(WRITE, BRISK)
        assert caught.value.maybe_applied
        assert transport.exchange(READ, BRISK).body == b"hello"  # and not the rest of what dripped


@pytest.mark.parametrize(("begin", "piece"), HEADS)
def test_the_headers_of_a_stream_are_bounded_by_the_total(begin: bytes, piece: bytes) -> None:
    clock = LeapClock()
    with (
        serving(dripping(clock, begin, piece)) as server,
        connected(server, clock=clock) as transport,
        pytest.raises(NoResponse, match=r"longer than 40 s"),
    ):
        transport.stream(READ, BRISK, Abort(), life=1000.0)


@pytest.mark.parametrize(("begin", "piece"), BODIES)
def test_a_stream_ends_when_its_life_does_wherever_it_drips(begin: bytes, piece: bytes) -> None:
    clock, is_open = LeapClock(), threading.Event()
    script = dripping(clock, begin, piece, waits_for=is_open)
    with serving(script) as server, connected(server, clock=clock) as transport:
        stream = open_stream(transport, Abort(), life=50.0)
        is_open.set()
        with pytest.raises(TimeoutError):
            list(stream.chunks())
        stream.close()


def test_a_stream_may_last_longer_than_a_response() -> None:
    clock, is_open = LeapClock(), threading.Event()

    def late(_asked: Asked, line: Line) -> None:
        line.begin()
        line.chunk(b"one")
        assert is_open.wait(30)
        clock.leapt += 100.0
        line.chunk(b"two")
        line.end()

    with serving(late) as server, connected(server, clock=clock) as transport:
        stream = open_stream(transport, Abort(), life=1000.0)
        is_open.set()
        assert b"".join(stream.chunks()) == b"onetwo"
        stream.close()


def test_a_response_over_tls_is_bounded_by_the_total() -> None:
    clock = LeapClock()
    with (
        encrypted(dripping(clock, HEAD + b"X-Header: ", b"x"), clock=clock) as (_, transport),
        pytest.raises(NoResponse, match=r"longer than 40 s"),
    ):
        transport.exchange(READ, BRISK)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "over TLS"])
def test_a_silence_is_cut_short_by_the_total(*, secure: bool) -> None:
    def half(_asked: Asked, line: Line) -> None:
        line.send(HEAD)
        line.hang()

    def call() -> None:
        with pytest.raises(NoResponse, match=r"longer than 0\.3 s"):
            transport.exchange(READ, replace(BRISK, total=0.3))

    if secure:
        with encrypted(half) as (_, transport):
            assert took(call) < AT_ONCE
    else:
        with serving(half) as server, connected(server) as transport:
            assert took(call) < AT_ONCE


def test_the_next_request_on_a_connection_has_its_whole_time_again() -> None:
    clock = LeapClock()

    def late(_asked: Asked, line: Line) -> None:
        clock.leapt += 25.0
        line.answer(200, bytes(1 << 20))  # more than one read

    with serving(first_then(late, hello)) as server, connected(server, clock=clock) as transport:
        idle = transport._pool.connection_from_url(server.url).pool
        assert idle is not None
        transport.exchange(READ, BRISK)
        assert idle.queue[-1].sock.gettimeout() < BRISK.read
        transport.exchange(READ, BRISK)
        assert idle.queue[-1].sock.gettimeout() == BRISK.read
        assert server.connections == 1


def test_the_time_for_credentials_is_not_taken_from_the_request() -> None:
    clock = LeapClock()

    def slow() -> dict[str, str]:
        clock.leapt += 100.0
        return {}

    with serving(hello) as server, connected(server, clock=clock, headers=slow) as transport:
        assert transport.exchange(READ, BRISK).body == b"hello"
