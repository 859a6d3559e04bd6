"""What must hold after every scenario."""

from collections.abc import Sequence
from typing import Any

from e2e.support.audit import Window, tally, wait_quiet
from e2e.support.clusters import Document, size_of
from e2e.support.members import MemberReport, Members
from e2e.support.secured import root
from e2e.support.space import Space
from e2e.support.waiting import answered, hold_for, wait_until
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource

ANSWER_SECONDS = 10.0
"""For one answer of a member; it is asked again. What it answers is judged at once."""


def assert_consistent(space: Space, document: Document) -> str:
    """One cluster of as many voters as declared, one per pod, with the same data in all; its ID in hex."""
    pods = space.pods(document)
    names = sorted(
        pod["metadata"]["labels"].get("etcd.improbable.io/peer-name", pod["metadata"]["name"]) for pod in pods
    )
    assert len(pods) == size_of(document), f"pods {names}, of {size_of(document)} members"
    with Members(deadline=ANSWER_SECONDS, credentials=root(space, document)) as members:
        clients = [members.client(pod["status"]["podIP"]) for pod in pods]
        # A linearizable read first: every member has applied what was acknowledged.
        wait_until(lambda: _have_quorum(clients), f"each of {names} has a quorum")
        reports = _all_reports(members, pods)
        ids = {each.status.cluster_id for each in reports}
        assert len(ids) == 1, f"several cluster IDs: {ids}"
        for each in reports:
            listed = each.members.members
            assert sorted(member.name for member in listed) == names, f"{each.name} lists {listed}"
            assert not any(member.is_learner for member in listed), f"{each.name} lists a learner: {listed}"
        _assert_same_data(clients, min(each.status.revision for each in reports))
    return ids.pop()


def _have_quorum(clients: Sequence[EtcdClient]) -> bool:
    return all(client.has_quorum(deadline=ANSWER_SECONDS) for client in clients)


def _all_reports(members: Members, pods: Sequence[dict[str, Any]]) -> list[MemberReport]:
    """What all members report of themselves, once all answer."""
    reports: list[MemberReport] = []

    def all_answer() -> bool:
        reports[:] = members.reports(pods)
        return len(reports) == len(pods)

    wait_until(all_answer, lambda: f"only {[each.name for each in reports]} answer of {len(pods)}")
    return reports


def _assert_same_data(clients: Sequence[EtcdClient], revision: int) -> None:
    hashes = set()
    for client in clients:
        found = answered(
            lambda client=client: client.hash_kv(revision),  # type: ignore[misc]
            f"{client.endpoint} has a hash",
        )
        hashes.add((found.hash, found.compact_revision))
    assert len(hashes) == 1, f"members hold different data at revision {revision}: {hashes}"


def assert_nothing_doubled(space: Space, document: Document, *, members: list[str] | None = None) -> None:
    """Exactly the objects that the documents name, whatever the operator went through.

    `members` are the names to expect, where members have other numbers than at first.
    """
    name, size = document["metadata"]["name"], size_of(document)
    if document["apiVersion"] == "coreos.com/v1":
        members = members or [f"{name}-{number:04}" for number in range(size)]
        selector = f"etcd_cluster={name}"
        _assert_names(space, resources.PODS, selector, members)
        _assert_names(space, resources.SERVICES, selector, sorted([name, *members]))
        return
    members = members or [f"{name}-{number}" for number in range(size)]
    selector = f"etcd.improbable.io/cluster-name={name}"
    for kind in (resources.PEERS, resources.REPLICA_SETS, resources.CLAIMS):
        _assert_names(space, kind, selector, members)
    _assert_names(space, resources.SERVICES, selector, [name, f"{name}-peer"])
    pods = [pod["metadata"]["name"] for pod in space.pods(document)]
    assert len(pods) == size, f"{pods}, of {size} members"


def _assert_names(space: Space, kind: Resource, selector: str, expected: list[str]) -> None:
    found = space.names(kind, selector)
    assert found == expected, f"{kind.plural} {found}, expected {expected}"


AT_REST_ATTEMPTS = 5
"""On a busy machine a member may be silent for a moment, which is rightly written; a writer never rests."""


def assert_at_rest(space: Space, seconds: float) -> None:
    """Wait until the operator stops writing to the namespace, then see it write nothing for `seconds`.

    A write in that time is printed, and the wait begins again, `AT_REST_ATTEMPTS` times altogether.
    """
    if not space.testbed.is_local:
        return
    for attempt in range(1, AT_REST_ATTEMPTS + 1):
        wait_quiet(Window(space.testbed.audit_log, space.operator.user), namespace=space.namespace)
        written = _written_within(space, seconds)
        if not written:
            return
        print(f"written at rest, attempt {attempt}: {written}")
    raise AssertionError(f"written at rest, {AT_REST_ATTEMPTS} times within {seconds:g} s; at last {written}")


def _written_within(space: Space, seconds: float) -> str:
    """What the operator wrote to the namespace before `seconds` were over; empty for nothing."""
    rest = Window(space.testbed.audit_log, space.operator.user)
    try:
        hold_for(seconds, lambda: not rest.writes(namespace=space.namespace), "no write at rest", every=1.0)
    except AssertionError:
        return str(tally(rest.writes(namespace=space.namespace)))
    return ""
