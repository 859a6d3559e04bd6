"""Streams of the transport: silence, refusals, aborts, and TLS."""

import threading
from dataclasses import replace

import pytest
import urllib3

from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import NoResponse, Response, Stream, Transport
from unit.kube.exchanges import READ, WRITE, encrypted, hello, needs_ipv6, open_stream, took
from unit.kube.server import AT_ONCE, BRISK, Asked, Line, connected, serving


def test_a_stream_that_is_silent_for_too_long_times_out() -> None:
    def quiet(_asked: Asked, line: Line) -> None:
        line.begin()
        line.chunk(b"one")
        line.hang()

    with serving(quiet) as server, connected(server) as transport:
        stream = open_stream(transport, Abort(), replace(BRISK, silence=1.0))
        chunks = stream.chunks()
        assert next(chunks) == b"one"

        def wait() -> None:
            with pytest.raises(TimeoutError):
                next(chunks)

        assert took(wait) < AT_ONCE
        stream.close()


def test_a_stream_that_is_refused_comes_back_as_a_whole_answer() -> None:
    with serving(lambda _, line: line.fail(410, "Expired")) as server, connected(server) as transport:
        opened = transport.stream(READ, BRISK, Abort(), life=600.0)
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
        assert got.wait(30)
        abort.trigger()
        assert took(lambda: thread.join(30)) < AT_ONCE
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
