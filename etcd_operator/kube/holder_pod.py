"""Whether the process that holds a Lease has ended, as far as others can know: its pod and its node.

A pod that was deleted in the usual way stays in the API until its kubelet has reported that its containers
have ended. One that is deleted by force is gone at once, and its kubelet ends it within about a second, if it
runs and hears of it. So a pod that is gone is believed to have ended only on a node that works, and only some
time after it was first found gone (see `lease`, and decision 011).
"""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import Forbidden, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.lease_record import Lease
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.resources import LEASES, NODES, PODS
from etcd_operator.kube.views import Node, Written

T = TypeVar("T")

NODE_LEASES = "kube-node-lease"
"""The namespace in which each kubelet renews a Lease of its node's name."""

log = structlog.get_logger()


class HolderPods:
    """Asks the API server, live, about the pods of holders. For one thread; raises what the client raises."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._gone: dict[str, float] = {}
        self._leaving = ""
        self._has_rights = True

    def gone_since(self, pod: OwnPod) -> float | None:
        """When (by our monotonic clock) this pod was first found gone; None while it is there, or unknown.

        A UID never comes back, so what was gone once is not asked for again.
        """
        if pod.uid not in self._gone and self._has_rights and self._is_gone(pod):
            self._gone[pod.uid] = self._clock.monotonic()
        return self._gone.get(pod.uid) if self._has_rights else None

    def is_leaving(self, pod: OwnPod) -> bool:
        """Whether the last answer about this pod was that it is being deleted."""
        return self._leaving == pod.uid

    def node_works(self, name: str) -> bool:
        """Whether a node is ready, and its kubelet renewed its own Lease lately.

        The node's condition alone says so for 40 s after its kubelet was last heard. A kubelet renews four
        times within the duration of its Lease; wall clocks may differ by the rest of the half allowed here.
        """
        node = self._ask(lambda: self._client.get(NODES, Key("", name), Node))
        if node is None or not node.is_ready:
            return False
        lease = self._ask(lambda: self._client.get(LEASES, Key(NODE_LEASES, name), Lease))
        return lease is not None and _is_fresh(lease, self._clock.now())

    def _is_gone(self, pod: OwnPod) -> bool:
        try:
            found = self._client.get(PODS, Key(pod.namespace, pod.name), Written)
        except NotFound:
            return True
        except Forbidden as error:
            self._refused(error)
            return False
        self._leaving = pod.uid if found.metadata.deletion_timestamp else ""
        return found.metadata.uid != pod.uid

    def _ask(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except NotFound:
            return None
        except Forbidden as error:
            self._refused(error)
            return None

    def _refused(self, error: Forbidden) -> None:
        """Not to be asked again: an operator for one namespace has no right to read nodes."""
        self._has_rights = False
        log.info("waiting_for_the_lease_to_expire", reason=str(error))


def _is_fresh(lease: Lease, now: datetime) -> bool:
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    if not renewed or not seconds:
        return False
    return abs((now - datetime.fromisoformat(renewed)).total_seconds()) <= seconds / 2
