"""Reads of Secrets: after one that fails or is slow, one at a time finds out when they succeed again."""

import pytest

from etcd_operator.controllers.shared.secret_reads import AGAIN_SECONDS, SLOW_SECONDS, Reads
from etcd_operator.errors import Forbidden, NotFound, OperatorError, Unavailable
from unit.fakes.clock import FakeClock


class Server:
    """What answers after some seconds, or with an error."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.reads = Reads(self.clock)
        self.asked = 0
        self.takes = 0.0
        self.error: OperatorError | None = None

    def get(self) -> str:
        self.asked += 1
        self.clock.advance(self.takes)
        if self.error is not None:
            raise self.error
        return "secret"

    def read(self) -> str:
        return self.reads.read(self.get)


def test_after_a_failure_others_fail_at_once_and_one_tries_again() -> None:
    server = Server()
    server.error, server.takes = Unavailable("no KMS"), 35.0
    for _ in range(9):
        with pytest.raises(Unavailable):
            server.read()
    assert server.asked == 1
    server.clock.advance(AGAIN_SECONDS)

    def one_that_waits() -> str:
        with pytest.raises(Unavailable):
            server.read()
        return server.get()

    asked, server.error = server.asked, None
    assert server.reads.read(one_that_waits) == "secret"
    assert server.asked == asked + 1
    server.clock.advance(AGAIN_SECONDS)
    server.takes = 0.0
    assert [server.read() for _ in range(3)] == ["secret"] * 3


def test_a_slow_answer_is_used_and_the_next_one_waits() -> None:
    server = Server()
    server.takes = SLOW_SECONDS + 1.0
    assert server.read() == "secret"
    with pytest.raises(Unavailable):
        server.read()
    assert server.asked == 1


@pytest.mark.parametrize("error", [NotFound("gone"), Forbidden("no right")])
def test_what_is_an_answer_is_no_failure(error: OperatorError) -> None:
    server = Server()
    server.error = error
    for _ in range(2):
        with pytest.raises(type(error)):
            server.read()
    assert server.asked == 2
