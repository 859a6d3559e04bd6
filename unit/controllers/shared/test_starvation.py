"""Clusters with silent members delay no other: the real prober and controller, simulated members."""

import resource
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.observe.lanes import Lane
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.controllers.etcd_cluster.observe.quorum_check import QuorumCheck, Settled
from etcd_operator.controllers.wiring import new_backoff
from etcd_operator.engine.controller import Controller, Result
from etcd_operator.etcd.channel import Channels
from etcd_operator.keys import Key
from unit.engine.support import Crashes
from unit.fakes.etcd.cluster import FakeEtcdCluster

DEAD = 300
CHANGES = 40
HEALTHY = Key("ns", "healthy")
RECHECK = 2.0
NOISE = 0.5
"""Seconds by which medians of two operators without dead clusters may differ; a silence takes `DEADLINE`."""
DEADLINE = 2.0
LONGEST = 300.0
"""Seconds after which a change counts as lost, and not as late.

Where this process was stalled for ten seconds, the healthy cluster counts as silent for long: its probes wait
among those of the dead ones until one of them proves a quorum.
"""


def start(etcd: FakeEtcdCluster) -> frozenset[str]:
    names = [f"m{n}" for n in range(3)]
    etcd.bootstrap({name: f"http://{name}:2380" for name in names})
    return frozenset(etcd.start(name, peer_url=f"http://{name}:2380").endpoint for name in names)


@contextmanager
def silent_endpoint() -> Iterator[str]:
    """It accepts connections, as the kernel does for a process that hangs, and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4096)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def refusing_endpoint() -> Iterator[str]:
    """Nobody listens there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@dataclass
class Operator:
    """A controller whose passes have etcd probed as those of clusters do, and its prober."""

    endpoints: dict[Key, frozenset[str]] = field(default_factory=dict)
    passes: dict[Key, int] = field(default_factory=dict)
    acted: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    crashes: Crashes = field(default_factory=Crashes)

    def __post_init__(self) -> None:
        clock = Clock()
        self.controller = Controller(
            "t",
            self._reconcile,
            workers=4,
            clock=clock,
            backoff=new_backoff(clock),
            on_crash=self.crashes,
        )
        self.prober = Prober(
            deadline=DEADLINE,
            on_done=self.controller.resume,
            on_call=lambda *_: None,
            clock=clock,
            epoch=lambda: 0,
        )

    def _reconcile(self, key: Key) -> Result:
        result = self.prober.collect(key, self.endpoints[key])
        if result is None:
            return Result(is_done=False)
        self.passes[key] = self.passes.get(key, 0) + 1
        if key == HEALTHY:
            if not result.quorum:  # this process was stalled for a whole deadline: its time counts
                return Result(requeue_after=0)
            self.acted.release()
            return Result()
        return Result(requeue_after=RECHECK)

    def change(self) -> float:
        """Seconds from a change of the healthy cluster to the pass that acts on it."""
        began = time.monotonic()
        self.controller.enqueue(HEALTHY)
        assert self.acted.acquire(timeout=LONGEST)
        return time.monotonic() - began

    def stop(self) -> None:
        assert self.controller.stop(30)
        self.prober.stop()
        assert not self.crashes


@pytest.fixture
def operators() -> Iterator[tuple[Operator, Operator]]:
    """Two of them: what one takes at the same time distinguishes a busy machine from a starved operator."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    made = Operator(), Operator()
    try:
        yield made
    finally:
        for each in made:
            each.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def in_turn(*operators: Operator) -> list[list[float]]:
    """Seconds that changes take, for each operator: one after the other, so that all meet the same load."""
    pause = threading.Event()
    found: list[list[float]] = [[] for _ in operators]
    for _ in range(CHANGES):
        for each, seconds in zip(operators, found, strict=True):
            seconds.append(each.change())
        pause.wait(0.05)
    return found


@pytest.fixture
def etcd() -> Iterator[FakeEtcdCluster]:
    made = FakeEtcdCluster()
    yield made
    made.close()


def dead_clusters(stack: ExitStack, survivor: str) -> list[frozenset[str]]:
    """Hanging members, in half of them one that is missing; in one of ten a survivor answers."""
    silent = [stack.enter_context(silent_endpoint()) for _ in range(30)]
    gone = stack.enter_context(refusing_endpoint())
    found = []
    for n in range(DEAD):
        third = survivor if n % 10 == 0 else gone if n % 2 else silent[(n + 2) % 30]
        found.append(frozenset({silent[n % 30], silent[(n + 1) % 30], third}))
    return found


def test_quorum_checks_that_hang_pile_up_no_others() -> None:
    """At most one per cluster, and none while its last one has not ended."""
    calls: list[str] = []
    woken = threading.Semaphore(0)
    with ExitStack() as stack:
        channels = Channels()
        stack.callback(channels.close)
        voters = (stack.enter_context(silent_endpoint()),)
        settled = [Settled(Key("ns", f"{n}"), channels, voters) for n in range(20)]
        checks = QuorumCheck(
            lambda: settled,
            wake=lambda _: woken.release(),
            on_call=lambda name, _code, _seconds: calls.append(name),
        )
        stack.callback(checks.stop)
        for _ in range(100):
            checks.check()
        assert checks._pool._work_queue.qsize() <= len(settled)
        for _ in settled:
            assert woken.acquire(timeout=60)
        assert calls == ["Range"] * len(settled)


@pytest.mark.exhaustive
def test_a_change_is_acted_on_as_soon_beside_three_hundred_dead_clusters(
    operators: tuple[Operator, Operator], etcd: FakeEtcdCluster
) -> None:
    operator, unburdened = operators
    healthy = start(etcd)
    half = FakeEtcdCluster()
    with ExitStack() as stack:
        stack.callback(half.close)
        survivor = min(start(half))
        for member in half.members:
            if member.endpoint != survivor:
                half.freeze(member.name)
        for each in operators:
            each.endpoints[HEALTHY] = healthy
            each.controller.start()
        for n, endpoints in enumerate(dead_clusters(stack, survivor)):
            operator.endpoints[Key("dead", f"{n}")] = endpoints
            operator.controller.enqueue(Key("dead", f"{n}"))
        at_first, _ = in_turn(operator, unburdened)
        while min(operator.passes.get(key, 0) for key in operator.endpoints) < 3:
            operator.change()
        beside, alone = in_turn(operator, unburdened)
        waiting = {lane: operator.prober._lanes[lane]._work_queue.qsize() for lane in Lane}
    found = {"at first": quantiles(at_first), "beside": quantiles(beside), "alone": quantiles(alone)}
    assert all(count <= DEAD for count in waiting.values()), waiting
    assert statistics.median(beside) <= 1.2 * statistics.median(alone) + NOISE, found


def quantiles(seconds: list[float]) -> list[float]:
    """Quartiles and the longest, in ms."""
    return [round(1000 * q, 1) for q in (*statistics.quantiles(seconds, n=4), max(seconds))]
