"""A Kubernetes, the etcds in it and an operator, for scenarios: state in, passes, state out.

`run_until` and `settle` let operator, kubelets and controllers take turns until a claim about the world
holds; `rest` proves that nothing is written any more. What is asserted is the world, never calls.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall
from etcd_operator.etcd.probe import Known, Probe, probe
from etcd_operator.kube import reflector
from etcd_operator.pacing import Exponential
from unit.fakes.apiserver import ApiServer, Json, Kind
from unit.fakes.apiserver.faults import Exchange
from unit.fakes.apiserver.kinds import CLAIMS, EVENTS, PODS, REPLICA_SETS, SERVICES
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.launcher import Bootstrapped
from unit.fakes.world import World
from unit.passes.bodies import COREOS, IMPROBABLE, PEERS
from unit.passes.etcds import Etcds
from unit.passes.harness import MARK, OWN_NAMESPACE, RESYNC, Operator
from unit.passes.network import network
from unit.passes.tools import Tools
from unit.rights import all_taken, granted

MEMBER_KINDS = {"services": SERVICES, "pods": PODS, "peers": PEERS, "sets": REPLICA_SETS, "claims": CLAIMS}
PROBE_SECONDS = 60.0
RELISTING = Exponential(0.01, cap=2.0, factor=1.5)  # real time, which has no meaning in a scenario
PEER_LABEL = "etcd.improbable.io/peer-name"
CONDITIONS = {"Available": "True", "Progressing": "False", "Degraded": "False"}
FASTER_THAN_KUBELETS = 0.02
"""Seconds: the first retries of a pass that failed come before any container has started."""


class Bench:
    """Everything of one scenario; `only` are the groups that the operator has, by name (default: all)."""

    def __init__(self, api: ApiServer, clock: FakeClock, only: tuple[str, ...] = ()) -> None:
        self.clock, self.api = clock, api
        self.etcds = Etcds(api, clock)
        self.world = World(
            api,
            on_start=self.etcds.container_started,
            on_stop=self.etcds.container_ended,
            on_init=self.etcds.prepare,
            addresses=network(),
        )
        self.world.reports = self.etcds.reports
        self.tools = Tools(self.etcds)
        self.operator: Operator | None = None
        self.controllers: list[Callable[[], bool]] = []  # of others: each acts once, and tells whether it did
        self._only = only

    def probe(
        self,
        channels: Channels,
        endpoints: Iterable[str],
        *,
        deadline: float,
        patience: float,
        known: Known,
        on_call: OnCall,
    ) -> Probe:
        """A probe that a slow machine does not cut short: only a member that cannot answer is given up."""
        del patience, known
        endpoints = tuple(endpoints)
        seconds = deadline if self.etcds.is_any_silent() else PROBE_SECONDS
        while True:
            result = probe(channels, endpoints, deadline=seconds, patience=seconds, on_call=on_call)
            if seconds >= PROBE_SECONDS or self.etcds.is_as_expected(result):
                return result
            seconds *= 4

    # lives of the operator

    def start(self, *, dies_at: int = 0, dies_on: str = "") -> None:
        """A new operator on the world as it is."""
        assert self.operator is None
        self.operator = Operator(
            self.api, self.clock, dies_at=dies_at, dies_on=dies_on, tools=self.tools, only=self._only
        )

    def kill(self) -> None:
        """SIGKILL."""
        if self.operator is not None:
            self.operator.kill()
            self.operator = None

    def restart(self) -> None:
        """SIGKILL, and a new one."""
        self.kill()
        self.start()

    # time

    def turn(self) -> bool:
        """One pass if a key is due, or nearly, else everyone else's step; whether anything happened."""
        if self.operator is not None:
            if self.operator.run_pass():
                return True
            next_due = min(self.operator.schedule.later.values(), default=math.inf)
            if next_due <= self.clock.monotonic() + FASTER_THAN_KUBELETS:
                self.operator.schedule.advance()
                return True
        return self.step()

    def step(self) -> bool:
        """Kubelets and controllers act once."""
        moved = self.world.step()
        for each in self.controllers:
            moved = each() or moved
        return self.etcds.report() or moved

    def run_until(
        self, claim: Callable[[], bool], turns: int = 600, *, first: Callable[[], bool] = lambda: False
    ) -> None:
        """Take turns, and let time pass when nothing is due, until `claim` holds.

        first: what comes before each turn, and in its place if it did anything.
        """
        for _ in range(turns):
            if claim():
                return
            if not first() and not self.turn():
                assert self.operator is not None
                self.operator.schedule.advance()
        raise AssertionError(f"not so after {turns} turns: {self.story()}")

    def drain(self, turns: int = 600) -> None:
        """Take turns until nothing is due; no time passes but for first retries."""
        for _ in range(turns):
            if not self.turn():
                return
        raise AssertionError(f"no rest after {turns} turns: {self.story()}")

    def wait(self, seconds: float) -> None:
        """Let time pass in small steps, with everything that becomes due."""
        end = self.clock.monotonic() + seconds
        self.drain()
        while (left := end - self.clock.monotonic()) > 1e-6:
            assert self.operator is not None
            next_due = min(self.operator.schedule.later.values(), default=end) - self.clock.monotonic()
            self.operator.schedule.advance(min(left, max(next_due, 1e-3)))
            self.drain()

    def settle(self, *clusters: tuple[Kind, str]) -> None:
        """Until the status of each cluster (default: of all) reports that it is as desired, for a while."""
        wanted = clusters or tuple((kind, o["metadata"]["name"]) for kind, o in self.clusters())

        def settled() -> bool:
            return all(self.is_settled(*cluster) for cluster in wanted)

        for _ in range(5):
            self.run_until(settled)
            self.wait(5.0)
            if settled():
                return
        raise AssertionError(f"never at rest: {self.story()}")

    def rest(self, resyncs: int = 3) -> None:
        """Nothing at all is written over so many more probes, Events included."""
        assert self.operator is not None
        before = self.operator.groups[0].controllers[0], self.passes()
        writes, events = len(self.writes()), len(self.events())
        for _ in range(resyncs):
            self.operator.schedule.advance(RESYNC * 1.11)
            self.drain()
        extra = [f"{w.request.method} {w.request.path} {w.request.body}" for w in self.writes()[writes:]]
        assert not extra, extra
        assert len(self.events()) == events
        assert self.passes() >= before[1] + resyncs * len(self.clusters())

    def passes(self) -> int:
        """Passes run by this operator so far."""
        assert self.operator is not None
        return sum(c.passes for g in self.operator.groups for c in g.controllers)  # type: ignore[attr-defined]

    # the world

    def create(self, kind: Kind, body: Json) -> Json:
        """As a user's `kubectl create`."""
        return self.api.objects.create(kind, "default", body)

    def edit(self, kind: Kind, name: str, patch: Json, *, subresource: str = "") -> Json:
        """As `kubectl patch --type=merge`."""
        return self.api.objects.patch(kind, "default", name, patch, "merge", subresource=subresource)

    def delete(self, kind: Kind, name: str, **options: Any) -> None:
        """As `kubectl delete`."""
        self.api.objects.delete(kind, "default", name, **options)

    def lose_claim(self, name: str) -> None:
        """A volume is lost with its claim, although a pod was using it, and with the pod."""
        self.delete(CLAIMS, name)
        self.edit(CLAIMS, name, {"metadata": {"finalizers": []}})
        for pod in self.api.objects.select(PODS, labels=f"{PEER_LABEL}={name}"):
            self.delete(PODS, pod["metadata"]["name"])

    def get(self, kind: Kind, name: str = "c") -> Json:
        """An object as stored."""
        return self.api.objects.get(kind, "default", name)

    def names(self, kind: Kind) -> list[str]:
        """The names of all objects of a kind."""
        return [o["metadata"]["name"] for o in self.api.objects.select(kind)]

    def clusters(self) -> list[tuple[Kind, Json]]:
        """All cluster resources."""
        return [(kind, o) for kind in (COREOS, IMPROBABLE) for o in self.api.objects.select(kind)]

    def objects(self) -> dict[str, list[str]]:
        """What members are made of; pods by the member they run."""
        found = {word: self.names(kind) for word, kind in MEMBER_KINDS.items()}
        pods = [pod["metadata"] for pod in self.api.objects.select(PODS)]
        return {**found, "pods": sorted(p["labels"].get(PEER_LABEL, p["name"]) for p in pods)}

    def status(self, kind: Kind, name: str = "c") -> Json:
        """A cluster's status; empty before the first."""
        return dict(self.get(kind, name).get("status") or {})

    def condition(self, kind: Kind, type_: str, name: str = "c") -> Json:
        """One condition; empty without it."""
        found = self.status(kind, name).get("conditions") or ()
        return dict(next((c for c in found if c["type"] == type_), {}))

    def reason(self, kind: Kind, name: str = "c") -> str:
        """What the cluster is held by: the reason of Degraded while it is true."""
        found = self.condition(kind, "Degraded", name)
        return str(found["reason"]) if found.get("status") == "True" else ""

    def is_settled(self, kind: Kind, name: str) -> bool:
        """Whether the status reports that everything is as desired."""
        status = self.status(kind, name)
        # Others there may be: DataLossPossible is true for ever after a recovery, or somebody else's.
        found = {c["type"]: c["status"] for c in status.get("conditions") or () if c["type"] in CONDITIONS}
        generation = self.get(kind, name)["metadata"]["generation"]
        return found == CONDITIONS and status["observedGeneration"] == generation

    @property
    def etcd(self) -> Bootstrapped:
        """The one etcd cluster that has processes."""
        (process,) = (p for p in self.etcds.by_token.values() if p.running)
        return process

    def etcd_runs(self) -> bool:
        """Whether any etcd process runs at all."""
        return any(process.running for process in self.etcds.by_token.values())

    # what was written

    def writes(self) -> list[Exchange]:
        """The operator's writes so far, Events apart."""
        return [exchange for exchange in self.api.writes if exchange.request.plural != "events"]

    def count_writes(self) -> int:
        """How many writes there were, to the API server and to etcd, refused ones included."""
        return len(self.writes()) + sum(len(p.etcd.writes) for p in self.etcds.by_token.values())

    def events(self) -> list[Json]:
        """Every Event so far."""
        if self.operator is not None:
            self.operator.await_events()
        return [event for event in self.api.objects.select(EVENTS) if event["reason"] != MARK]

    def event_reasons(self) -> list[str]:
        """Reasons of all Events, with how often, sorted."""
        events = self.events()
        return sorted(e["reason"] if e["count"] == 1 else f"{e['reason']} x{e['count']}" for e in events)

    def story(self) -> str:
        """The end of the scenario, for failures."""
        last = [f"{w.request.method} {w.request.path} {w.code}" for w in self.writes()[-6:]]
        clusters = {f"{k.group}/{o['metadata']['name']}": o.get("status") for k, o in self.clusters()}
        return f"{self.objects()}\n{clusters}\nlast writes {last}\nunsafe {self.etcds.unsafe}"


