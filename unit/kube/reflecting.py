"""A reflector that follows a server with scripted lists and streams."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from etcd_operator.clock import Clock
from etcd_operator.kube.client import Client
from etcd_operator.kube.reflector import Reflector
from etcd_operator.kube.resources import PODS, Selection
from etcd_operator.kube.store import Store
from unit.kube.server import BRISK, Asked, Line, Script, Server, connected, listing, serving
from unit.kube.things import LeapClock, Thing, in_thread

Step = Callable[[Line], None]


@dataclass
class World:
    """A server with scripted lists and streams, and a reflector that follows it."""

    server: Server
    reflector: Reflector[Thing]
    store: Store[Thing]
    clock: Clock
    reported: list[str] = field(default_factory=list)
    synced: threading.Event = field(default_factory=threading.Event)

    @property
    def names(self) -> list[str]:
        return [value.metadata.name for value in self.store.values()]

    @property
    def watched_from(self) -> list[str]:
        return [asked.query["resourceVersion"] for asked in self.server.asked_for(watch=True)]

    @property
    def lists(self) -> int:
        return len(self.server.asked_for(watch=False))


def scripted(lists: list[Step], streams: list[Step]) -> Script:
    """Answers lists and watches from two queues; the last list repeats, a further stream hangs."""
    lists, streams = list(lists), list(streams)

    def script(asked: Asked, line: Line) -> None:
        if "watch" not in asked.query:
            (lists.pop(0) if len(lists) > 1 else lists[0])(line)
        elif streams:
            streams.pop(0)(line)
        else:
            line.begin()
            line.hang()

    return script


def items(*objects: dict[str, Any], version: int = 10) -> Step:
    return lambda line: line.answer(200, listing(*objects, version=version))


def failing(code: int, reason: str = "Odd", **headers: str) -> Step:
    return lambda line: line.fail(code, reason, "no", **headers)


def stream(*steps: Any, then: Step = Line.hang) -> Step:
    def run(line: Line) -> None:
        line.begin()
        for step in steps:
            line.event(*step)
        then(line)

    return run


@contextmanager
def following(
    script: Script,
    *,
    clock: Clock | None = None,
    random: Callable[[], float] = lambda: 0.0,
    **timeouts: float,
) -> Iterator[World]:
    reported: list[str] = []
    clock = clock or LeapClock()

    def report(old: Thing | None, new: Thing | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        reported.append(f"{kind} {(new or old).metadata.name}")  # type: ignore[union-attr]

    store: Store[Thing] = Store(on_change=report)
    synced = threading.Event()
    with serving(script) as server, connected(server) as transport:
        client = Client(transport, timeouts=replace(BRISK, **timeouts))
        reflector = Reflector(
            client, Selection(resource=PODS), Thing, store, clock=clock, random=random, on_synced=synced.set
        )
        thread = in_thread(reflector.run)
        try:
            yield World(server, reflector, store, clock, reported, synced)
        finally:
            reflector.stop()
            thread.join(30)
            assert not thread.is_alive()


def waits(world: World) -> list[float]:
    assert isinstance(world.clock, LeapClock)
    return [round(wait, 1) for wait in world.clock.waits]
