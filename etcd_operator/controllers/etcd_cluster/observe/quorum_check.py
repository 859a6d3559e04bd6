"""Checks between two probes whether the clusters that had a quorum still have one.

A member that hangs closes no connection and changes no pod: nothing wakes its cluster, and the
status would report a quorum until the next probe. One read that only a quorum can answer, at one
voter in turn, costs a fraction of a probe. When it is not answered, the cluster is probed at once, and with
the whole deadline.

Promises: nothing is changed; a cluster without a quorum, or that is being probed, is left alone;
a silent voter is noticed after as many checks as there are voters; one that hangs occupies one
thread of a few for `ANSWER_SECONDS`, once. A cluster is asked again only after it has answered or
the read has timed out: so no more reads wait than there are clusters.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient, OnCall
from etcd_operator.keys import Key

QUORUM_CHECK_SECONDS = 2.0
"""Between two checks. With 0.5 s for the read and 2 s for the probe, a lost quorum is reported within 5 s."""

ANSWER_SECONDS = 0.5
"""For one read, as for the first request of a probe: only the probe that follows decides."""

log = structlog.get_logger()

THREADS = 16
"""Clusters that can lose their quorum at once without holding up the others.

A call that blocks costs half of one that calls back: gRPC begins a thread for each of those. Few of
these threads are ever begun while all answer.
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """A cluster that had a quorum at its last probe: its connections and voters (`host:port`)."""

    key: Key
    channels: Channels
    voters: tuple[str, ...]


class QuorumCheck:
    """`check` asks one voter of each cluster; `wake` is called for those that did not answer."""

    def __init__(
        self, settled: Callable[[], Iterable[Settled]], *, wake: Callable[[Key], None], on_call: OnCall
    ) -> None:
        self._settled = settled
        self._wake = wake
        self._on_call = on_call
        self._rounds = 0
        self._lock = threading.Lock()
        self._asking: set[Key] = set()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="quorum-check")

    def check(self) -> None:
        """Ask the next voter of each cluster, without waiting for the answers."""
        self._rounds += 1
        for cluster in self._settled():
            if self._begin(cluster.key):
                voter = cluster.voters[self._rounds % len(cluster.voters)]
                self._submit(cluster, voter)

    def stop(self) -> None:
        """Ask no more; what is under way ends within `ANSWER_SECONDS`."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, cluster: Settled, voter: str) -> None:
        try:
            self._pool.submit(self._ask, cluster, voter)
        except RuntimeError as error:  # no thread can be started: the next round tries again
            log.warning("quorum_not_checked", cluster=str(cluster.key), error=str(error))
            self._end(cluster.key)

    def _end(self, key: Key) -> None:
        with self._lock:
            self._asking.discard(key)

    def _begin(self, key: Key) -> bool:
        """Whether a cluster is not being asked already, or waiting for that."""
        with self._lock:
            if key in self._asking:
                return False
            self._asking.add(key)
            return True

    def _ask(self, cluster: Settled, voter: str) -> None:
        try:
            if not self._has_quorum(cluster, voter):
                self._wake(cluster.key)
        finally:
            self._end(cluster.key)

    def _has_quorum(self, cluster: Settled, voter: str) -> bool:
        client = EtcdClient(cluster.channels, voter, on_call=self._on_call)
        try:
            return client.has_quorum(deadline=ANSWER_SECONDS)
        except OperatorError:
            return False  # it has answered, with something that only a probe can judge
