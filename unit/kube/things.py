"""What the tests of watch, reflector and informer keep: a small typed object."""

import threading
from collections.abc import Callable

import msgspec

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.clock import Clock


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    number: int = 0


def thing(name: str, version: int | str, uid: str = "", **labels: str) -> Thing:
    return Thing(
        metadata=ObjectMeta(
            name=name,
            resource_version=str(version),
            uid=uid or f"uid-{name}",
            namespace="default",
            labels=labels,
        )
    )


class LeapClock(Clock):
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
