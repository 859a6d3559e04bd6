"""The calls of etcd's v3 API that the operator makes, by path and message types.

A table in place of generated stubs: the paths and the read/write distinction are visible,
and the types hold under mypy.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from etcd_operator.etcd import rpc_pb2 as pb

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
