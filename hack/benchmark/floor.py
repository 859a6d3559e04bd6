"""The floor: the same pods, claims and services as the operator makes, created directly by one client.

No operator, no custom resource, no ReplicaSet and no status: what Kubernetes and etcd need at least. The
objects come from the operator's own templates, so that both sides run the same pods.
"""

from typing import Any

import msgspec

from e2e.support.api import Api
from e2e.support.clusters import COREOS
from etcd_operator.api import coreos, improbable
from etcd_operator.build import persistent
from etcd_operator.core.actions import Founding
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.names import founder_names
from etcd_operator.dialects.base import Defaults
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from etcd_operator.settings import DEFAULT_ETCD_REPOSITORY, DEFAULT_ETCD_VERSION

Document = dict[str, Any]
Objects = list[tuple[Resource, Document]]

BIRTH = "floor"
"""Tells clusters apart, as etcd's initial-cluster-token does."""

DEFAULTS = Defaults(repository=DEFAULT_ETCD_REPOSITORY, version=DEFAULT_ETCD_VERSION)


def objects_of(document: Document, namespace: str) -> Objects:
    """What has to be created for a cluster, in the order that serves first."""
    made = (
        _ephemeral(document, namespace)
        if document["apiVersion"] == COREOS
        else _persistent(document, namespace)
    )
    for _, body in made:
        body["metadata"].pop("ownerReferences", None)
    return made


def create(api: Api, objects: Objects, namespace: str) -> None:
    """Create all, one after the other."""
    for resource, body in objects:
        api.create(resource, namespace, body)


def _ephemeral(document: Document, namespace: str) -> Objects:
    dialect = CoreosDialect(DEFAULTS)
    desired = dialect.desired(_stored(document, namespace, coreos.EtcdCluster))
    names = founder_names(desired)
    start = Founding(founders=names, token=BIRTH)
    services = [dialect.member_service(desired, name) for name in names] + [dialect.client_service(desired)]
    pods = [dialect.member(desired, name, start) for name in names]
    return [(resources.SERVICES, body) for body in services] + [(resources.PODS, body) for body in pods]


def _persistent(document: Document, namespace: str) -> Objects:
    dialect = ImprobableDialect(DEFAULTS)
    desired = dialect.desired(_stored(document, namespace, improbable.EtcdCluster))
    names = founder_names(desired)
    start = Founding(founders=names, token=BIRTH)
    peers = [_peer(persistent.peer(desired, name, start)) for name in names]
    claims = [(resources.CLAIMS, _claim(peer)) for peer in peers]
    pods = [(resources.PODS, _pod(desired, peer)) for peer in peers]
    return [(resources.SERVICES, dialect.client_service(desired)), *claims, *pods]


def _peer(document: Document) -> improbable.EtcdPeer:
    return msgspec.convert(document, improbable.EtcdPeer)


def _claim(peer: improbable.EtcdPeer) -> Document:
    """The peer's claim with the default that the CRD fills in."""
    claim: Document = persistent.claim(peer)
    return {**claim, "spec": {"accessModes": ["ReadWriteOnce"], **claim["spec"]}}


def _pod(desired: DesiredCluster, peer: improbable.EtcdPeer) -> Document:
    """The pod that the peer's ReplicaSet would make."""
    template: Document = persistent.replica_set(peer, desired.image)["spec"]["template"]
    metadata = {**template["metadata"], "name": peer.metadata.name, "namespace": desired.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _stored(document: Document, namespace: str, kind: Any) -> Any:
    metadata = {**document["metadata"], "namespace": namespace, "uid": "floor"}
    return msgspec.convert({**document, "metadata": metadata}, kind)
