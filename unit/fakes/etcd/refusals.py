"""How etcd refuses a call, and a start."""

import grpc

from unit.fakes.etcd.rules import NOT_FOUND, UNHEALTHY


class Refusal(Exception):
    """The gRPC code and etcd's text of a refused call."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class StartRefused(Exception):
    """The process would end at once, with this at the end of its log."""


_CODES = {UNHEALTHY: grpc.StatusCode.UNAVAILABLE, NOT_FOUND: grpc.StatusCode.NOT_FOUND}


def check(text: str) -> None:
    """Refuse with this text of etcd's; an empty one refuses nothing."""
    if text:
        raise Refusal(_CODES.get(text, grpc.StatusCode.FAILED_PRECONDITION), f"etcdserver: {text}")
