"""Keeps the NetworkPolicy of each cluster as desired, beside the plan (see `decide.network`)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.network import (
    PolicyFacts,
    PolicyStep,
    has_outside_peers,
    is_wanted,
    policy_step,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests.network_policy import isolates, network_policy
from etcd_operator.controllers.shared.caches import BY_NAMESPACE, Caches, Cluster, is_of_cluster, member_of
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.controllers.shared.objects import CHANGED, Overridden, RecordEvent
from etcd_operator.controllers.shared.own_peer import OperatorUnknown
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Forbidden, NotFound, TerminalError
from etcd_operator.kube.resources import NETWORK_POLICIES
from etcd_operator.kube.views import NetworkPolicy


class PolicyUnreadable(TerminalError):
    """A NetworkPolicy cannot be read, which may select members."""


@dataclass(frozen=True, kw_only=True)
class NetworkPolicies(Generic[Cluster]):
    """The NetworkPolicies of the clusters of one API group."""

    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    writes: Writes
    own_peer: Callable[[], RawObject]  # see `OwnPeer`

    def keep(self, state: ClusterState, report: RecordEvent) -> None:
        """Write or remove it, if it is not as desired. Nothing happens before all policies are known.

        Raises the errors of `Objects`, Overridden, OperatorUnknown and PolicyUnreadable.
        """
        policies, desired = self.caches.policies, state.desired
        error = policies.reflector.last_error
        if desired.network.enabled and isinstance(error, Forbidden):
            raise Forbidden(str(error)) from error
        if not policies.has_synced:
            return
        stored = policies.store.get(desired.key)
        own = stored if stored is not None and stored.metadata.controller_uid == desired.uid else None
        found = PolicyFacts(exists=own is not None, other=self._other(desired))
        body, unknown = self._body(state, found)
        found = replace(
            found,
            is_as_desired=own is not None and own.spec == body.get("spec"),
            names_operator=unknown is None,
        )
        step = policy_step(state, found)
        if step is PolicyStep.WRITE:
            self._write(desired, own, body, report)
        elif step is PolicyStep.REMOVE and own is not None:
            why = unknown or (found.other and f"{found.other} selects members") or "it is disabled"
            if self.writes.of(desired.key).remove(NETWORK_POLICIES, own.metadata):
                report("NetworkPolicyDeleted", f"deleted NetworkPolicy {desired.name}: {why}")
        if unknown is not None:
            raise unknown

    def _body(self, state: ClusterState, found: PolicyFacts) -> tuple[RawObject, OperatorUnknown | None]:
        """The one that there is to be; empty if there is to be none, or why it cannot be made."""
        if not is_wanted(state, found):
            return {}, None
        try:
            operator = self.own_peer()
        except OperatorUnknown as error:
            return {}, error
        return network_policy(state.desired, operator, has_outside_peers=has_outside_peers(state)), None

    def _write(
        self, desired: DesiredCluster, own: NetworkPolicy | None, body: RawObject, report: RecordEvent
    ) -> None:
        objects = self.writes.of(desired.key)
        if own is None:
            if objects.create(NETWORK_POLICIES, body):
                report("NetworkPolicyCreated", f"created NetworkPolicy {desired.name}")
            return
        change = {"op": "replace", "path": "/spec", "value": body["spec"]}
        with suppress(NotFound):  # deleted meanwhile: the watch will report it
            written = objects.change(NETWORK_POLICIES, own.metadata, change, kind=NetworkPolicy)
            if written.spec != body["spec"]:
                raise Overridden(f"NetworkPolicy {desired.name} is not stored as requested: {CHANGED}")

    def _other(self, desired: DesiredCluster) -> str:
        """The name of a NetworkPolicy of somebody else that selects members; empty for none."""
        policies, key = self.caches.policies.store, desired.key
        unread = [each for each in policies.unreadable if each.key.namespace == key.namespace]
        if unread:
            raise PolicyUnreadable(f"NetworkPolicy {unread[0].key.name} cannot be read: {unread[0].error}")
        pods = (pod for pod in self.caches.of_cluster(self.caches.pods, key))
        labels = [p.metadata.labels for p in pods if is_member_name(member_of(p), key.name)]
        labels = labels or [self._labels_of_first(desired)]
        others = (
            each.metadata.name
            for each in policies.by_index(BY_NAMESPACE, key.namespace)
            if not is_of_cluster(each.metadata) and any(isolates(each.spec, pod) for pod in labels)
        )
        return next(others, "")

    def _labels_of_first(self, desired: DesiredCluster) -> dict[str, str]:
        """The labels that the first member will have, before there is one."""
        name = desired.member_name(0)
        own = {**self.dialect.member_labels(desired, name), **self.dialect.client_selector(desired)}
        return {**desired.pod_template.metadata.labels, **own}
