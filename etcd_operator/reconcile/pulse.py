"""Feels between two looks whether the clusters that had a quorum still have one.

A member that hangs closes no connection and changes no pod: nothing wakes its cluster, and the
status would go on telling of a quorum until the next look. One read that only a quorum can answer,
at one voter in turn, costs a fraction of a look. When it is not answered, the cluster is looked at.

Promises: no thread waits for a member; nothing is changed; a cluster without a quorum, or that is
being looked at, is left alone; a voter that is silent is noticed after as many beats as there are.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from etcd_operator.errors import Forbidden, OperatorError
from etcd_operator.etcd import methods
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall, quorum_read
from etcd_operator.etcd.errors import translate
from etcd_operator.keys import Key

BEAT_SECONDS = 2.0
"""Between two beats. With the answer and the look that follows, a lost quorum is told within 5 s."""

ANSWER_SECONDS = 1.0
"""For one read: as long as an election, or a busy machine, may take without being a loss."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A cluster that had a quorum at its last look: its connections and voters (`host:port`)."""

    key: Key
    channels: Channels
    voters: tuple[str, ...]


class Pulse:
    """`beat` asks one voter of each cluster; `wake` is told those that did not answer."""

    def __init__(
        self, settled: Callable[[], Iterable[Settled]], *, wake: Callable[[Key], None], on_call: OnCall
    ) -> None:
        self._settled = settled
        self._wake = wake
        self._on_call = on_call
        self._beats = 0

    def beat(self) -> None:
        """Ask the next voter of each cluster; the answers come later, on gRPC's threads."""
        self._beats += 1
        for cluster in self._settled():
            self._ask(cluster, cluster.voters[self._beats % len(cluster.voters)])

    def _ask(self, cluster: Settled, voter: str) -> None:
        try:
            call = cluster.channels.connection(voter).unary(methods.RANGE)
            future = call.future(quorum_read(), timeout=ANSWER_SECONDS)
        except (OperatorError, ValueError):
            return  # closed meanwhile: the cluster has been deleted, or the operator ends
        future.add_done_callback(partial(self._answered, cluster.key, voter, time.monotonic()))

    def _answered(self, key: Key, voter: str, sent: float, future: Any) -> None:
        code = future.code()
        self._on_call(methods.RANGE.name, code.name, time.monotonic() - sent)
        if code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
            return
        error = translate(code, future.details() or "", call=f"Range at {voter}", is_write=False)
        if not isinstance(error, Forbidden):  # etcd confirms a read before it looks at rights
            self._wake(key)
