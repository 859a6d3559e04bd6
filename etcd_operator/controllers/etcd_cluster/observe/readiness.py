"""Writes gates and annotations of members' pods (see `decide.readiness`): one patch for each that differs.

Condition and annotations go together through `pods/status`: the kubelet fills etcd's
environment from the annotations at every start of the container, and takes the condition for
the readiness gate into account within a fraction of a second.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic

import structlog

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts
from etcd_operator.controllers.etcd_cluster.decide.readiness import ReadinessUpdate, readiness_updates, routes
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect, peer_url
from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.failures import IndependentWrites
from etcd_operator.controllers.shared.objects import Labels
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import NotFound
from etcd_operator.formats import timestamp
from etcd_operator.kube import resources
from etcd_operator.kube.client import PatchKind

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ReadinessWriter(Generic[Cluster]):
    """Writes to the pods of the clusters of one API group."""

    writes: Writes
    dialect: Dialect[Cluster]
    clock: Clock

    def write(self, state: ClusterState) -> None:
        """Write each update, whatever the result of the others.

        Raises the first failure at the end.
        """
        attempts = IndependentWrites(self.clock)
        updates = (partial(self._write, state, update) for update in readiness_updates(state))
        openings = (partial(self._write_route, state, pod, is_open=is_open) for pod, is_open in routes(state))
        for write in (*updates, *openings):
            attempts.make(write)
        attempts.end()

    def _write(self, state: ClusterState, update: ReadinessUpdate) -> None:
        # By strategic merge, because conditions of others stand in the same list.
        with suppress(NotFound):  # deleted meanwhile
            self.writes.of(state.desired.key).merge(
                resources.PODS,
                update.pod,
                self._patch(state, update),
                kind=PatchKind.STRATEGIC,
                subresource="status",
            )

    def _write_route(self, state: ClusterState, pod: PodFacts, *, is_open: bool) -> None:
        selector = self.dialect.client_selector(state.desired)
        labels: Labels = selector if is_open else {self.dialect.client_label(state.desired): None}
        objects = self.writes.of(state.desired.key)
        with suppress(NotFound):  # deleted meanwhile
            objects.label(resources.PODS, pod, labels)
            log.info("routed" if is_open else "kept_from_clients", pod=str(objects.key(pod.name)))

    def _patch(self, state: ClusterState, update: ReadinessUpdate) -> RawObject:
        names = self.dialect.pod_keys
        condition = {
            "type": names.serves,
            "status": "True" if update.serves else "False",
            "reason": update.reason,
            "message": update.message,
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        metadata: RawObject = {}
        if update.sets_existing_only:
            own_url = peer_url(self.dialect, state.desired, update.name, state.by_name[update.name].peers)
            metadata["annotations"] = names.existing_only(update.name, own_url)
        return {"metadata": metadata, "status": {"conditions": [condition]}}
