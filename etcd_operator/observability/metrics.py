"""Numbers for Prometheus, under the names that dashboards of Go controllers expect.

All metrics are in the registry of one `Metrics` object, none in the library's global one, so that two objects
(in tests) are independent. Names and labels of the work queue, the controllers and the REST client are those
of client-go and controller-runtime; our own begin with `etcd_operator_`.

Counters and histograms are updated by calls; gauges (depth, longest running) are read from their owners when
Prometheus scrapes. All methods are safe from any thread and do no I/O.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from etcd_operator.observability.files import limits
from etcd_operator.observability.objects import ObjectSeries

_QUEUE_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_UPGRADE_BUCKETS = (2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class QueueGauges(Protocol):
    """What a scrape reads from a controller's work queue."""

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""

    @property
    def in_flight(self) -> int:
        """How many keys are being reconciled."""

    def unfinished_seconds(self) -> float:
        """How long the keys in flight have been in work, added up."""

    def longest_running_seconds(self) -> float:
        """For how long the oldest key in flight has been in work."""

    def stalled_seconds(self) -> float:
        """For how long keys have waited and none was taken."""


class Metrics:
    """All metrics of the operator."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        seconds = partial(Histogram, registry=self.registry)
        self._controllers = _ControllerFamilies(self.registry)
        self._requests = counter("rest_client_requests", "Requests to the API server.", ["code", "method"])
        self._request_seconds = seconds(
            "rest_client_request_duration_seconds",
            "Seconds until the API server responded.",
            ["verb", "resource"],
            buckets=_REQUEST_BUCKETS,
        )
        self._etcd_requests = counter(
            "etcd_operator_etcd_requests", "Calls to etcd members.", ["method", "code"]
        )
        self._etcd_seconds = seconds(
            "etcd_operator_etcd_request_duration_seconds",
            "Seconds until an etcd member answered.",
            ["method"],
            buckets=_REQUEST_BUCKETS,
        )
        self._upgrade_seconds = seconds(
            "etcd_operator_upgrade_duration_seconds",
            "Seconds from the first step of an upgrade until all members run the new version.",
            buckets=_UPGRADE_BUCKETS,
        )
        self._leaderless_seconds = counter(
            "etcd_operator_upgrade_leaderless_seconds",
            "Seconds during upgrades in which a cluster was observed without a leader.",
        )
        self._leader = gauge("leader_election_master_status", "1 if this process leads.", ["name"])
        self._is_leader = False
        # In addition to `process_open_fds` and `process_max_fds` of the collector.
        limit = gauge(
            "etcd_operator_open_files_limit",
            "How many file descriptors this process may have open: now (soft) and at most (hard).",
            ["limit"],
        )
        limit.labels("soft").set_function(lambda: limits().soft)
        limit.labels("hard").set_function(lambda: limits().hard)
        self.objects = ObjectSeries(lambda: self._is_leader)
        self.registry.register(self.objects)
        self._restore_ends = counter(
            "etcd_operator_restore_ends",
            "EtcdRestores that have ended since the operator was started, by phase.",
            ["phase"],
        )
        for phase in ("Completed", "Failed"):  # from 0 on, so that `increase` counts the first one
            self._restore_ends.labels(phase=phase)

    def controller(self, name: str, *, workers: int) -> "ControllerMetrics":
        """The metrics of one controller with that many workers; once per name."""
        return ControllerMetrics(name, workers, self._controllers)

    def observe_events(self, dropped: Callable[[], Mapping[str, int]]) -> None:
        """Read how many Events were dropped, by cause, at each scrape; called once."""
        self.registry.register(_DroppedEvents(dropped))

    def on_request(self, verb: str, resource_kind: str, code: int, seconds: float) -> None:
        """The API server responded to a request with `code` (0: no response) after `seconds`."""
        self._requests.labels(code=str(code) if code else "<error>", method=verb.upper()).inc()
        self._request_seconds.labels(verb=verb.upper(), resource=resource_kind).observe(seconds)

    def etcd_call(self, method: str, code: str, seconds: float) -> None:
        """A call to etcd ended with that gRPC status after `seconds`."""
        self._etcd_requests.labels(method=method, code=code).inc()
        self._etcd_seconds.labels(method=method).observe(seconds)

    def upgraded(self, seconds: float) -> None:
        """An upgrade of a cluster finished, `seconds` after its first step."""
        self._upgrade_seconds.observe(seconds)

    def leaderless(self, seconds: float) -> None:
        """A cluster was observed without a leader for `seconds` during an upgrade."""
        self._leaderless_seconds.inc(seconds)

    def leader(self, is_leader: bool) -> None:  # noqa: FBT001 - one obvious flag
        """This process has won or lost the Lease."""
        self._leader.labels(name="etcd-operator").set(int(is_leader))
        self._is_leader = is_leader

    def restore_ended(self, phase: str) -> None:
        """An EtcdRestore has ended, as Completed or Failed."""
        self._restore_ends.labels(phase=phase).inc()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The scrape: body and content type, in the format that the Accept header asks for."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is no number
            encode, content_type = choose_encoder("")
        return encode(self.registry), content_type


class _DroppedEvents(Collector):
    """The Events that were not written, by cause."""

    def __init__(self, dropped: Callable[[], Mapping[str, int]]) -> None:
        self._dropped = dropped

    def collect(self) -> Iterator[Metric]:
        """The one family."""
        text = "Events that were not written since the operator was started, by cause."
        family = CounterMetricFamily("etcd_operator_events_dropped", text, labels=("cause",))
        for cause, count in self._dropped().items():
            family.add_metric((cause,), count)
        yield family


class ControllerMetrics:
    """What one controller and its work queue report; implements the engine's protocols."""

    def __init__(self, name: str, workers: int, families: "_ControllerFamilies") -> None:
        self._name = name
        self._families = families
        self._adds = families.adds.labels(name)
        self._retries = families.retries.labels(name)
        self._queue_seconds = families.queue_seconds.labels(name)
        self._work_seconds = families.work_seconds.labels(name)
        self._results = {label: families.results.labels(name, label) for label in _RESULTS}
        self._errors = families.errors.labels(name)
        self._terminal = families.terminal.labels(name)
        self._panics = families.panics.labels(name)
        self._seconds = families.seconds.labels(name)
        families.workers.labels(name).set(workers)

    def observe(self, queue: QueueGauges) -> None:
        """Read the state of `queue` at each scrape."""
        self._families.depth.labels(self._name).set_function(lambda: queue.depth)
        self._families.unfinished.labels(self._name).set_function(queue.unfinished_seconds)
        self._families.longest.labels(self._name).set_function(queue.longest_running_seconds)
        self._families.stalled.labels(self._name).set_function(queue.stalled_seconds)
        self._families.active.labels(self._name).set_function(lambda: queue.in_flight)

    def added(self) -> None:
        """A key was accepted."""
        self._adds.inc()

    def taken(self, waited: float) -> None:
        """A key went to a worker, `waited` seconds after it was added."""
        self._queue_seconds.observe(waited)

    def finished(self, worked: float) -> None:
        """A worker is done with a key that it took `worked` seconds ago."""
        self._work_seconds.observe(worked)

    def retried(self) -> None:
        """A key was requeued with a delay."""
        self._retries.inc()

    def reconciled(self, outcome: str, seconds: float) -> None:
        """A pass ended; terminal errors and panics count as errors, and also separately."""
        self._seconds.observe(seconds)
        self._results[outcome if outcome in _RESULTS else "error"].inc()
        if outcome == "terminal":
            self._terminal.inc()
        if outcome == "panic":
            self._panics.inc()
        if outcome not in {"success", "requeue_after"}:
            self._errors.inc()


