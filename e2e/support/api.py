"""Cheap reads of the API server for waiting loops; acts go through kubectl, as users act."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from e2e.support.testbed import Testbed
from etcd_operator.errors import AlreadyExists, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.auth import load
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.transport import Timeouts

Object = dict[str, Any]

NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
CLUSTERS = {
    "coreos.com/v1": resources.COREOS_CLUSTERS,
    "etcd.improbable.io/v1alpha1": resources.IMPROBABLE_CLUSTERS,
}
LABELS = {"coreos.com/v1": "etcd_cluster", "etcd.improbable.io/v1alpha1": "etcd.improbable.io/cluster-name"}
NOT_MEMBERS = "app notin (etcd_backup_tool)"

HANDSHAKE_SECONDS = 30.0
"""A machine that stalls does not make the API server absent. One that is away refuses at once."""


@dataclass(frozen=True)
class Api:
    """Plain JSON in, plain JSON out."""

    testbed: Testbed

    @cached_property
    def client(self) -> Client:
        """Our own client, which has tests of its own."""
        return Client(load(str(self.testbed.kubeconfig)), timeouts=Timeouts(connect=HANDSHAKE_SECONDS))

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """One object; None if there is none."""
        try:
            return self.client.get(resource, Key(namespace, name), dict)
        except NotFound:
            return None

    def all_of(self, resource: Resource, namespace: str = "", selector: str = "") -> list[Object]:
        """A collection, by name."""
        found = self.client.list(resource, dict, namespace=namespace, label_selector=selector).items
        return sorted(found, key=lambda each: str(each["metadata"]["name"]))

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Write a new object."""
        return self.client.create(resource, namespace, body, dict)

    def make_namespace(self, name: str) -> None:
        """A namespace that may be there already."""
        try:
            self.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExists:
            return

    def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Request a deletion; an object that does not exist is fine."""
        try:
            self.client.delete(resource, Key(namespace, name))
        except NotFound:
            return

    def cluster(self, document: Object, namespace: str) -> Object | None:
        """The stored resource of a cluster's document."""
        return self.get(CLUSTERS[document["apiVersion"]], namespace, document["metadata"]["name"])

    def member_pods(self, document: Object, namespace: str) -> list[Object]:
        """The pods of a cluster that are not being deleted."""
        selector = f"{LABELS[document['apiVersion']]}={document['metadata']['name']},{NOT_MEMBERS}"
        pods = self.all_of(resources.PODS, namespace, selector)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
