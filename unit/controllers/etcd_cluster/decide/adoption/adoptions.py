"""States of adoptions: `offered(3)` before one begins, `adopting(ours=1)` during one."""

from dataclasses import replace
from typing import Any

from etcd_operator.api.persisted import AdoptedMember, Adoption
from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt, DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    answer,
    entry,
    not_bootstrapped,
    persistent,
    serving,
)


def theirs(count: int) -> tuple[EtcdMember, ...]:
    """External members as etcd lists them; their IDs are `id-old-0` and so on."""
    return tuple(
        EtcdMember(id=f"id-old-{n}", name=f"old-{n}", peer_urls=(f"http://old-{n}.there:2380",))
        for n in range(count)
    )


def endpoint(number: int) -> str:
    return f"old-{number}.there:2379"


def offered(count: int = 3, mode: Any = "Complete", cluster: DesiredCluster | None = None) -> ClusterState:
    """A resource that names a healthy cluster of `count` members."""
    listed = theirs(count)
    asked = Adopt(endpoints=tuple(endpoint(n) for n in range(count)), mode=mode)
    replies = tuple((endpoint(n), answer(f"old-{n}", listed)) for n in range(count))
    state = not_bootstrapped(replace(cluster or persistent(), adopt=asked))
    return replace(state, endpoints=replies, has_quorum=True)


def answering(state: ClusterState, number: int, **changes: Any) -> ClusterState:
    """`state` with another answer of one external member; `reply` replaces it."""
    at = endpoint(number)
    other = changes.pop("reply", None)
    replies = (
        (where, other or replace(reply, **changes) if where == at and isinstance(reply, Answer) else reply)
        for where, reply in state.endpoints
    )
    return replace(state, endpoints=tuple(replies))


def adopting(
    *, ours: int = 3, count: int = 3, mode: Any = "Complete", removed: int = 0, **changes: Any
) -> ClusterState:
    """An adoption with `ours` voters of ours beside `count` external ones, an external one in the lead.

    removed: how many external members were removed before.
    """
    begun = offered(count + removed, mode).desired
    cluster = changes.pop("desired", begun)
    recorded = tuple(
        AdoptedMember(id=each.id, endpoint=endpoint(n), peer_urls=each.peer_urls, removed=n >= count)
        for n, each in enumerate(theirs(count + removed))
    )
    names = tuple(cluster.member_name(number) for number in range(ours))
    listed = (*theirs(count), *(entry(name) for name in names))
    persisted = PersistedState(cluster_id=CLUSTER_ID, adoption=Adoption(members=recorded), next_ordinal=ours)
    desired = replace(cluster, persisted=persisted)
    state = ClusterState(
        desired=desired,
        members=tuple(serving(desired, name, listed) for name in names),
        external=tuple(external(n, listed) for n in range(count)),
        has_client_service=True,
        budget=2,
        has_quorum=True,
        age=3600.0,
    )
    return replace(state, **changes)


def external(number: int, listed: tuple[EtcdMember, ...], **changes: Any) -> Member:
    """One of them, healthy."""
    each = theirs(number + 1)[number]
    made = Member(
        name=f"{each.name} ({each.id})",
        entry=each,
        answer=answer(each.name, listed),
        endpoint=endpoint(number),
    )
    return replace(made, **changes)


def silent_external(state: ClusterState, number: int) -> ClusterState:
    """`state` with one external member that does not answer."""
    others = tuple(
        replace(member, answer=None) if member.id == f"id-old-{number}" else member
        for member in state.external
    )
    return replace(state, external=others)


def led_by(state: ClusterState, leader: str) -> ClusterState:
    """`state` with another leader, by ID."""

    def following(member: Member) -> Member:
        return (
            member if member.answer is None else replace(member, answer=replace(member.answer, leader=leader))
        )

    return replace(
        state,
        members=tuple(map(following, state.members)),
        external=tuple(map(following, state.external)),
    )
