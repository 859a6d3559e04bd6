"""The external members of an adoption that is not on record: the resource was created again on its claims.

Each claim of a member that has answered records the ID that etcd gave it. Such an ID is in no list of a
process that was started again without its data: etcd derives it from the moment at which the member was
added. So an answer counts if it is of the cluster on the claims, and lists one of these IDs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import AdoptedMember
from etcd_operator.controllers.etcd_cluster.decide.adoption.external_answers import Rejection
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply


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
        rejection = _rejection(desired, ours, at, answer)
        if rejection is not None:
            rejected[answer.member_id] = rejection
        else:
            found[answer.member_id] = _member(at, answer)
    known = msgspec.structs.replace(adoption, members=tuple(found.values()))
    return replace(desired, persisted=replace(desired.persisted, adoption=known)), rejected


def ids_on_claims(desired: DesiredCluster, objects: Iterable[Member]) -> Iterator[str]:
    """The IDs of members of ours that have been in the cluster on record."""
    for member in objects:
        claim = member.claim
        if claim is not None and claim.member_id and claim.cluster_id == desired.persisted.cluster_id:
            yield claim.member_id


def _rejection(desired: DesiredCluster, ours: frozenset[str], at: str, answer: Answer) -> Rejection | None:
    if answer.cluster_id != desired.persisted.cluster_id:
        return Rejection(why=f"a member of another cluster answers at {at}")
    if ours.isdisjoint(entry.id for entry in answer.members):
        return Rejection(why=f"the member at {at} lists no member of this resource")
    return None


def _member(at: str, answer: Answer) -> AdoptedMember:
    urls = (url for entry in answer.members if entry.id == answer.member_id for url in entry.peer_urls)
    return AdoptedMember(id=answer.member_id, endpoint=at, peer_urls=tuple(urls))
