"""A client of a scripted server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from unit.kube.server import BRISK, Script, Server, connected, serving

Raw = dict[str, Any]
A = Key("default", "a")


class Meta(msgspec.Struct, frozen=True):
    name: str


class Named(msgspec.Struct, frozen=True):
    metadata: Meta


@contextmanager
def client_of(script: Script, **options: Any) -> Iterator[tuple[Client, Server]]:
    with serving(script) as server, connected(server) as transport:
        yield Client(transport, **{"timeouts": BRISK, **options}), server


def answering(code: int, body: Any = b"{}", headers: dict[str, str] | None = None) -> Script:
    return lambda _, line: line.answer(code, body, headers)
