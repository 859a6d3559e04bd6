"""The external members of a cluster that is adopted: where they are probed, and which answers are theirs.

Before the adoption is recorded, all that is known are the endpoints in the spec. From then on each member is
known by its ID, and an answer counts only if that member gave it, of the cluster on record.
"""

from collections.abc import Iterable, Mapping

from etcd_operator.api.persisted import AdoptedMember
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member
from etcd_operator.core.replies import Answer, EtcdMember, Reply


def endpoints(desired: DesiredCluster) -> tuple[str, ...]:
    """The endpoints (`host:port`) of external members to be probed now.

    None of a member whose removal has begun: a process that is started again there may have lost its data
    and form a cluster of its own, under the same IDs.
    """
    adoption = desired.persisted.adoption
    if adoption is not None:
        return tuple(m.endpoint for m in adoption.members if not (adoption.finished or m.removed))
    is_next = desired.adopt is not None and not desired.persisted.is_bootstrapped
    return desired.adopt.endpoints if desired.adopt is not None and is_next else ()


def recorded(desired: DesiredCluster) -> tuple[AdoptedMember, ...]:
    """The external members of the adoption that is under way."""
    adoption = desired.persisted.adoption
    return adoption.members if adoption is not None and not adoption.finished else ()


def own_answers(desired: DesiredCluster, replies: Mapping[str, Reply]) -> dict[str, Answer]:
    """By member ID, the answers of the recorded external members. replies: by endpoint."""
    found: dict[str, Answer] = {}
    for member in recorded(desired):
        reply = replies.get(member.endpoint)
        if isinstance(reply, Answer) and _is_own(desired, member, reply):
            found[member.id] = reply
    return found


def conflicting_endpoints(desired: DesiredCluster, replies: Mapping[str, Reply]) -> tuple[str, ...]:
    """The endpoints at which something else than the recorded member answers."""
    found = ((member, replies.get(member.endpoint)) for member in recorded(desired))
    return tuple(
        member.endpoint
        for member, reply in found
        if isinstance(reply, Answer) and not _is_own(desired, member, reply)
    )


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


def _is_own(desired: DesiredCluster, member: AdoptedMember, answer: Answer) -> bool:
    return (answer.cluster_id, answer.member_id) == (desired.persisted.cluster_id, member.id)
