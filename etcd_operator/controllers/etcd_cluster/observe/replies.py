"""What etcd replied, turned into the values that rules read. Pure."""

from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.etcd.values import AlarmKind, Answered, EtcdMember, NoAnswer, Refused, Status


def reply_of(reply: Answered | Refused | NoAnswer, silent_for: float) -> Reply:
    """What a member replied; silent_for: seconds since it last answered, if it did not."""
    match reply:
        case Answered():
            return _answer(reply.status, reply.members or ())
        case Refused():
            return reply
        case NoAnswer():
            return Silence(seconds=silent_for)


def _answer(status: Status, members: tuple[EtcdMember, ...]) -> Answer:
    alarms = status.alarms
    return Answer(
        member_id=status.member_id,
        cluster_id=status.cluster_id,
        version=status.version,
        leader=status.leader,
        committed=status.raft_index,
        applied=status.raft_applied_index,
        revision=status.revision,
        is_learner=status.is_learner,
        errors=status.errors,
        is_out_of_space=any(alarm.kind is AlarmKind.NOSPACE for alarm in alarms),
        corrupt=frozenset(alarm.member_id for alarm in alarms if alarm.kind is AlarmKind.CORRUPT),
        has_other_errors=bool(status.other_errors),
        members=members,
        db_size=status.db_size,
    )
