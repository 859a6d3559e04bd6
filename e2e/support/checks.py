"""What must hold after every scenario."""

from e2e.support.audit import Window, tally, wait_quiet
from e2e.support.clusters import Document, size_of
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.waiting import hold_for
from etcd_operator.kube import resources


def assert_consistent(space: Space, document: Document) -> str:
    """One cluster of as many voters as declared, one per pod, with the same data in all; its ID in hex."""
    pods = space.pods(document)
    names = sorted(
        pod["metadata"]["labels"].get("etcd.improbable.io/peer-name", pod["metadata"]["name"]) for pod in pods
    )
    assert len(pods) == size_of(document), f"pods {names}, of {size_of(document)} members"
    with Members() as members:
        reports = members.reports(pods)
        assert len(reports) == len(pods), f"only {[each.name for each in reports]} answer of {names}"
        ids = {each.status.cluster_id for each in reports}
        assert len(ids) == 1, f"several cluster IDs: {ids}"
        for each in reports:
            listed = each.members.members
            assert sorted(member.name for member in listed) == names, f"{each.name} lists {listed}"
            assert not any(member.is_learner for member in listed), f"{each.name} lists a learner: {listed}"
        # A linearizable read first: every member has applied what was acknowledged.
        clients = [members.client(pod["status"]["podIP"]) for pod in pods]
        assert all(client.has_quorum(deadline=2.0) for client in clients), "a member has no quorum"
        revision = min(client.status().revision for client in clients)
        hashes = {(found.hash, found.compact_revision) for found in (c.hash_kv(revision) for c in clients)}
    assert len(hashes) == 1, f"members hold different data at revision {revision}: {hashes}"
    return f"{ids.pop():x}"


def assert_nothing_doubled(space: Space, document: Document, *, members: list[str] | None = None) -> None:
    """Exactly the objects that the documents name, whatever the operator went through.

    `members` are the names to expect, where members have other numbers than at first.
    """
    name, size = document["metadata"]["name"], size_of(document)
    if document["apiVersion"] == "coreos.com/v1":
        members = members or [f"{name}-{number:04}" for number in range(size)]
        assert space.names(resources.PODS, f"etcd_cluster={name}") == members
        assert space.names(resources.SERVICES, f"etcd_cluster={name}") == sorted([name, *members])
        return
    members = members or [f"{name}-{number}" for number in range(size)]
    selector = f"etcd.improbable.io/cluster-name={name}"
    assert space.names(resources.PEERS, selector) == members
    assert space.names(resources.REPLICA_SETS, selector) == members
    assert space.names(resources.CLAIMS, selector) == members
    assert space.names(resources.SERVICES, selector) == [name]
    assert len(space.pods(document)) == size


AT_REST_ATTEMPTS = 3
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
    raise AssertionError(f"did not hold for {seconds:g} s: no write at rest; {written}")


def _written_within(space: Space, seconds: float) -> str:
    """What the operator wrote to the namespace before `seconds` were over; empty for nothing."""
    rest = Window(space.testbed.audit_log, space.operator.user)
    try:
        hold_for(seconds, lambda: not rest.writes(namespace=space.namespace), "no write at rest", every=1.0)
    except AssertionError:
        return str(tally(rest.writes(namespace=space.namespace)))
    return ""