_RESULTS = ("success", "requeue_after", "error")


class _ControllerFamilies:
    """The metrics of all controllers and their work queues, labelled by the controller's name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, labelnames=["name"], registry=registry)
        gauge = partial(Gauge, labelnames=["name"], registry=registry)
        seconds = partial(Histogram, labelnames=["name"], buckets=_QUEUE_BUCKETS, registry=registry)
        self.depth = gauge("workqueue_depth", "Keys that wait for a worker.")
        self.adds = counter("workqueue_adds", "Keys added.")
        self.retries = counter("workqueue_retries", "Keys requeued with a delay.")
        self.unfinished = gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work in progress, of all keys."
        )
        self.longest = gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the oldest work in progress has taken.",
        )
        self.stalled = gauge(
            "etcd_operator_workqueue_stalled_seconds",
            "Seconds for which keys have waited while no worker has taken one.",
        )
        self.queue_seconds = seconds(
            "workqueue_queue_duration_seconds", "Seconds that keys waited for a worker."
        )
        self.work_seconds = seconds("workqueue_work_duration_seconds", "Seconds that workers spent on a key.")
        label, prefix = ["controller"], "controller_runtime_"
        counter = partial(Counter, labelnames=label, registry=registry)
        gauge = partial(Gauge, labelnames=label, registry=registry)
        self.results = Counter(
            prefix + "reconcile", "Passes by result.", [*label, "result"], registry=registry
        )
        self.errors = counter(prefix + "reconcile_errors", "Passes that failed.")
        self.terminal = counter(
            prefix + "terminal_reconcile_errors", "Passes that ended with a terminal error."
        )
        self.panics = counter(prefix + "reconcile_panics", "Passes that ended with an unexpected exception.")
        self.seconds = Histogram(
            prefix + "reconcile_time_seconds",
            "Seconds per pass.",
            label,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.active = gauge(prefix + "active_workers", "Workers in a pass.")
        self.workers = gauge(prefix + "max_concurrent_reconciles", "Number of workers.")
