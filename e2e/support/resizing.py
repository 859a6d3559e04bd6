"""Changes of the size, and what must exist when it is reached."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, size_of
from e2e.support.intervals import Interval, longest_beyond
from e2e.support.members import Members
from e2e.support.secured import root
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from e2e.support.writer import Writer
from etcd_operator.api import improbable
from etcd_operator.kube import resources

RATE = 100.0
"""Puts per second through all members in turn."""

GAP_SECONDS = 2.0
"""The longest gap in writes that a change of the size may cause: the deadline of one put, and a second.

`hack/bench` measures on a quiet machine what it causes."""

NOTICEABLE_SECONDS = 0.25
"""Shorter gaps are the usual time between two writes on a busy machine."""


def kind_of(document: Document) -> str:
    """The resource as an argument of kubectl, with group and version."""
    is_coreos = document["apiVersion"] == "coreos.com/v1"
    return f"etcdclusters.{'v1.coreos.com' if is_coreos else 'v1alpha1.etcd.improbable.io'}"


def sized(document: Document, size: int) -> Document:
    """The document with another size."""
    field = "size" if "size" in document["spec"] else "replicas"
    return {**document, "spec": {**document["spec"], field: size}}


def scale(space: Space, document: Document, size: int) -> Document:
    """Request another size with `kubectl scale`; returns at once."""
    space.kubectl("scale", kind_of(document), document["metadata"]["name"], f"--replicas={size}")
    return sized(document, size)


def resize(space: Space, document: Document, size: int) -> Document:
    """Request another size and wait until all members serve and no other is left."""
    resized = scale(space, document, size)
    settle(space, resized)
    return resized


def settle(space: Space, document: Document) -> None:
    """Wait until the status reports that the last edit is done, and all members serve."""
    space.wait_observed(document)
    space.wait_settled(document)
    space.wait_serving(document)


def member_of(pod: Document) -> str:
    """The member that a pod runs."""
    labels = pod["metadata"]["labels"]
    return str(labels.get("etcd_node") or labels["etcd.improbable.io/peer-name"])


def members_of(space: Space, document: Document) -> list[str]:
    """The members' names by number."""
    names = [member_of(pod) for pod in space.pods(document)]
    return sorted(names, key=lambda name: int(name.rpartition("-")[2]))


def member_ids(space: Space, document: Document) -> dict[str, str]:
    """The IDs by name, in hex, as a member that follows a leader lists them, once one does."""

    credentials = root(space, document)

    def found() -> dict[str, str]:
        with Members(credentials=credentials) as members:
            for report in members.reports(space.pods(document)):
                if report.status.leader:
                    return {member.name: member.id for member in report.members.members}
        return {}

    return wait_until(found, "a member that follows a leader lists all members")


def leaders_pod(space: Space, document: Document) -> str:
    """The name of the pod whose member leads."""

    credentials = root(space, document)

    def found() -> str:
        with Members(credentials=credentials) as members:
            reports = members.reports(space.pods(document))
        return next((each.name for each in reports if each.status.leader == each.status.member_id), "")

    return wait_until(found, "a member leads")


def assert_claims_are_their_members(space: Space, document: Document) -> None:
    """One claim for each member, annotated with that member's ID: no claim of a removed member came back."""
    name = document["metadata"]["name"]
    ids = member_ids(space, document)
    assert len(ids) == size_of(document), ids

    def recorded() -> dict[str, str]:
        claims = space.api.all_of(
            resources.CLAIMS, space.namespace, f"etcd.improbable.io/cluster-name={name}"
        )
        return {
            claim["metadata"]["name"]: claim["metadata"]
            .get("annotations", {})
            .get(improbable.MEMBER_ID_ANNOTATION, "")
            for claim in claims
        }

    wait_until(lambda: recorded() == ids, lambda: f"claims {recorded()} are those of members {ids}")


@contextmanager
def written_to(space: Space, *documents: Document) -> Iterator[list[Writer]]:
    """Write to clusters meanwhile: no write is lost, and at the end each has as many members as its spec
    declares, and the cluster ID of before.
    """
    before = [assert_consistent(space, document) for document in documents]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Writer(lambda each=document: space.addresses(each), per_second=RATE))  # type: ignore[misc]
            for document in documents
        ]
        yield writers
    for document, writer, cluster_id in zip(documents, writers, before, strict=True):
        writer.verify()
        assert assert_consistent(space, space.stored(document)) == cluster_id


def gap_while(
    space: Space, document: Document, untouched: Document, change: Callable[[Writer], None]
) -> Callable[[], float]:
    """Makes the change at each call, while clients write to both clusters; then as `gap_beyond`."""
    rounds = itertools.count()

    def gap_of_a_round() -> float:
        prefix = f"round-{next(rounds)}"
        with (
            Writer(lambda: space.addresses(untouched), per_second=RATE, prefix=prefix) as control,
            Writer(lambda: space.addresses(document), per_second=RATE, prefix=prefix) as writer,
        ):
            change(writer)
        writer.verify()
        control.verify()
        return gap_beyond(writer, control)

    return gap_of_a_round


def gap_beyond(writer: Writer, control: Writer) -> float:
    """The longest time in which an untouched cluster acknowledged writes and the changed one did not.

    The control writes to a cluster of the same kind and size at the same time: what delays both is caused by
    the machine. It is no excuse at another time.
    """
    print(
        f"{writer.acknowledged} writes acknowledged, longest gap {writer.longest_gap:.2f} s, "
        f"beside an untouched cluster's {control.longest_gap:.2f} s"
    )
    own, others = (
        [Interval(begin, begin + length) for begin, length in each.gaps(NOTICEABLE_SECONDS)]
        for each in (writer, control)
    )
    return longest_beyond(own, others)
