"""The composition root: what is made of what, what starts and stops in which order.

start   status page; caches, Lease and definitions at the same time; then (as leader) the controllers of each
        group whose caches are complete. Whatever may wait for the API server runs in a thread of its own, so
        that the main thread handles signals at any time.
stop    controllers, and only then the Lease: nobody else may lead while a worker of ours can still write.
        Then events, probers and caches, for which no successor waits. After a failure, all within seconds.
"""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import structlog

from etcd_operator import decoding
from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.install import Installer
from etcd_operator.controllers.shared.own_image import OwnImage
from etcd_operator.controllers.shared.own_peer import OwnPeer
from etcd_operator.controllers.shared.storage_class import StorageClass
from etcd_operator.controllers.wiring import build_groups, new_backoff
from etcd_operator.engine.controller import Controller, Reconcile
from etcd_operator.engine.threads import Loop
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.auth import load
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder
from etcd_operator.kube.lease import Elector
from etcd_operator.kube.lease_lock import Candidate
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.transport import Timeouts
from etcd_operator.kube.zone import own_zone
from etcd_operator.observability import files
from etcd_operator.observability.logs import reconcile_context
from etcd_operator.observability.metrics import Metrics
from etcd_operator.observability.server import HealthCheck, StatusServer
from etcd_operator.process.health import Reachability, group_is_ready, health_checks
from etcd_operator.process.leadership import Leadership, LeaderThreads, only_as_leader
from etcd_operator.process.signals import end_in, set_on_signal
from etcd_operator.settings import Settings

LEASE_NAME = "etcd-operator"
STOP_SECONDS = 20.0
"""For the whole stop; less than a pod's default grace period of 30 s."""

FAILED_SECONDS = 2.5
"""The same after a failure: a broken process must not linger."""

LAST_SECONDS = 1.0
"""Extra time for steps without a deadline of their own; then the process exits, whatever still runs."""

FILES_SECONDS = 30.0
"""Between two checks of the open files against their limit."""

EVENT_TIMEOUTS = Timeouts(connect=2.0, read=5.0, total=5.0)

POOL_SIZE = 40
"""Connections kept to the API server: watches + workers + events + Lease, and some more."""

SIGNAL_SECONDS = 1.0
"""A signal is noticed within so long."""

log = structlog.get_logger()


