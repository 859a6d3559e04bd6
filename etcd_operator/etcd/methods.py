"""The calls of etcd's v3 API that the operator makes, by path and message types.

A table in place of generated stubs: the paths and the read/write distinction are visible,
and the types hold under mypy.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from etcd_operator.etcd import rpc_pb2 as pb

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Generic[Request, Response]):
    """One remote procedure; `is_write`: it can change the cluster."""

    service: str
    name: str
    request: type[Request]
    response: type[Response]
    is_write: bool = False

    @property
    def path(self) -> str:
        """The HTTP/2 path of the call."""
        return f"/etcdserverpb.{self.service}/{self.name}"


RANGE = Method(service="KV", name="Range", request=pb.RangeRequest, response=pb.RangeResponse)
PUT = Method(service="KV", name="Put", request=pb.PutRequest, response=pb.PutResponse, is_write=True)

MEMBER_LIST = Method(
    service="Cluster", name="MemberList", request=pb.MemberListRequest, response=pb.MemberListResponse
)
MEMBER_ADD = Method(
    service="Cluster",
    name="MemberAdd",
    request=pb.MemberAddRequest,
    response=pb.MemberAddResponse,
    is_write=True,
)
MEMBER_PROMOTE = Method(
    service="Cluster",
    name="MemberPromote",
    request=pb.MemberPromoteRequest,
    response=pb.MemberPromoteResponse,
    is_write=True,
)
MEMBER_REMOVE = Method(
    service="Cluster",
    name="MemberRemove",
    request=pb.MemberRemoveRequest,
    response=pb.MemberRemoveResponse,
    is_write=True,
)

STATUS = Method(service="Maintenance", name="Status", request=pb.StatusRequest, response=pb.StatusResponse)
ALARM_LIST = Method(service="Maintenance", name="Alarm", request=pb.AlarmRequest, response=pb.AlarmResponse)
ALARM_DISARM = Method(
    service="Maintenance", name="Alarm", request=pb.AlarmRequest, response=pb.AlarmResponse, is_write=True
)
DEFRAGMENT = Method(
    service="Maintenance",
    name="Defragment",
    request=pb.DefragmentRequest,
    response=pb.DefragmentResponse,
    is_write=True,
)
HASH_KV = Method(service="Maintenance", name="HashKV", request=pb.HashKVRequest, response=pb.HashKVResponse)
SNAPSHOT = Method(
    service="Maintenance", name="Snapshot", request=pb.SnapshotRequest, response=pb.SnapshotResponse
)
MOVE_LEADER = Method(
    service="Maintenance",
    name="MoveLeader",
    request=pb.MoveLeaderRequest,
    response=pb.MoveLeaderResponse,
    is_write=True,
)

AUTHENTICATE = Method(
    service="Auth", name="Authenticate", request=pb.AuthenticateRequest, response=pb.AuthenticateResponse
)
