"""Writes what the pods of members are told (see `core.readiness`): one patch per pod, only where it differs.

Condition and annotations go together through `pods/status`: the kubelet fills etcd's
environment from the annotations at every start of the container, and takes the condition for
the readiness gate into account within a fraction of a second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import structlog

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.core.readiness import ReadinessUpdate, readiness_updates
from etcd_operator.core.routes import Route, routes
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.base import Dialect
from etcd_operator.errors import NotFound, NotLeading
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.views import Pod, Written
from etcd_operator.reconcile.caches import Cluster
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import Attempts
from etcd_operator.render.urls import PEER_PORT, url

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ReadinessWriter(Generic[Cluster]):
    """Marks the pods of the clusters of one API group."""

    client: Client
    pods: Informer[Pod]
    dialect: Dialect[Cluster]
    expectations: Expectations
    clock: Clock
    may_act: Callable[[], bool]

    def write(self, state: ClusterState) -> None:
        """Write each update that is not as it should be, whatever becomes of the others.

        Raises the first failure at the end; NotLeading at once if this process may not lead.
        """
        attempts = Attempts(self.clock)
        for update in readiness_updates(state):
            if not self.may_act():
                raise NotLeading("leadership of the operator is in doubt: not acting")
            attempts.make(partial(self._write, state, update))
        for route in routes(state):
            if not self.may_act():
                raise NotLeading("leadership of the operator is in doubt: not acting")
            attempts.make(partial(self._write_route, state, route))
        attempts.end()

    def _write(self, state: ClusterState, update: ReadinessUpdate) -> None:
        desired = state.desired
        key = Key(desired.namespace, update.pod.name)
        # By strategic merge, because conditions of others stand in the same list.
        try:
            written = self.client.patch(
                resources.PODS,
                key,
                self._patch(state, update),
                Written,
                kind=PatchKind.STRATEGIC,
                subresource="status",
            )
        except NotFound:
            return  # deleted meanwhile
        cluster = Key(desired.namespace, desired.name)
        self.expectations.wrote(cluster, self.pods, key, written.metadata.resource_version)

    def _write_route(self, state: ClusterState, route: Route) -> None:
        """Let the Service for clients select a pod, or not."""
        desired = state.desired
        selector = self.dialect.client_service(desired)["spec"]["selector"]
        labels = selector if route.is_open else {self.dialect.route_label: None}
        patch: RawObject = {"metadata": {"uid": route.pod.uid, "labels": labels}}
        key = Key(desired.namespace, route.pod.name)
        try:
            written = self.client.patch(resources.PODS, key, patch, Written, kind=PatchKind.MERGE)
        except NotFound:
            return  # deleted meanwhile
        log.warning("routed" if route.is_open else "kept_from_clients", pod=str(key))
        cluster = Key(desired.namespace, desired.name)
        self.expectations.wrote(cluster, self.pods, key, written.metadata.resource_version)

    def _patch(self, state: ClusterState, update: ReadinessUpdate) -> RawObject:
        names = self.dialect.pod_keys
        condition = {
            "type": names.serves,
            "status": "True" if update.serves else "False",
            "reason": update.reason,
            "message": update.message,
            "lastTransitionTime": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        metadata: dict[str, Any] = {"uid": update.pod.uid}
        if update.sets_existing_only:
            host = self.dialect.member_host(state.desired, update.name)
            metadata["annotations"] = names.existing_only(update.name, url(host, PEER_PORT))
        return {"metadata": metadata, "status": {"conditions": [condition]}}
