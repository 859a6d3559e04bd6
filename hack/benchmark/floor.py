"""The floor: the same pods, claims and services as the operator makes, created directly by one client.

No operator, no custom resource, no ReplicaSet and no status: what Kubernetes and etcd need at least. The
objects come from the operator's own templates, so that both sides run the same pods.
"""

from typing import Any

import msgspec

from e2e.support.api import Api
from e2e.support.clusters import COREOS
from etcd_operator.api import coreos, improbable
from etcd_operator.api.shared_keys import PEER_LABEL
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping, Start
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, persistent, persistent_pod
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.decoding import read
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from etcd_operator.settings import DEFAULT_ETCD_REPOSITORY, DEFAULT_ETCD_VERSION

Document = dict[str, Any]
Objects = list[tuple[Resource, Document]]

BOOTSTRAP = "floor"
"""Distinguishes clusters, as etcd's initial-cluster-token does."""

DEFAULTS = Defaults(repository=DEFAULT_ETCD_REPOSITORY, version=DEFAULT_ETCD_VERSION)


def objects_of(document: Document, namespace: str) -> Objects:
    """What has to be created for a cluster, in the order that serves first."""
    return Blueprint(document, namespace).objects()


def create(api: Api, objects: Objects, namespace: str) -> None:
    """Create all, one after the other."""
    for resource, body in objects:
        api.create(resource, namespace, body)


class Blueprint:
    """The objects of one cluster, by name of member; with_replica_sets: persistent pods that come back.

    is_restored: persistent members find their data where restores put it.
    """

    def __init__(self, document: Document, namespace: str, *, is_restored: bool = False) -> None:
        self._is_restored = is_restored
        self._is_persistent = document["apiVersion"] != COREOS
        self._dialect: Dialect[Any] = (
            ImprobableDialect(DEFAULTS) if self._is_persistent else CoreosDialect(DEFAULTS)
        )
        kind = improbable.EtcdCluster if self._is_persistent else coreos.EtcdCluster
        self._desired = self._dialect.desired(_stored(document, namespace, kind))
        self.initial_members = self._desired.initial_member_names

    def name_of(self, number: int) -> str:
        """The name of a member by its number."""
        return self._desired.member_name(number)

    def host_of(self, name: str) -> str:
        """The host of its peer URL."""
        return self._dialect.member_host(self._desired, name)

    def member_of(self, pod: Document) -> str:
        """The member that a pod runs."""
        metadata = pod["metadata"]
        name: str = metadata["labels"].get(PEER_LABEL, metadata["name"])
        return name

    def objects(self, *, with_replica_sets: bool = False) -> Objects:
        """Everything, in the order that serves first: what names, then what stores, then what runs."""
        start = Bootstrapping(members=self.initial_members, token=BOOTSTRAP)
        made = [(resources.SERVICES, _free(body)) for body in self._dialect.services(self._desired)]
        for name in self.initial_members:
            made += self.member(name, start, with_replica_sets=with_replica_sets)
        order = [resources.SERVICES, resources.CLAIMS, resources.PODS, resources.REPLICA_SETS]
        return sorted(made, key=lambda each: order.index(each[0]))

    def member(self, name: str, start: Start, *, with_replica_sets: bool = False) -> Objects:
        """The objects of one member."""
        if not self._is_persistent:
            service = ephemeral.member_service(self._desired, name)
            pod = self._dialect.member(self._desired, name, start)
            return [(resources.SERVICES, _free(service)), (resources.PODS, _free(pod))]
        peer = msgspec.convert(persistent.peer(self._desired, name, start), improbable.EtcdPeer)
        replica_set = _free(
            persistent_pod.replica_set(peer, self._desired.image, is_restored=self._is_restored)
        )
        claim = (resources.CLAIMS, _claim(peer))
        if with_replica_sets:
            return [claim, (resources.REPLICA_SETS, replica_set)]
        template = replica_set["spec"]["template"]
        metadata = {**template["metadata"], "name": name, "namespace": self._desired.namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        return [claim, (resources.PODS, pod)]


def _free(body: Document) -> Document:
    """Without the owner, which does not exist here."""
    body["metadata"].pop("ownerReferences", None)
    return body


def _claim(peer: improbable.EtcdPeer) -> Document:
    """The peer's claim with the default that the CRD fills in."""
    claim: Document = persistent.claim(peer)
    return {**claim, "spec": {"accessModes": ["ReadWriteOnce"], **claim["spec"]}}


def _stored(document: Document, namespace: str, kind: Any) -> Any:
    metadata = {**document["metadata"], "namespace": namespace, "uid": "floor"}
    return read(msgspec.json.encode({**document, "metadata": metadata}), kind)
