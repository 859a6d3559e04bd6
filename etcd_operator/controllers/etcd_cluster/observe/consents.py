"""Asks whether others consent to an adoption (see `decide.adoption.consent`)."""

from dataclasses import dataclass
from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.adoption import consent
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.manifests.urls import host_of
from etcd_operator.errors import Forbidden, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.views import Written


@dataclass(frozen=True, kw_only=True)
class Consents:
    """The EtcdClusters of both groups, and the Services of all namespaces."""

    client: Client
    clusters: tuple[Informer[Any], ...]

    def missing(self, state: ClusterState) -> str:
        """Who has not consented to the adoption that is asked for or under way; empty if nobody has to.

        Raises the errors of `Client`, but for a missing right.
        """
        desired, adoption = state.desired, state.persisted.adoption
        if desired.adopt is None or (adoption is not None and adoption.finished):
            return ""
        return self._missing_of_cluster(state) or (
            "" if desired.persisted.is_bootstrapped else self._missing_of_services(state)
        )

    def _missing_of_cluster(self, state: ClusterState) -> str:
        answers = [reply for _, reply in state.endpoints if isinstance(reply, Answer)]
        ids = {state.persisted.cluster_id, *(answer.cluster_id for answer in answers)} - {""}
        hosts = consent.peer_hosts(state.endpoints)
        for informer in self.clusters:
            owner = consent.owner(state.desired, ids, hosts, informer.store.values())
            if owner is not None:
                return consent.of_another_cluster(state.desired, owner, str(informer.resource))
        return ""

    def _missing_of_services(self, state: ClusterState) -> str:
        desired = state.desired
        named = [host_of(f"http://{at}") for at, _ in state.endpoints]
        for service in consent.services(desired, (*named, *consent.peer_hosts(state.endpoints))):
            why = self._refusal(desired, service)
            if why:
                return why
        return ""

    def _refusal(self, desired: DesiredCluster, service: Key) -> str:
        refused = consent.of_another_namespace(desired, service)
        try:
            found = self.client.get(resources.SERVICES, service, Written)
        except NotFound:
            return refused
        except Forbidden as error:
            return f"{refused}; the operator cannot read that: {error}"
        return "" if consent.consents(desired, found.metadata) else refused
