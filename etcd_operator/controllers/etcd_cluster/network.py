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
    is_held,
    policy_step,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests.network_policy import (
    admits_all_peers,
    isolates,
    network_policy,
)
from etcd_operator.controllers.shared.caches import BY_NAMESPACE, Caches, Cluster, member_of
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.controllers.shared.objects import CHANGED, Overridden, RecordEvent, Seen
from etcd_operator.controllers.shared.own_peer import OperatorUnknown
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Forbidden, NotFound, RetryableError, TerminalError
from etcd_operator.kube.resources import NETWORK_POLICIES
from etcd_operator.kube.views import NetworkPolicy, Written


class PolicyUnreadable(TerminalError):
    """A NetworkPolicy cannot be read, which may select members."""


class PoliciesUnknown(RetryableError):
    """The NetworkPolicies of the namespace could not be listed yet."""


class OtherPolicy(TerminalError):
    """Another NetworkPolicy selects members beside the one of the operator."""


@dataclass(frozen=True, kw_only=True)
class NetworkPolicies(Generic[Cluster]):
    """The NetworkPolicies of the clusters of one API group."""

    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    writes: Writes
    own_peer: Callable[[], RawObject]  # see `OwnPeer`

    def keep(self, state: ClusterState, report: RecordEvent) -> None:
        """Write or remove it, if it is not as desired. Nothing is written before all policies are known.

        Raises the errors of `Objects`, Overridden, OperatorUnknown, and the errors of this module.
        """
        if is_held(state):
            return
        if not state.desired.network.enabled:
            self._switch_off(state, report)
        elif self._are_known():
            self._keep(state, report)

    def _are_known(self) -> bool:
        policies = self.caches.policies
        error = policies.reflector.last_error
        if isinstance(error, Forbidden):
            raise Forbidden(str(error)) from error
        if not policies.has_synced and error is not None:
            raise PoliciesUnknown(f"the NetworkPolicies are not known: {error}") from error
        return policies.has_synced

    def _keep(self, state: ClusterState, report: RecordEvent) -> None:
        desired = state.desired
        stored = self.caches.policies.store.get(desired.key)
        own = stored if stored is not None and stored.metadata.controller_uid == desired.uid else None
        found = PolicyFacts(exists=own is not None, other=self._other(desired))
        if own is None:
            self._require_readable(desired)
        body, unknown = self._body(state, own)
        found = replace(
            found,
            is_as_desired=own is not None and own.spec == body.get("spec"),
            names_operator=unknown is None,
        )
        step = policy_step(state, found)
        if step is PolicyStep.WRITE:
            self._write(desired, own, body, report)
        elif step is PolicyStep.REMOVE and own is not None:
            self._remove(desired, own.metadata, str(unknown), report)
        if unknown is not None:
            raise unknown
        if found.other and own is not None:
            raise OtherPolicy(
                f"NetworkPolicy {found.other} selects members, too, and policies add up: remove it, or set "
                f"spec.networkPolicy.enabled: false if it alone is to decide"
            )

    def _body(
        self, state: ClusterState, own: NetworkPolicy | None
    ) -> tuple[RawObject, OperatorUnknown | None]:
        """The desired NetworkPolicy, or why it cannot be made."""
        try:
            operator = self.own_peer()
        except OperatorUnknown as error:
            return {}, error
        is_open = has_outside_peers(state)
        if is_open is None:
            is_open = own is None or admits_all_peers(own.spec)
        return network_policy(state.desired, operator, has_outside_peers=is_open), None

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

    def _switch_off(self, state: ClusterState, report: RecordEvent) -> None:
        """Remove it as it is read live: that must be possible also where the cache cannot read it."""
        desired, policies = state.desired, self.caches.policies
        is_known = policies.has_synced and policies.reflector.last_error is None
        is_readable = policies.store.unreadable_at(desired.key) is None
        if is_known and is_readable and policies.store.get(desired.key) is None:
            return
        found = self.writes.of(desired.key).find(NETWORK_POLICIES, desired.name, Written)
        exists = found is not None and found.metadata.controller_uid == desired.uid
        step = policy_step(state, PolicyFacts(exists=exists))
        if found is not None and step is PolicyStep.REMOVE:
            self._remove(desired, found.metadata, "it is disabled", report)

    def _remove(self, desired: DesiredCluster, seen: Seen, why: str, report: RecordEvent) -> None:
        if self.writes.of(desired.key).remove(NETWORK_POLICIES, seen):
            report("NetworkPolicyDeleted", f"deleted NetworkPolicy {desired.name}: {why}")

    def _require_readable(self, desired: DesiredCluster) -> None:
        found = self.caches.policies.store.unreadable
        unread = [each for each in found if each.key.namespace == desired.namespace]
        if unread:
            raise PolicyUnreadable(f"NetworkPolicy {unread[0].key.name} cannot be read: {unread[0].error}")

    def _other(self, desired: DesiredCluster) -> str:
        """The name of a NetworkPolicy of somebody else that selects members; empty for none."""
        key = desired.key
        pods = (pod for pod in self.caches.of_cluster(self.caches.pods, key))
        labels = [p.metadata.labels for p in pods if is_member_name(member_of(p), key.name)]
        labels = labels or [self._labels_of_first(desired)]
        others = (
            each.metadata.name
            for each in self.caches.policies.store.by_index(BY_NAMESPACE, key.namespace)
            if not each.is_of_cluster and any(isolates(each.spec, pod) for pod in labels)
        )
        return next(others, "")

    def _labels_of_first(self, desired: DesiredCluster) -> dict[str, str]:
        """The labels that the first member will have, before there is one."""
        name = desired.member_name(0)
        own = {**self.dialect.member_labels(desired, name), **self.dialect.client_selector(desired)}
        return {**desired.pod_template.metadata.labels, **own}
