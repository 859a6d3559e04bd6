"""Electors over HTTP against a fake API server, with clocks that a test moves."""

import threading
from datetime import datetime, timedelta

import urllib3

from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.lease import Elector
from etcd_operator.kube.lease_lock import Candidate
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.transport import Transport
from unit.fakes.apiserver import ApiServer
from unit.fakes.apiserver.kinds import LEASES
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

KEY = Key("default", "operator")


class SkewedClock(FakeClock):
    """Ticks with another clock but shows another time."""

    def __init__(self, base: FakeClock) -> None:
        super().__init__()
        self._base = base
        self.skew = timedelta()

    def now(self) -> datetime:
        return self._base.now() + self.skew

    def monotonic(self) -> float:
        return self._base.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        self._base.wait(condition, timeout)


class Bench:
    """A fake server, a clock, and electors that record their callbacks."""

    def __init__(self, api: ApiServer, pool: urllib3.PoolManager) -> None:
        self.api, self.clock = api, FakeClock()
        self.client = Client(Transport(pool=pool, base_url=api.url))
        self.calls: list[str] = []

    def elector(self, identity: str, clock: FakeClock | None = None, pod: OwnPod | None = None) -> Elector:
        return Elector(
            self.client, KEY, Candidate(identity, pod),
            clock=clock or self.clock,
            on_started_leading=lambda: self.calls.append(f"{identity} started"),
            on_stopped_leading=lambda: self.calls.append(f"{identity} stopped"),
        )  # fmt: skip

    def leading(self, identity: str) -> Elector:
        """One that has acquired the Lease, and does not run."""
        elector = self.elector(identity)
        elector._attempt()
        return elector

    def running(self, identity: str) -> Elector:
        """One that runs and leads."""
        elector = self.elector(identity)
        elector.start()
        eventually(lambda: self.calls == [f"{identity} started"])
        return elector

    def lease(self) -> dict[str, object]:
        spec: dict[str, object] = self.api.objects.get(LEASES, *KEY)["spec"]
        return spec
