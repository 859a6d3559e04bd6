"""What every measurement needs: the API server, the operator, a namespace that goes away."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from e2e.support.api import CLUSTERS, NAMESPACES, Api
from e2e.support.clusters import size_of
from e2e.support.members import Members
from e2e.support.operators import Operator
from e2e.support.testbed import Testbed
from e2e.support.waiting import wait_until
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource

Document = dict[str, Any]

ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")

LOOK_EVERY = 0.02
"""Seconds between two looks at members that are expected soon: the resolution of a measurement."""


@dataclass(frozen=True)
class Bed:
    """The test bed of one run."""

    testbed: Testbed
    api: Api
    operator: Operator

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of its own; its pods are gone at the end, so that they cost the next run nothing."""
        name = f"bench-{uuid4().hex[:8]}"
        self.api.make_namespace(name)
        # The controller-manager makes the account that pods need.
        wait_until(lambda: self.api.get(ACCOUNTS, name, "default"), 30, f"the account of {name}", every=0.05)
        try:
            yield name
        finally:
            self._empty(name)
            self.api.delete(NAMESPACES, "", name)

    def _empty(self, namespace: str) -> None:
        """End the pods of a namespace now: nobody needs the leader's graceful farewell.

        ReplicaSets before their pods: those of clusters kept by hand have no owner that takes them along.
        """
        for resource in (*CLUSTERS.values(), resources.REPLICA_SETS, resources.PODS):
            for found in self.api.all_of(resource, namespace):
                key = Key(namespace, found["metadata"]["name"])
                with suppress(NotFound):
                    self.api.client.delete(resource, key, grace_seconds=1)
        wait_until(lambda: not self.api.all_of(resources.PODS, namespace), 120, f"{namespace} is empty")

    def create(self, document: Document, namespace: str) -> None:
        """Create a cluster's resource."""
        self.api.create(CLUSTERS[document["apiVersion"]], namespace, document)

    def until_serving(self, document: Document, namespace: str, *, since: float, limit: float = 120) -> float:
        """Seconds from `since` (monotonic) until every member is a healthy voter by its own word."""
        size = size_of(document)
        with Members(deadline=1.0) as members:
            wait_until(
                lambda: members.all_serve(self.api.member_pods(document, namespace), size),
                limit,
                f"{size} voters of {namespace}/{document['metadata']['name']}",
                every=LOOK_EVERY,
            )
        return time.monotonic() - since
