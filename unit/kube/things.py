"""What the tests of watch, reflector and informer keep: a small typed object."""

import threading
from collections.abc import Callable

import msgspec

from etcd_operator.clock import SystemClock


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta


def thing(name: str, version: int | str, uid: str = "", **labels: str) -> Thing:
    return Thing(
        metadata=Meta(
            name=name,
            resource_version=str(version),
            uid=uid or f"uid-{name}",
            namespace="default",
            labels=labels,
        )
    )


class LeapClock(SystemClock):
    """A clock on which waiting costs nothing: it leaps over the time, and remembers the waits."""

    def __init__(self) -> None:
        self.leapt = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return super().monotonic() + self.leapt

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        assert timeout is not None
        self.waits.append(timeout)
        self.leapt += timeout


def in_thread(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, name="test")
    thread.start()
    return thread
