"""How soon the operator acts on a new cluster."""

import time

from e2e.support.clusters import Document, size_of
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources


def seconds_until_made(space: Space, document: Document) -> float:
    """Create a cluster; the time until the operator has made all its objects."""
    began = time.monotonic()
    space.create(document)
    name = document["metadata"]["name"]
    names = [name] + [f"{name}-{number:04}" for number in range(size_of(document))]

    def is_made() -> bool:
        selector = f"etcd_cluster={document['metadata']['name']}"
        pods, services = (space.names(kind, selector) for kind in (resources.PODS, resources.SERVICES))
        return pods == names[1:] and services == names

    wait_until(is_made, f"the objects of {names[0]} are made")
    return time.monotonic() - began