class Operator:
    """One process of the operator, from `run` to its exit code. `pod` is the pod that it has claimed."""

    def __init__(self, settings: Settings, pod: OwnPod | None = None) -> None:
        decoding.build_all()  # before there is a second thread
        self._settings = settings
        self._pod = pod
        self._clock = Clock()
        self._metrics = Metrics()
        self._ended = threading.Event()
        self._failure = ""
        transport = load(settings.kubeconfig, pool_size=POOL_SIZE)
        self._client = Client(transport, on_request=self._metrics.on_request)
        self._identity = f"{socket.gethostname()}_{uuid4().hex[:8]}"
        # An Event that hangs must not delay those of other clusters for long.
        events = Client(transport, timeouts=EVENT_TIMEOUTS, on_request=self._metrics.on_request)
        self._recorder = Recorder(events, instance=self._identity, clock=self._clock)
        self._metrics.observe_events(lambda: self._recorder.dropped)
        self._transport = transport
        self._leadership = (
            Leadership(self._new_elector, on_first=self._start_leading, on_change=self._metrics.leader)
            if settings.leader_elect
            else None
        )
        source = CacheSource(client=self._client, namespace=settings.namespace, on_crash=self._on_crash)
        self._groups = build_groups(self._wiring(), source)
        self._defined = threading.Event()
        self._leader_threads = LeaderThreads(
            self._groups,
            defined=self._defined,
            ended=self._ended,
            may_act=self._may_act,
            on_crash=self._on_crash,
        )
        self._start = Loop("start", self._begin, self._on_crash)
        self._installer = Installer(self._client, wait=self._ended.wait)
        self._storage_class = StorageClass(self._client, settings.pv_provisioner, wait=self._ended.wait)
        self._storage = Loop("storage-class", self._storage_class.create, self._on_crash)
        self._api_server = Reachability(self._client, self._ended)
        self._files = files.LimitCheck()
        self._page = StatusServer(
            settings.listen,
            metrics=self._metrics.render,
            health=health_checks(self._groups, lambda: self._failure),
            ready=self._ready_checks(),
        )

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, or until something breaks; 0 only after a clean stop."""
        set_on_signal(self._ended)
        try:
            self._work_until_ended()
        except Exception as error:
            log.critical("thread_crashed", thread="main", exc_info=error)
            self._fail(str(error) or type(error).__name__)
        seconds = FAILED_SECONDS if self._failure else STOP_SECONDS
        # Whatever hangs: a process that no longer works must not stay alive.
        last = end_in(seconds + LAST_SECONDS, code=3)
        code = self._stop(time.monotonic() + seconds)
        last.cancel()
        return code

    def on_uncaught(self, uncaught: threading.ExceptHookArgs) -> None:
        """End the process after an uncaught exception in a thread: a part of it is missing now.

        Threads without a name of their own serve one request of the status page or belong to gRPC.
        """
        name = uncaught.thread.name if uncaught.thread is not None else ""
        log.critical("thread_crashed", thread=name, exc_info=uncaught.exc_value)
        if not name.startswith("Thread-"):
            self._fail(f"thread {name} crashed: {uncaught.exc_value}")

    def _work_until_ended(self) -> None:
        files.raise_limit()
        self._page.start()
        self._recorder.start()
        self._start.start()
        compared = -math.inf
        # With a timeout: a signal handler runs only in this thread, and nothing wakes it for a signal that
        # arrived just before it began to wait, or that was delivered to another thread.
        while not self._ended.wait(SIGNAL_SECONDS):
            if time.monotonic() >= compared + FILES_SECONDS:
                compared = time.monotonic()
                self._files.check()

    def _begin(self) -> None:
        """Start everything that needs the API server, once it responds; then retry missing definitions."""
        try:
            if not self._api_server.wait():
                return
        except OperatorError as error:
            self._fail(str(error))
            return
        for informer in self._informers():
            informer.start()
        if self._leadership is not None:
            self._leadership.start()
        else:
            self._metrics.leader(True)  # noqa: FBT003 -- the metric's one value
            self._start_leading()
        if self._settings.install_crds:
            self._installer.try_all()  # while the caches fill and the Lease is acquired
        self._defined.set()
        if self._settings.pv_provisioner:
            self._storage.start()
        namespace = self._settings.namespace or "all"
        log.info(
            "started", identity=self._identity, namespace=namespace, open_files_limit=files.limits().soft
        )
        if self._settings.install_crds:
            self._installer.try_until_done()

    def _stop(self, deadline: float) -> int:
        """Stop in order, by `deadline`; log the threads that do not end in time. The exit code."""
        if self._failure:
            log.error("stopping", reason=self._failure)
        else:
            log.info("stopping", reason="signal")

        def left(most: float) -> float:
            return max(0.0, min(most, deadline - time.monotonic()))

        late = [loop.name for loop in (self._start, self._storage) if not loop.join(left(2.0))]
        writers = self._leader_threads.stop(left)
        if self._leadership is not None:
            late += [] if self._leadership.stop(left(2.0)) else ["lease"]
            if not writers:
                self._leadership.release()
        late += [] if self._recorder.stop(left(2.0)) else ["events"]
        for group in self._groups:
            for close in group.closing:
                close()
        late += [informer.name for informer in self._informers() if not informer.stop(left(2.0))]
        late += [] if self._page.stop(left(2.0)) else ["status-server"]
        code = 3 if writers else 1 if self._failure else 0
        if writers or late:
            log.error("threads_left", names=writers + late)
            os._exit(code)  # a thread that hangs must not keep a process that no longer leads
        log.info("stopped")
        return code

    def _informers(self) -> Iterable[Any]:
        """Each once: groups share some."""
        found = (each for group in self._groups for each in (*group.informers, *group.optional))
        return dict.fromkeys(found)

    def _start_leading(self) -> None:
        self._leader_threads.start()

    def _may_act(self) -> bool:
        return self._leadership is None or self._leadership.is_leader()

    def _leads_for(self, seconds: float) -> bool:
        return self._leadership is None or self._leadership.leads_for(seconds)

    def _on_crash(self, name: str, error: BaseException) -> None:
        self._fail(f"thread {name} crashed: {error}")

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._ended.set()

    def _ready_checks(self) -> dict[str, HealthCheck]:
        checks: dict[str, HealthCheck] = {"api-server": self._api_server.check}
        if self._settings.install_crds:
            checks["definitions"] = self._installer.check
        return checks | {group.name: group_is_ready(group) for group in self._groups}

    def _wiring(self) -> Wiring:
        settings = self._settings
        return Wiring(
            client=self._client,
            clock=self._clock,
            recorder=self._recorder,
            defaults=Defaults(repository=settings.etcd_repository, version=settings.default_etcd_version),
            new_controller=self._new_controller,
            on_call=self._metrics.etcd_call,
            probe_deadline=settings.probe_deadline,
            resync=settings.resync,
            on_upgrade=self._metrics.upgraded,
            on_leaderless=self._metrics.leaderless,
            on_metrics=self._metrics.objects.set,
            on_restore_end=self._metrics.restore_ended,
            own_image=OwnImage(client=self._client, pod=self._pod, given=settings.backup_image),
            own_namespace=settings.own_namespace,
            zone=own_zone(),
            own_peer=OwnPeer(client=self._client, pod=self._pod),
            pv_provisioner=settings.pv_provisioner,
            epoch=lambda: 0 if self._leadership is None else self._leadership.epoch(),
            may_act=self._may_act,
            leads_for=self._leads_for,
        )

    def _new_controller(self, name: str, reconcile: Reconcile) -> Controller:
        workers = self._settings.workers
        return Controller(
            name,
            only_as_leader(reconcile, self._may_act),
            workers=workers,
            clock=self._clock,
            backoff=new_backoff(self._clock),
            on_crash=self._on_crash,
            around=reconcile_context(name, subject=name.rpartition("-")[2]),
            metrics=self._metrics.controller(name, workers=workers),
        )

    def _new_elector(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> Elector:
        timeouts = Timeouts(connect=2.0, read=4.0, total=4.0)
        return Elector(
            Client(self._transport, timeouts=timeouts, on_request=self._metrics.on_request),
            Key(self._settings.own_namespace, LEASE_NAME),
            Candidate(self._identity, self._pod),
            clock=self._clock,
            on_started_leading=on_started,
            on_stopped_leading=on_stopped,
        )
