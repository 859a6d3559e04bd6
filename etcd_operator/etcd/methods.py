"""The calls of etcd's v3 API that the operator makes, by path and message types, and the replies as values.

A table in place of generated stubs: the paths and the read/write distinction are visible, and the types hold
under mypy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.values import Alarm, AlarmKind, EtcdMember, Status
from etcd_operator.formats import hex_id

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One remote procedure; `is_write`: it can change the cluster."""

    service: str
    name: str
    request: type[Request]
    response: type[Response]
    is_write: bool = field(default=False, kw_only=True)

    @property
    def path(self) -> str:
        """The HTTP/2 path of the call."""
        return f"/etcdserverpb.{self.service}/{self.name}"


RANGE = Method("KV", "Range", pb.RangeRequest, pb.RangeResponse)

MEMBER_LIST = Method("Cluster", "MemberList", pb.MemberListRequest, pb.MemberListResponse)
MEMBER_ADD = Method("Cluster", "MemberAdd", pb.MemberAddRequest, pb.MemberAddResponse, is_write=True)
MEMBER_PROMOTE = Method(
    "Cluster", "MemberPromote", pb.MemberPromoteRequest, pb.MemberPromoteResponse, is_write=True
)
MEMBER_REMOVE = Method(
    "Cluster", "MemberRemove", pb.MemberRemoveRequest, pb.MemberRemoveResponse, is_write=True
)

STATUS = Method("Maintenance", "Status", pb.StatusRequest, pb.StatusResponse)
ALARM_LIST = Method("Maintenance", "Alarm", pb.AlarmRequest, pb.AlarmResponse)
ALARM_DISARM = Method("Maintenance", "Alarm", pb.AlarmRequest, pb.AlarmResponse, is_write=True)
HASH_KV = Method("Maintenance", "HashKV", pb.HashKVRequest, pb.HashKVResponse)
SNAPSHOT = Method("Maintenance", "Snapshot", pb.SnapshotRequest, pb.SnapshotResponse)
MOVE_LEADER = Method("Maintenance", "MoveLeader", pb.MoveLeaderRequest, pb.MoveLeaderResponse, is_write=True)

AUTHENTICATE = Method("Auth", "Authenticate", pb.AuthenticateRequest, pb.AuthenticateResponse)


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