@contextmanager
def bench(clock: FakeClock | None = None, *, only: tuple[str, ...] = ()) -> Iterator[Bench]:
    """A world without an operator; whatever happens in it must be safe. `only`: see `Bench`."""
    clock = clock or FakeClock()
    with ApiServer(clock=clock) as api:
        made = Bench(api, clock, only)
        try:
            relisting = patch.multiple(reflector, AWAY=RELISTING, REFUSED=RELISTING)
            with relisting, patch.object(prober, "probe", made.probe):
                yield made
            assert not made.etcds.unsafe
            assert not [each for process in made.etcds.by_token.values() for each in process.etcd.strangers]
            asked = all_taken(exchange.request for exchange in api.log)
            assert asked <= granted(), f"manifests do not allow {sorted(asked - granted())}"
        finally:
            made.kill()
            made.etcds.close()


@contextmanager
def bootstrapped(kind: Kind, body: Json, *, alone: bool = True) -> Iterator[Bench]:
    """A cluster that is as desired, with an acknowledged key; `alone`: the operator has only its group."""
    # Certificates are verified by the real time.
    clock = FakeClock(datetime.now(UTC)) if "tls" in body["spec"] else None
    with bench(clock, only=(kind.group,) if alone else ()) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        made.start()
        made.create(kind, body)
        made.settle()
        made.etcd.put(b"key", b"value")
        yield made
