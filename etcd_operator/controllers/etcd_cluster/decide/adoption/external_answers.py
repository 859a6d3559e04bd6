"""The external members of a cluster that is adopted: where they are probed, and which answers are theirs.

Before the adoption is recorded, all that is known are the endpoints in the spec. From then on each member is
known by its ID, and an answer counts only if that member gave it, of the cluster on record.

IDs do not suffice: etcd derives them from its bootstrap flags. A member that is started again with them and
without its data has the same ones, forms a cluster without ours, and proves a quorum by itself. To believe it
would be to delete our copies of the data, perhaps the last ones (I6).

A resource that was created again on its claims has no record of its adoption. But each claim of a member that
has answered records the ID that etcd gave it. Such an ID is in no list of a process that was started again
without its data: etcd derives it from the moment at which the member was added. So an answer counts if it is
of the cluster on the claims, and lists one of these IDs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from etcd_operator.api.persisted import AdoptedMember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply
from etcd_operator.etcd.values import EtcdMember


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why an answer does not count, as status reports it."""

    why: str
    may_be_right: bool = False  # it would be right if somebody else had removed all of our members from etcd


def endpoints(desired: DesiredCluster) -> tuple[str, ...]:
    """The endpoints (`host:port`) of external members to be probed now.

    None of a member whose removal has begun: a process that is started again there may have lost its data
    and form a cluster of its own, under the same IDs.
    """
    adoption = desired.persisted.adoption
    if adoption is not None and not desired.persisted.is_adoption_unclear:
        return tuple(m.endpoint for m in adoption.members if not (adoption.finished or m.removed))
    is_next = adoption is not None or not desired.persisted.is_bootstrapped
    return desired.adopt.endpoints if desired.adopt is not None and is_next else ()


def recorded(desired: DesiredCluster) -> tuple[AdoptedMember, ...]:
    """The external members of the adoption that is under way."""
    adoption = desired.persisted.adoption
    return adoption.members if adoption is not None and not adoption.finished else ()


def have_joined(desired: DesiredCluster, objects: Iterable[Member]) -> bool:
    """Whether the adopted cluster has to list one of ours: objects are made once it does, and not before.

    Until the removal of the last one begins (`Adoption.last_member_removed`). A claim that was not made for
    this resource proves nothing.
    """
    adoption = desired.persisted.adoption
    return (
        adoption is not None
        and not adoption.last_member_removed
        and any(_is_made(desired, m) for m in objects)
    )


def own_answers(
    desired: DesiredCluster, replies: Mapping[str, Reply], *, with_ours: bool
) -> tuple[dict[str, Answer], dict[str, Rejection]]:
    """By member ID, the answers of the recorded external members, and why other answers do not count.

    replies: by endpoint. with_ours: lists without a member of ours do not count (see `have_joined`).
    """
    found: dict[str, Answer] = {}
    rejected: dict[str, Rejection] = {}
    for member in recorded(desired):
        reply = replies.get(member.endpoint)
        if not isinstance(reply, Answer):
            continue
        rejection = _rejection(desired, member, reply, with_ours=with_ours)
        if rejection is not None:
            rejected[member.id] = rejection
        else:
            found[member.id] = reply
    return found, rejected


def external(
    desired: DesiredCluster, listed: Iterable[EtcdMember], answers: Mapping[str, Answer]
) -> tuple[Member, ...]:
    """The external members that etcd lists, each with its answer. Names are unique by the ID in them."""
    at = {member.id: member.endpoint for member in recorded(desired)}
    return tuple(
        Member(
            name=f"{entry.name} ({entry.id})",
            entry=entry,
            answer=answers.get(entry.id),
            endpoint=at[entry.id],
        )
        for entry in listed
        if entry.id in at
    )


def _is_made(desired: DesiredCluster, member: Member) -> bool:
    if member.pod is not None or member.peer is not None or member.has_service:
        return True
    claim = member.claim
    if claim is None:
        return False
    return claim.cluster_uid == desired.uid or claim.cluster_id == desired.persisted.cluster_id


def _rejection(
    desired: DesiredCluster, member: AdoptedMember, answer: Answer, *, with_ours: bool
) -> Rejection | None:
    """Why this is not the answer of that member, with all of its data; None if it is."""
    if (answer.cluster_id, answer.member_id) != (desired.persisted.cluster_id, member.id):
        return Rejection(why=f"another process answers at {member.endpoint}")
    adoption = desired.persisted.adoption
    if adoption is not None and answer.committed < adoption.committed:
        return Rejection(why=f"the member at {member.endpoint} lags behind, or restarted without its data")
    theirs = {each.id for each in recorded(desired)}
    if with_ours and all(entry.id in theirs for entry in answer.members):
        why = (
            f"the member at {member.endpoint} lists no member of this resource: it restarted without its "
            "data, or the members of this resource were removed from etcd"
        )
        return Rejection(why=why, may_be_right=True)
    return None


def with_external(
    desired: DesiredCluster, objects: Iterable[Member], replies: Mapping[str, Reply]
) -> tuple[DesiredCluster, dict[str, Rejection]]:
    """The cluster as if the external members that answer were on record, and why other answers do not count.

    As it is, if the adoption is on record, or if there is none. replies: by endpoint.
    """
    adoption = desired.persisted.adoption
    if adoption is None or not desired.persisted.is_adoption_unclear:
        return desired, {}
    ours = frozenset(ids_on_claims(desired, objects))
    found: dict[str, AdoptedMember] = {}
    rejected: dict[str, Rejection] = {}
    for at, answer in replies.items():
        if not isinstance(answer, Answer):
            continue
        rejection = _rejection_unknown(desired, ours, at, answer)
        if rejection is not None:
            rejected[answer.member_id] = rejection
        else:
            found[answer.member_id] = _found_again(at, answer)
    known = msgspec.structs.replace(adoption, members=tuple(found.values()))
    return replace(desired, persisted=replace(desired.persisted, adoption=known)), rejected


def ids_on_claims(desired: DesiredCluster, objects: Iterable[Member]) -> Iterator[str]:
    """The IDs of members of ours that have been in the cluster on record."""
    for member in objects:
        claim = member.claim
        if claim is not None and claim.member_id and claim.cluster_id == desired.persisted.cluster_id:
            yield claim.member_id


def _rejection_unknown(
    desired: DesiredCluster, ours: frozenset[str], at: str, answer: Answer
) -> Rejection | None:
    if answer.cluster_id != desired.persisted.cluster_id:
        return Rejection(why=f"a member of another cluster answers at {at}")
    if ours.isdisjoint(entry.id for entry in answer.members):
        return Rejection(why=f"the member at {at} lists no member of this resource")
    return None


def _found_again(at: str, answer: Answer) -> AdoptedMember:
    urls = (url for entry in answer.members if entry.id == answer.member_id for url in entry.peer_urls)
    return AdoptedMember(id=answer.member_id, endpoint=at, peer_urls=tuple(urls))
