"""Protobuf messages as values, so that they stay inside this package."""

from collections.abc import Iterable

from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.values import Alarm, AlarmKind, EtcdMember, Status
from etcd_operator.formats import hex_id


def member_of(message: pb.Member) -> EtcdMember:
    """One member, decoded."""
    return EtcdMember(
        id=hex_id(message.ID),
        name=message.name,
        peer_urls=tuple(message.peerURLs),
        is_learner=message.isLearner,
    )


def members_of(messages: Iterable[pb.Member]) -> tuple[EtcdMember, ...]:
    """A member list, decoded, in order of ID."""
    return tuple(sorted(map(member_of, messages), key=lambda member: int(member.id, 16)))


def status_of(message: pb.StatusResponse) -> Status:
    """A status, decoded."""
    return Status(
        cluster_id=hex_id(message.header.cluster_id),
        member_id=hex_id(message.header.member_id),
        version=message.version,
        leader=hex_id(message.leader) if message.leader else "",
        is_learner=message.isLearner,
        raft_index=message.raftIndex,
        raft_applied_index=message.raftAppliedIndex,
        revision=message.header.revision,
        db_size=message.dbSize,
        errors=tuple(message.errors),
    )


def alarms_of(messages: Iterable[pb.AlarmMember]) -> tuple[Alarm, ...]:
    """The active alarms, decoded."""
    return tuple(
        Alarm(member_id=hex_id(message.memberID), kind=AlarmKind(pb.AlarmType.Name(message.alarm)))
        for message in messages
    )
