"""Whether the process that holds a Lease has ended, as far as others can know: its pod and its node.

A pod that is deleted in the usual way remains in the API until its kubelet has reported that its containers
have ended. One that is deleted by force disappears at once; its kubelet, if it runs and is notified, ends it
within about a second. So a missing pod counts as ended only if its node is alive, and only some time after it
was first found missing (see `lease`, and decision 011).
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
    """Reads the pods of holders, uncached. For one thread; raises what the client raises."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._missing: dict[str, float] = {}
        self._terminating = ""
        self._has_rights = True

    def missing_since(self, pod: OwnPod) -> float | None:
        """When (by our monotonic clock) this pod was first found missing; None while it exists or is unknown.

        A UID never comes back, so a pod that was missing once is not read again.
        """
        if pod.uid not in self._missing and self._has_rights and self._is_missing(pod):
            self._missing[pod.uid] = self._clock.monotonic()
        return self._missing.get(pod.uid) if self._has_rights else None

    def is_terminating(self, pod: OwnPod) -> bool:
        """Whether this pod was being deleted when it was last read."""
        return self._terminating == pod.uid

    def is_node_alive(self, name: str) -> bool:
        """Whether a node is ready and its kubelet has renewed its own Lease recently.

        The node's condition remains `True` for 40 s after the last report of its kubelet. A kubelet renews
        four times within the duration of its Lease; half of that duration is allowed here, and what a renewal
        does not need of it is for wall clocks that differ.
        """
        node = self._read(lambda: self._client.get(NODES, Key("", name), Node))
        if node is None or not node.is_ready:
            return False
        lease = self._read(lambda: self._client.get(LEASES, Key(NODE_LEASES, name), Lease))
        return lease is not None and _is_fresh(lease, self._clock.now())

    def _is_missing(self, pod: OwnPod) -> bool:
        try:
            found = self._client.get(PODS, Key(pod.namespace, pod.name), Written)
        except NotFound:
            return True
        except Forbidden as error:
            self._refused(error)
            return False
        self._terminating = pod.uid if found.metadata.deletion_timestamp else ""
        return found.metadata.uid != pod.uid

    def _read(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except NotFound:
            return None
        except Forbidden as error:
            self._refused(error)
            return None

    def _refused(self, error: Forbidden) -> None:
        """Do not try again: an operator for one namespace has no right to read nodes."""
        self._has_rights = False
        log.info("lease_is_not_acquired_early", reason=str(error))


def _is_fresh(lease: Lease, now: datetime) -> bool:
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    if not renewed or not seconds:
        return False
    return abs((now - datetime.fromisoformat(renewed)).total_seconds()) <= seconds / 2
