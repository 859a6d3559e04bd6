"""The clusters of a run, each with the clients and watches that observe it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from e2e.support.api import Api
from e2e.support.checks import assert_consistent
from e2e.support.clusters import COREOS, Document, ephemeral, persistent
from e2e.support.space import Space
from e2e.support.waiting import NotInTimeError, wait_until
from e2e.support.writer import QuorumWatch, Writer
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from localcluster.console import RefusalError

from .health import Watch
from .options import Plan
from .verdict import duration

CONTROL = "control"
"""The cluster that never gets a fault: what its clients notice as well is caused by the machine."""

ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
SERVE_SECONDS = 120.0


@dataclass(slots=True, kw_only=True)
class Subject:
    """One cluster with those that observe it; `uids` are those of its pods at the beginning."""

    watch: Watch
    uids: frozenset[str]
    writer: Writer
    quorum: QuorumWatch
    cluster_id: str
    was_beyond_quorum: bool = False

    @property
    def document(self) -> Document:
        """Its resource, as it was created."""
        return self.watch.document

    @property
    def name(self) -> str:
        """Its name."""
        return self.watch.name

    @property
    def is_ephemeral(self) -> bool:
        """Whether its data live with its pods."""
        return bool(self.document["apiVersion"] == COREOS)


def documents(plan: Plan, storage_class: str) -> list[Document]:
    """The clusters, of both kinds in turn (without a storage class the default one), and the control."""
    made = []
    for number in range(1, plan.clusters + 1):
        name = f"chaos-{number}"
        document = ephemeral(name, plan.size) if number % 2 else persistent(name, plan.size)
        if not number % 2:
            template = document["spec"]["storage"]["volumeClaimTemplate"]
            template["storageClassName"] = storage_class
            if not storage_class:
                del template["storageClassName"]
        made.append(document)
    return [*made, ephemeral(CONTROL, plan.size)]


def make_namespace(api: Api, name: str) -> None:
    """A namespace in which pods can be created."""
    api.make_namespace(name)
    # The controller-manager makes the account that pods need.
    wait_until(lambda: api.get(ACCOUNTS, name, "default"), f"the account of {name}", within=SERVE_SECONDS)


def create(space: Space, made: Sequence[Document]) -> list[str]:
    """Create the clusters and wait until they serve; their IDs."""
    for document in made:
        space.create(document)
    try:
        for document in made:
            space.wait_serving(document, within=SERVE_SECONDS)
            space.wait_settled(document)
    except NotInTimeError as error:
        pods = space.names(resources.PODS)
        raise RefusalError(
            f"no cluster to test: {error}; pods: {pods} (can pods be dialled from here?)"
        ) from error
    return [assert_consistent(space, document) for document in made]


def open_subjects(
    stack: ExitStack, space: Space, made: Sequence[Document], ids: Sequence[str], per_second: float
) -> list[Subject]:
    """Begin to watch and to write to clusters that serve; `stack` ends it."""
    subjects = []
    for document, cluster_id in zip(made, ids, strict=True):

        def addresses(document: Document = document) -> list[str]:
            return space.addresses(document)

        subjects.append(
            Subject(
                watch=stack.enter_context(Watch(space, document)),
                uids=uids_of(space, document),
                writer=stack.enter_context(Writer(addresses, per_second=per_second, prefix="chaos")),
                quorum=stack.enter_context(QuorumWatch(addresses)),
                cluster_id=cluster_id,
            )
        )
    return subjects


def uids_of(space: Space, document: Document) -> frozenset[str]:
    """Which pods a cluster has."""
    return frozenset(str(pod["metadata"]["uid"]) for pod in space.pods(document))


def longest_gap(subject: Subject, began: float) -> str:
    """`2.1 s at 00:12:07`."""
    begin, length = max(subject.writer.gaps(0.0), key=lambda gap: gap[1], default=(began, 0.0))
    return f"{length:.1f} s at {duration(max(0.0, begin - began))}"
