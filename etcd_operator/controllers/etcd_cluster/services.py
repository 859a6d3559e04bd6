"""Creates the Services of a whole cluster, and keeps what those for peers select."""

from collections.abc import Callable

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.shared.objects import CHANGED, Overridden
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Service


def create_services(scope: Scope, cached: Callable[[Key], Service | None], *bodies: RawObject) -> None:
    """Create what is missing. The last of them, for clients, may select otherwise (`members.restoring`).

    One for peers selects the members of the etcd cluster on record, and those of no other. Raises Overridden
    if it does not keep that selector.
    """
    *for_peers, for_clients = bodies
    for body in for_peers:
        found = cached(Key(scope.desired.namespace, body["metadata"]["name"]))
        if found is None or found.metadata.controller_uid != scope.desired.uid:
            scope.create(resources.SERVICES, body, "ServiceCreated")
            continue
        wanted = body["spec"]["selector"]
        change = {"op": "add", "path": "/spec/selector", "value": wanted}
        try:
            stored = scope.objects.change(resources.SERVICES, found.metadata, change, kind=Service)
        except NotFound:
            continue  # deleted meanwhile: the watch will report it
        if stored.spec.selector != wanted:
            raise Overridden(f"Service {found.metadata.name} does not keep its selector: {CHANGED}")
    scope.create(resources.SERVICES, for_clients, "ServiceCreated")
