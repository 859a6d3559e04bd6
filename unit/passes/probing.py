"""A cluster of three fake members, and a prober that probes it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.etcd import probe as etcd
from etcd_operator.etcd.probe import Probe
from etcd_operator.keys import Key
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.cluster import FakeEtcdCluster

KEY = Key("ns", "c")
DEADLINE = 8.0
PATIENCE = 3.0
"""Longer than the operator's: on a busy machine, too, only who is frozen is late."""
NAMES = ("m0", "m1", "m2")


class ProbedCluster:
    """Three fake members, and a prober whose results are waited for."""

    def __init__(self) -> None:
        self.etcd = FakeEtcdCluster()
        self.etcd.bootstrap({name: f"http://{name}:2380" for name in NAMES})
        started = [self.etcd.start(name, peer_url=f"http://{name}:2380") for name in NAMES]
        self.endpoints = frozenset(member.endpoint for member in started)
        self.done = threading.Semaphore(0)
        self.calls: list[str] = []
        self.clock, self.epoch = FakeClock(), 0
        self.prober = Prober(
            deadline=DEADLINE,
            on_done=lambda _: self.done.release(),
            on_call=lambda name, _code, _seconds: self.calls.append(name),
            clock=self.clock,
            epoch=lambda: self.epoch,
        )

    def probe(self, *leaving: str) -> Probe:
        """Begin a probe and wait for its result, as two passes do."""
        assert self.prober.collect(KEY, self.endpoints, frozenset(leaving)) is None
        assert self.done.acquire(timeout=60)
        result = self.prober.collect(KEY, self.endpoints)
        assert result is not None
        return result


@contextmanager
def probed_cluster() -> Iterator[ProbedCluster]:
    """Stops everything at the end."""
    made = ProbedCluster()
    try:
        with patch.object(prober, "PATIENCE", PATIENCE):
            yield made
    finally:
        made.prober.stop()
        made.etcd.close()


class Threads:
    """On which threads, and with which deadline, a prober asks."""

    def __init__(self, cluster: ProbedCluster) -> None:
        self._cluster = cluster
        self.asked: list[tuple[str, float]] = []

    def probe(self, *args: Any, deadline: float, **options: Any) -> Probe:
        self.asked.append((threading.current_thread().name.split("-")[1].partition("_")[0], deadline))
        return etcd.probe(*args, deadline=deadline, **options)

    def of_probe(self, after: float = 0.0) -> list[tuple[str, float]]:
        """Those of one probe that is begun `after` so many seconds."""
        self._cluster.clock.advance(after)
        self.asked.clear()
        self._cluster.probe()
        return self.asked[:]
