"""An operator whose passes a test drives: everything is real but the worker threads and the clock.

Promises: passes run one at a time, on the test's thread, in the order in which keys were queued, each on
caches that show the newest view of the API server and after every probe of etcd has ended; so a scenario
makes the same writes in the same order every time. Time moves only when nothing else is left to do. A bug
("panic") in a pass fails the test. `kill` leaves everything as a SIGKILL would.
"""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

import msgspec

from etcd_operator.controllers.etcd_cluster.membership import DEADLINE as MEMBERSHIP_DEADLINE
from etcd_operator.controllers.etcd_cluster.parts import ClusterGroup
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.wiring import build_groups
from etcd_operator.decoding import read
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder, Reference
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.transport import Timeouts
from etcd_operator.object_metrics import BackupMetrics, ClusterMetrics, ObjectMetrics, RestoreMetrics
from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.selectors import matches_labels
from unit.fakes.clock import FakeClock
from unit.passes.mortality import Mortality, MortalTransport
from unit.passes.steps import DEADLINE, Passes, Schedule, never
from unit.passes.tools import Tools

RESYNC = 10.0
MARK = "Mark"
OWN_NAMESPACE = "etcd-operator"
TIMEOUTS = Timeouts(connect=1.0, read=5.0, total=5.0)


def own_peer() -> Json:
    """The operator's pods, as a NetworkPolicy names them."""
    return {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "etcd-operator"}}}


def objects_of(api: ApiServer, namespace: str = "default") -> Objects:
    """What writes objects as an operator would, on a client of its own; nobody waits for its caches."""
    client = Client(MortalTransport(api.url, Mortality()), timeouts=TIMEOUTS)
    return Objects(client=client, namespace=namespace, wrote=lambda *_: None)


def _is_readable(obj: Json, informer: Informer[Any]) -> bool:
    """Whether an object as stored fits the type of a cache."""
    try:
        read(msgspec.json.encode(obj), informer.reflector._decode)
    except msgspec.ValidationError:
        return False
    return True


