"""Puts under load, each of which can be found missing afterwards: for losses that a recovery permits."""

import threading
from contextlib import suppress

from e2e.support.members import Members
from e2e.support.resizing import RATE
from e2e.support.waiting import LONG, answered
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.client import EtcdClient


class Load:
    """Puts each key once, through all members in turn, and remembers what was acknowledged."""

    def __init__(self, addresses: list[str]) -> None:
        self.acknowledged: dict[bytes, int] = {}
        self._addresses = addresses
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(LONG)

    def missing(self, address: str) -> list[bytes]:
        """What was acknowledged and is not there."""
        with Members() as members:
            client = members.client(address)
            return [key for key in self.acknowledged if _is_missing(client, key)]

    def _run(self) -> None:
        with Members(deadline=1.0) as members:
            number = 0
            while not self._stop.wait(1.0 / RATE):
                key = f"load/{number}".encode()
                client = members.client(self._addresses[number % len(self._addresses)])
                with suppress(OperatorError):  # unknown: may be there or not
                    self.acknowledged[key] = client.put(key, b"value")
                number += 1


def _is_missing(client: EtcdClient, key: bytes) -> bool:
    return answered(lambda: client.get(key), f"{key!r} is read") is None
