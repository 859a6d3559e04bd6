"""Deadlines, dropped connections and aborts, against sockets that misbehave."""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import trustme
import urllib3

from etcd_operator.errors import Unavailable
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import NoResponse, Request, Response, Stream, Timeouts, Transport
from unit.kube.server import BRISK, Asked, Line, Script, Server, connected, serving, until

READ = Request(method="GET", target="/x", label="get x")
WRITE = Request(method="POST", target="/x", label="create x", body=b"{}")

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")


def hello(_asked: Asked, line: Line) -> None:
    line.answer(200, b"hello")


def first_then(first: Script, then: Script) -> Script:
    """One script for the first request, another for the rest."""
    seen: list[Asked] = []

    def script(asked: Asked, line: Line) -> None:
        seen.append(asked)
        (first if len(seen) == 1 else then)(asked, line)

    return script


def second(odd: Script) -> Script:
    """A misbehaviour for the second request only."""
    seen: list[Asked] = []

    def script(asked: Asked, line: Line) -> None:
        seen.append(asked)
        (odd if len(seen) == 2 else hello)(asked, line)

    return script


def took(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


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
        until(lambda: all(not line.open for line in server._lines))
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


def test_an_answer_that_drips_is_bounded_by_the_total() -> None:
    def drip(_asked: Asked, line: Line) -> None:
        line.head(200, {"Content-Length": "1000"})
        while True:
            line.send(b".")
            threading.Event().wait(0.02)

    quick = Timeouts(connect=1, read=1, total=0.3)
    with serving(first_then(drip, hello)) as server, connected(server) as transport:

        def call() -> None:
            with pytest.raises(NoResponse, match=r"longer than 0\.3 s"):
                transport.exchange(READ, quick)

        assert took(call) < 1.0
        assert transport.exchange(READ, quick).body == b"hello"  # and not the rest of what dripped


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
        until(lambda: server.asked)
        abort.trigger()
        assert took(lambda: thread.join(5)) < 0.1
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


def open_stream(transport: Transport, abort: Abort, timeouts: Timeouts = BRISK) -> Stream:
    opened = transport.stream(READ, timeouts, abort)
    assert isinstance(opened, Stream)
    return opened


def test_a_stream_that_is_silent_for_too_long_times_out() -> None:
    def quiet(_asked: Asked, line: Line) -> None:
        line.begin()
        line.chunk(b"one")
        line.hang()

    with serving(quiet) as server, connected(server) as transport:
        stream = open_stream(transport, Abort(), replace(BRISK, silence=0.1))
        chunks = stream.chunks()
        assert next(chunks) == b"one"

        def wait() -> None:
            with pytest.raises(TimeoutError):
                next(chunks)

        assert took(wait) < 1.0
        stream.close()


def test_a_stream_that_is_refused_comes_back_as_a_whole_answer() -> None:
    with serving(lambda _, line: line.fail(410, "Expired")) as server, connected(server) as transport:
        opened = transport.stream(READ, BRISK, Abort())
        assert isinstance(opened, Response)
        assert opened.status == 410


def test_the_connection_of_a_stream_is_never_used_again() -> None:
    def brief(_asked: Asked, line: Line) -> None:
        line.begin()
        line.end()

    with serving(brief) as server, connected(server) as transport:
        for _ in range(2):
            stream = open_stream(transport, Abort())
            assert list(stream.chunks()) == []
            stream.close()
        assert server.connections == 2
        assert [asked.headers["connection"] for asked in server.asked] == ["close", "close"]


@contextmanager
def encrypted(script: Script, host: str = "127.0.0.1") -> Any:
    """The same server behind TLS: one connection at a time is enough here."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    server = Server(script, wrap=lambda sock: context.wrap_socket(sock, server_side=True), host=host)
    server.start()
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    pool = urllib3.PoolManager(ssl_context=trusted)
    try:
        yield server, Transport(pool=pool, base_url=server.url.replace("http:", "https:"))
    finally:
        pool.clear()
        server.stop()


def test_an_abort_ends_a_stream_over_tls_within_100_ms() -> None:
    def quiet(_asked: Asked, line: Line) -> None:
        line.begin()
        line.chunk(b"one")
        line.hang()

    ended: list[Exception | None] = []
    got = threading.Event()

    def read(stream: Stream) -> None:
        try:
            for _ in stream.chunks():
                got.set()
            ended.append(None)
        except NoResponse as error:
            ended.append(error)

    with encrypted(quiet) as (_server, transport):
        abort = Abort()
        stream = open_stream(transport, abort)
        thread = threading.Thread(target=read, args=(stream,))
        thread.start()
        assert got.wait(5)
        abort.trigger()
        assert took(lambda: thread.join(5)) < 0.1
        stream.close()
        assert len(ended) == 1


def test_a_write_whose_tls_handshake_fails_is_not_applied() -> None:
    with encrypted(hello) as (server, _):
        distrusting = Transport(pool=urllib3.PoolManager(), base_url=server.url.replace("http:", "https:"))
        with pytest.raises(NoResponse, match="certificate") as caught:
            distrusting.exchange(WRITE, BRISK)
        assert not caught.value.maybe_applied
        assert server.asked == []


@needs_ipv6
def test_an_api_server_at_an_ipv6_address_is_reached_and_its_certificate_held_to_that() -> None:
    with encrypted(hello, "::1") as (server, transport):
        assert server.url.startswith("http://[::1]:")
        assert transport.exchange(READ, BRISK).body == b"hello"