class Operator:
    """One life of the operator; `dies_at`: see `Mortality`; `only`: its groups by name (default: all)."""

    def __init__(
        self,
        api: ApiServer,
        clock: FakeClock,
        *,
        dies_at: int = 0,
        dies_on: str = "",
        tools: Tools | None = None,
        only: tuple[str, ...] = (),
    ) -> None:
        self._api = api
        tools = tools or Tools()
        self.schedule = Schedule(clock)
        mortality = Mortality(dies_at, dies_on)
        client = Client(MortalTransport(api.url, mortality), timeouts=TIMEOUTS, clock=clock)
        self._recorder = Recorder(
            Client(MortalTransport(api.url, Mortality()), timeouts=TIMEOUTS), instance="test", clock=clock
        )
        self.upgrades: list[float] = []
        self.leaderless: list[float] = []
        self.leads, self.epoch = True, 0
        self.leads_for_long_enough = True
        self.metrics: dict[tuple[str, Key], ObjectMetrics] = {}
        self.restore_ends: list[str] = []
        self._shown: dict[Informer[Any], tuple[int, int | None]] = {}
        self._reported: dict[Informer[Any], dict[str, str]] = {}
        self._never_read: dict[Informer[Any], set[Key]] = {}
        self._probing = 0
        wiring = Wiring(
            client=client,
            clock=clock,
            recorder=self._recorder,
            defaults=Defaults(repository="quay.io/coreos/etcd", version="3.6.16"),
            new_controller=lambda name, reconcile: Passes(name, reconcile, clock, self.schedule),
            on_call=mortality.on_call,
            probe_deadline=0.4,
            resync=RESYNC,
            on_upgrade=self.upgrades.append,
            on_leaderless=self.leaderless.append,
            on_metrics=self._on_metrics,
            on_restore_end=self.restore_ends.append,
            own_image=tools.image,
            own_namespace=OWN_NAMESPACE,
            zone="cluster.local",
            own_peer=own_peer,
            ask_tool=tools.ask,
            clean_up_tool=tools.clean_up,
            ask_restorable=tools.ask_restorable,
            ask_progress=tools.ask_progress,
            ask_survivor=tools.read,
            submit_inquiry=lambda work: work(),
            epoch=lambda: self.epoch,
            may_act=lambda: self.leads,
            leads_for=lambda seconds: seconds == MEMBERSHIP_DEADLINE and self.leads_for_long_enough,
        )
        watching = Client(MortalTransport(api.url, Mortality()))
        groups = build_groups(wiring, CacheSource(client=watching, namespace="", on_crash=never))
        self.groups = [group for group in groups if not only or group.name in only]
        self.cluster_groups = [group for group in self.groups if isinstance(group, ClusterGroup)]
        for group in self.cluster_groups:
            group.prober._guarded = partial(self._probe, group.prober._guarded)  # type: ignore[method-assign]
        for informer in self.informers:
            self._reported[informer], self._never_read[informer] = {}, set()
            informer.add_handler(partial(self._on_change, informer))
            informer.add_unreadable_handler(partial(self._on_unreadable, informer))
            informer.start()
        self._recorder.start()
        for informer in self.informers:
            assert not self._is_served(informer) or informer.wait_synced(DEADLINE)

    def _on_metrics(self, of: str, key: Key, metrics: ObjectMetrics | None) -> None:
        self.metrics.pop((of, key), None)
        if metrics is not None:
            self.metrics[of, key] = metrics

    @property
    def backup_metrics(self) -> dict[tuple[str, Key], BackupMetrics]:
        return {key: each for key, each in self.metrics.items() if isinstance(each, BackupMetrics)}

    @property
    def cluster_metrics(self) -> dict[tuple[str, Key], ClusterMetrics]:
        return {key: each for key, each in self.metrics.items() if isinstance(each, ClusterMetrics)}

    @property
    def restore_metrics(self) -> dict[tuple[str, Key], RestoreMetrics]:
        return {key: each for key, each in self.metrics.items() if isinstance(each, RestoreMetrics)}

    @property
    def informers(self) -> list[Informer[Any]]:
        found = ((*group.informers, *group.others, *group.optional) for group in self.groups)
        return list(dict.fromkeys(chain.from_iterable(found)))

    def run_pass(self) -> bool:
        """One pass over the key that has waited longest; false when none is due."""
        self.catch_up()
        item = self.schedule.pop()
        if item is None:
            return False
        controller, key = item
        controller.run(key)
        return True

    def catch_up(self) -> None:
        """Wait until all that the API server shows, and all probes of etcd, have queued their keys."""
        with self.schedule.changed:
            caught_up = self.schedule.changed.wait_for(self._is_caught_up, DEADLINE)
        assert caught_up, f"the caches are behind: {[i.reflector.last_error for i in self.informers]}"

    def await_events(self) -> None:
        """Wait until every Event recorded so far is posted: they are posted in order, by one thread."""
        mark, store = uuid4().hex, self._api.objects.store
        about = Reference(api_version="v1", kind="Mark", namespace="default", name=mark, uid=mark)
        self._recorder.record(about, "Normal", MARK, mark)
        with store.changed:
            assert store.changed.wait_for(
                lambda: any(mark in at.name for at, _ in store.everything()), DEADLINE
            )

    def kill(self) -> None:
        """End without cleaning up; only what would survive in a test's process is stopped."""
        for informer in self.informers:
            informer.reflector.stop()
        self._recorder.stop(0.0)
        for informer in self.informers:
            assert informer.stop()
        for group in self.cluster_groups:
            group.prober.stop()
        self._recorder._thread.join(DEADLINE)

    def _on_change(self, informer: Informer[Any], old: Any, new: Any) -> None:
        """The last handler: the others have queued what this change concerns."""
        reported = self._reported[informer]
        with self.schedule.changed:
            if old is not None:
                reported.pop(old.metadata.uid, None)
            if new is not None:
                reported[new.metadata.uid] = new.metadata.resource_version
                self._never_read[informer].discard(new.metadata.key)
            self.schedule.changed.notify_all()

    def _on_unreadable(self, informer: Informer[Any], key: Key) -> None:
        """The last handler of what was never read."""
        with self.schedule.changed:
            if informer.store.unreadable_at(key) is not None:
                self._never_read[informer].add(key)
            else:
                self._never_read[informer].discard(key)
            self.schedule.changed.notify_all()

    def _probe(self, probe: Callable[..., None], *args: Any) -> None:
        """A step of a probe, which begins before the slot is free and ends after the key is queued."""
        with self.schedule.changed:
            self._probing += 1
        try:
            probe(*args)
        finally:
            with self.schedule.changed:
                self._probing -= 1
                self.schedule.changed.notify_all()

    def _is_caught_up(self) -> bool:
        return all(map(self._shows_the_view, self.informers)) and not self._is_probing()

    def _is_probing(self) -> bool:
        slots = [slot for group in self.cluster_groups for slot in list(group.prober._slots.values())]
        return any(slot.is_under_way for slot in slots) or self._probing > 0

    def _shows_the_view(self, informer: Informer[Any]) -> bool:
        """Whether a cache has reported what a LIST would give; compared once for each change of the world."""
        view = (self._api.objects.store.revision, self._api.stale_revision)
        if self._shown.get(informer) != view and self._is_equal_to_the_view(informer):
            self._shown[informer] = view
        return self._shown.get(informer) == view

    def _is_equal_to_the_view(self, informer: Informer[Any]) -> bool:
        if not self._is_served(informer):
            return True
        selection = informer.reflector._selection
        odd = {each.key for each in informer.store.unreadable}
        view = {
            Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for obj in self._view(selection.resource)
            if selection.namespace in ("", obj["metadata"].get("namespace"))
            and matches_labels(selection.label_selector, obj)
        }
        if any(key not in view or _is_readable(view[key], informer) for key in odd):
            return False
        if self._never_read[informer] != {key for key in odd if informer.store.get(key) is None}:
            return False
        unread = {view[key]["metadata"]["uid"] for key in odd}
        reported = {uid: v for uid, v in self._reported[informer].items() if uid not in unread}
        metadata = [obj["metadata"] for key, obj in view.items() if key not in odd]
        return reported == {meta["uid"]: meta["resourceVersion"] for meta in metadata}

    def _view(self, resource: Resource) -> list[Json]:
        """The objects that a LIST would give now."""
        store, stale = self._api.objects.store, self._api.stale_revision
        if stale is not None:
            kind = next(
                k for k in self._api.objects.kinds.of_group(resource.group) if k.plural == resource.plural
            )
            with store.changed:
                return store.view(kind, "", stale)
        place = (resource.group, resource.plural)
        return [obj for at, obj in store.everything() if (at.group, at.plural) == place]

    def _is_served(self, informer: Informer[Any]) -> bool:
        resource = informer.reflector._selection.resource
        return any(
            kind.plural == resource.plural for kind in self._api.objects.kinds.of_group(resource.group)
        )
