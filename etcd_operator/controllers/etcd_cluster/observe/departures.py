"""Whether clients are still sent to the member that is to be stopped next (see `decide.facts.departing`).

Its label decides which endpoints the Service for clients has. That they have changed is read live, and only
while a member departs; that the nodes follow is not observable, so it is waited for.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.facts.departing import departing
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import EndpointSlice

PROXY_SECONDS = 1.2
"""Until nodes no longer send connections to an endpoint that was removed.

kube-proxy changes its rules once a second at most (`minSyncPeriod`), and takes some 0.1 s for that.
"""

SERVICE_LABEL = "kubernetes.io/service-name"
"""Of an EndpointSlice: the Service whose endpoints it has."""


@dataclass(eq=False, kw_only=True)
class Departures:
    """Since when the endpoints of each cluster have lacked the pod of its departing member; in memory."""

    client: Client
    clock: Clock
    _left: dict[Key, tuple[str, float]] = field(default_factory=dict)

    def is_reached(self, key: Key, state: ClusterState) -> bool:
        """Whether a client may still be sent to the departing member. False without one."""
        member = departing(state)
        pod = member.pod if member is not None else None
        if pod is None or pod.is_routed:
            self.forget(key)
            return pod is not None
        now = self.clock.monotonic()
        uid, since = self._left.get(key, ("", now))
        if uid != pod.uid:
            if self._is_listed(key, pod.uid):
                return True
            self._left[key] = (pod.uid, since := now)
        return now - since < PROXY_SECONDS

    def forget(self, key: Key) -> None:
        """No member departs."""
        self._left.pop(key, None)

    def _is_listed(self, key: Key, uid: str) -> bool:
        """Without the right to read endpoints they count as changed: a restart must not wait for ever."""
        with suppress(OperatorError):
            selector = f"{SERVICE_LABEL}={key.name}"
            found = self.client.list(
                resources.ENDPOINT_SLICES, EndpointSlice, namespace=key.namespace, label_selector=selector
            )
            return any(uid in each.pods for each in found.items)
        return False
