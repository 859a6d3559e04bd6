"""One test's own namespace, and the steps that tests are made of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.support.api import Api
from e2e.support.clusters import Document, size_of
from e2e.support.members import Members
from e2e.support.operators import Operator
from e2e.support.secured import root
from e2e.support.status import condition, is_available, is_observed, is_settled
from e2e.support.testbed import Testbed
from e2e.support.waiting import INTERVAL, LONG, answered, wait_until
from etcd_operator.kube import resources
from localcluster.kubectl import Kubectl


@dataclass(frozen=True)
class Space:
    """A namespace, kubectl in it, and the operator that serves it."""

    namespace: str
    testbed: Testbed
    kubectl: Kubectl
    api: Api
    operator: Operator

    def require_local(self, why: str) -> None:
        """Skip the test on a Kubernetes that is not ours. why: what it does to it."""
        if not self.testbed.is_local:
            pytest.skip(why)

    @contextmanager
    def frozen(self, *pods: str) -> Iterator[None]:
        """Stop the processes of these pods, and let them go on at the end. For a local Kubernetes."""
        names = [f"{self.namespace}/{pod}" for pod in pods]
        for name in names:
            self.testbed.fault("freeze", name)
        try:
            yield
        finally:
            for name in names:
                self.testbed.fault("thaw", name)

    def create(self, document: Document) -> Document:
        """Create a cluster's resource."""
        self.kubectl.create(document)
        return document

    def created(self, document: Document) -> Document:
        """Create a cluster and wait until all its members serve."""
        self.create(document)
        self.wait_serving(document)
        return document

    def settled(self, document: Document) -> Document:
        """Create a cluster and wait until its status reports so, too."""
        self.created(document)
        self.wait_settled(document)
        return document

    def wait_for(
        self,
        document: Document,
        reached: Callable[[], object],
        what: str,
        *,
        within: float = LONG,
        every: float = INTERVAL,
    ) -> None:
        """Wait until something is reached; `what` and the status of the cluster explain a failure."""
        wait_until(reached, lambda: f"{what}: {self.status(document)}", within=within, every=every)

    def wait_serving(self, document: Document, *, within: float = LONG) -> None:
        """Wait until every member is a healthy voter as etcd reports."""
        with Members(credentials=root(self, document)) as members:
            self.wait_for(
                document,
                lambda: members.all_serve(self.pods(document), size_of(document)),
                f"{document['metadata']['name']} serves",
                within=within,
                every=0.25,
            )

    def wait_observed(self, document: Document, *, within: float = LONG) -> None:
        """Wait until the status is about the last edit."""
        self.wait_for(
            document, lambda: is_observed(self.stored(document)), "the edit is observed", within=within
        )

    def wait_settled(self, document: Document, *, within: float = LONG, every: float = 0.25) -> None:
        """Wait until the status reports that all is as declared and nothing is under way."""
        self.wait_for(
            document,
            lambda: is_settled(self.stored(document)),
            "the status is settled",
            within=within,
            every=every,
        )

    def wait_condition(self, document: Document, kind: str, *reasons: str) -> Document:
        """Wait until a condition is True for one of `reasons` (none: for any); the condition."""

        def found() -> Document | None:
            now = condition(self.stored(document), kind)
            is_expected = now["reason"] in (reasons or (now["reason"],))
            return now if now["status"] == "True" and is_expected else None

        what = f"{kind} because of {' or '.join(reasons)}"
        return wait_until(found, lambda: f"{what}: {self.status(document)}", every=0.25) or {}

    def stored(self, document: Document) -> Document:
        """The resource as it is stored now; empty if it does not exist."""
        return self.api.cluster(document, self.namespace) or {}

    def status(self, document: Document) -> Document:
        """Its status."""
        found: Document = self.stored(document).get("status", {})
        return found

    def pods(self, document: Document) -> list[Document]:
        """The members' pods that are not being deleted."""
        return self.api.member_pods(document, self.namespace)

    def addresses(self, document: Document) -> list[str]:
        """The pods' addresses."""
        return [pod["status"]["podIP"] for pod in self.pods(document) if pod.get("status", {}).get("podIP")]

    def put(self, document: Document, key: bytes, value: bytes) -> int:
        """Write a key through a member; the revision of the write."""
        with Members(deadline=LONG) as members:
            client = members.client(self.addresses(document)[0])
            return answered(lambda: client.put(key, value), f"{key!r} is written")

    def values(self, document: Document, key: bytes) -> list[bytes | None]:
        """What a key has, read through each member."""
        with Members() as members:
            clients = [members.client(address) for address in self.addresses(document)]
            read = (answered(lambda client=client: client.get(key), "a read") for client in clients)  # type: ignore[misc]
            return [found.value if found is not None else None for found in read]

    def names(self, resource: Any, selector: str = "") -> list[str]:
        """The names of what there is of a resource, by name."""
        return [each["metadata"]["name"] for each in self.api.all_of(resource, self.namespace, selector)]

    def events(self, name: str) -> set[tuple[str, str]]:
        """Type ("Normal", "Warning") and reason of every Event about the objects of that name."""
        found = self.api.all_of(resources.EVENTS, self.namespace)
        return {(each["type"], each["reason"]) for each in found if each["involvedObject"]["name"] == name}

    def wait_available(self, document: Document) -> None:
        """Wait until the status reports a quorum: a member may be silent for a moment."""
        self.wait_for(document, lambda: is_available(self.stored(document)), "the status reports a quorum")

    def wait_events(self, name: str, *expected: tuple[str, str], within: float = LONG) -> None:
        """Wait until all these Events, as type and reason, are stored: they are written after the fact."""
        wait_until(
            lambda: set(expected) <= self.events(name),
            lambda: f"Events {set(expected) - self.events(name)}, beside {self.events(name)}",
            within=within,
        )

    def wait_no_pods(self) -> None:
        """Wait until no pod of the namespace is left; etcd may take its grace period."""
        wait_until(lambda: not self.names(resources.PODS), "no pod is left")
