"""Creates the Services of a whole cluster, and keeps what those for peers select."""

from collections.abc import Callable
from contextlib import suppress

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Service, Written


def create_services(scope: Scope, cached: Callable[[Key], Service | None], *bodies: RawObject) -> None:
    """Create what is missing. The last of them, for clients, may select otherwise (`members.restoring`).

    One for peers selects the members of the etcd cluster on record, and those of no other.
    """
    *for_peers, for_clients = bodies
    for body in for_peers:
        found = cached(Key(scope.desired.namespace, body["metadata"]["name"]))
        if found is None or found.metadata.controller_uid != scope.desired.uid:
            scope.create(resources.SERVICES, body, "ServiceCreated")
            continue
        with suppress(NotFound):  # deleted meanwhile: the watch will report it
            change = {"op": "add", "path": "/spec/selector", "value": body["spec"]["selector"]}
            scope.objects.change(resources.SERVICES, found.metadata, change, kind=Written)
    scope.create(resources.SERVICES, for_clients, "ServiceCreated")
