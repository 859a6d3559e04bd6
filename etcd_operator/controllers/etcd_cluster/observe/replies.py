"""What etcd replied, turned into the values that rules read. Pure."""

from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, EtcdMember, Refusal, Reply, Silence
from etcd_operator.etcd.values import AlarmKind, Answered, MemberEntry, NoAnswer, Refused, Status
from etcd_operator.formats import hex_id


def reply_of(reply: Answered | Refused | NoAnswer, silent_for: float) -> Reply:
    """What a member replied; silent_for: seconds since it last answered, if it did not."""
    match reply:
        case Answered():
            return _answer(reply.status, reply.members or ())
        case Refused():
            return Refusal(is_serving=reply.is_serving)
        case NoAnswer():
            return Silence(seconds=silent_for)


def _answer(status: Status, members: tuple[MemberEntry, ...]) -> Answer:
    alarms = status.alarms
    return Answer(
        member_id=hex_id(status.member_id),
        cluster_id=hex_id(status.cluster_id),
        version=status.version,
        leader=hex_id(status.leader) if status.leader else "",
        committed=status.raft_index,
        applied=status.raft_applied_index,
        revision=status.revision,
        is_learner=status.is_learner,
        errors=status.errors,
        is_out_of_space=any(alarm.kind is AlarmKind.NOSPACE for alarm in alarms),
        corrupt=frozenset(hex_id(alarm.member_id) for alarm in alarms if alarm.kind is AlarmKind.CORRUPT),
        has_other_errors=bool(status.other_errors),
        members=tuple(_entry(member) for member in members),
        db_size=status.db_size,
    )


def _entry(member: MemberEntry) -> EtcdMember:
    return EtcdMember(
        id=hex_id(member.id), name=member.name, peer_urls=member.peer_urls, is_learner=member.is_learner
    )
