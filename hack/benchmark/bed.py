"""What every measurement needs: the API server, the operator, a namespace that is emptied."""

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
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.testbed import Testbed
from e2e.support.waiting import wait_until
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource

Document = dict[str, Any]

ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")

POLL_SECONDS = 0.02
"""Seconds between two polls of members that are expected soon: the resolution of a measurement."""


@dataclass(frozen=True)
class Bed:
    """The test bed of one run."""

    testbed: Testbed
    api: Api
    operator: Operator

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of its own; its pods are deleted at the end, so that they cost the next run nothing."""
        name = f"bench-{uuid4().hex[:8]}"
        self.api.make_namespace(name)
        # The controller-manager makes the account that pods need.
        wait_until(
            lambda: self.api.get(ACCOUNTS, name, "default"), f"the account of {name}", within=30, every=0.05
        )
        try:
            yield name
        finally:
            self._empty(name)
            self.api.delete(NAMESPACES, "", name)

    def _empty(self, namespace: str) -> None:
        """End the pods of a namespace now: no leader needs to move its leadership.

        ReplicaSets before their pods: those of clusters kept by hand have no owner that is deleted.
        """
        for resource in (*CLUSTERS.values(), resources.REPLICA_SETS, resources.PODS):
            for found in self.api.all_of(resource, namespace):
                key = Key(namespace, found["metadata"]["name"])
                with suppress(NotFound):
                    self.api.client.delete(resource, key, grace_seconds=1)
        wait_until(
            lambda: not self.api.all_of(resources.PODS, namespace), f"{namespace} is empty", within=120
        )

    def space(self, namespace: str) -> Space:
        """The namespace as the system tests see it."""
        return Space(namespace, self.testbed, self.testbed.kubectl(namespace), self.api, self.operator)

    def until_settled(self, document: Document, namespace: str, *, limit: float) -> None:
        """Wait until the status reports that the last edit is done."""
        space = self.space(namespace)
        space.wait_observed(document, within=limit)
        space.wait_settled(document, within=limit, every=0.05)

    def until_available(self, document: Document, namespace: str, status: str) -> None:
        """Wait until the condition Available is `status`: "True" with a quorum, "False" without."""

        def is_reported() -> bool:
            found = condition(self.api.cluster(document, namespace), "Available")
            return bool(found["status"] == status)

        wait_until(is_reported, f"Available is {status}", within=60, every=POLL_SECONDS)

    def create(self, document: Document, namespace: str) -> None:
        """Create a cluster's resource."""
        self.api.create(CLUSTERS[document["apiVersion"]], namespace, document)

    def until_serving(self, document: Document, namespace: str, *, since: float, limit: float = 120) -> float:
        """Seconds from `since` (monotonic) until every member reports to be a healthy voter."""
        size = size_of(document)
        with Members(deadline=1.0) as members:
            wait_until(
                lambda: members.all_serve(self.api.member_pods(document, namespace), size),
                f"{size} voters of {namespace}/{document['metadata']['name']}",
                within=limit,
                every=POLL_SECONDS,
            )
        return time.monotonic() - since
