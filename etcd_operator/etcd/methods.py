"""The calls of etcd's v3 API that the operator makes, by path and message types, and the replies as values.

A table in place of generated stubs: the paths and the read/write distinction are visible, and the types hold
under mypy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from etcd_operator.errors import Unavailable
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.values import Alarm, AlarmKind, EtcdMember, Status
from etcd_operator.formats import hex_id

# No cluster has more; a server that is no etcd may report anything.
MOST_MEMBERS = 100
_MOST_URLS = 16
_LONGEST_TEXT = 1024
_LONGEST_VERSION = 64
_MOST_ERRORS = 2 * MOST_MEMBERS + 1

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
MEMBER_UPDATE = Method(
    "Cluster", "MemberUpdate", pb.MemberUpdateRequest, pb.MemberUpdateResponse, is_write=True
)

STATUS = Method("Maintenance", "Status", pb.StatusRequest, pb.StatusResponse)
ALARM_LIST = Method("Maintenance", "Alarm", pb.AlarmRequest, pb.AlarmResponse)
ALARM_DISARM = Method("Maintenance", "Alarm", pb.AlarmRequest, pb.AlarmResponse, is_write=True)
HASH_KV = Method("Maintenance", "HashKV", pb.HashKVRequest, pb.HashKVResponse)
SNAPSHOT = Method("Maintenance", "Snapshot", pb.SnapshotRequest, pb.SnapshotResponse)
MOVE_LEADER = Method("Maintenance", "MoveLeader", pb.MoveLeaderRequest, pb.MoveLeaderResponse, is_write=True)

AUTHENTICATE = Method("Auth", "Authenticate", pb.AuthenticateRequest, pb.AuthenticateResponse)
AUTH_STATUS = Method("Auth", "AuthStatus", pb.AuthStatusRequest, pb.AuthStatusResponse)
AUTH_ENABLE = Method("Auth", "AuthEnable", pb.AuthEnableRequest, pb.AuthEnableResponse, is_write=True)
AUTH_DISABLE = Method("Auth", "AuthDisable", pb.AuthDisableRequest, pb.AuthDisableResponse, is_write=True)
USER_LIST = Method("Auth", "UserList", pb.AuthUserListRequest, pb.AuthUserListResponse)
USER_GET = Method("Auth", "UserGet", pb.AuthUserGetRequest, pb.AuthUserGetResponse)
USER_ADD = Method("Auth", "UserAdd", pb.AuthUserAddRequest, pb.AuthUserAddResponse, is_write=True)
USER_DELETE = Method("Auth", "UserDelete", pb.AuthUserDeleteRequest, pb.AuthUserDeleteResponse, is_write=True)
USER_CHANGE_PASSWORD = Method(
    "Auth",
    "UserChangePassword",
    pb.AuthUserChangePasswordRequest,
    pb.AuthUserChangePasswordResponse,
    is_write=True,
)
USER_GRANT_ROLE = Method(
    "Auth", "UserGrantRole", pb.AuthUserGrantRoleRequest, pb.AuthUserGrantRoleResponse, is_write=True
)
USER_REVOKE_ROLE = Method(
    "Auth", "UserRevokeRole", pb.AuthUserRevokeRoleRequest, pb.AuthUserRevokeRoleResponse, is_write=True
)
ROLE_LIST = Method("Auth", "RoleList", pb.AuthRoleListRequest, pb.AuthRoleListResponse)
ROLE_GET = Method("Auth", "RoleGet", pb.AuthRoleGetRequest, pb.AuthRoleGetResponse)
ROLE_ADD = Method("Auth", "RoleAdd", pb.AuthRoleAddRequest, pb.AuthRoleAddResponse, is_write=True)
ROLE_DELETE = Method("Auth", "RoleDelete", pb.AuthRoleDeleteRequest, pb.AuthRoleDeleteResponse, is_write=True)
ROLE_GRANT_PERMISSION = Method(
    "Auth",
    "RoleGrantPermission",
    pb.AuthRoleGrantPermissionRequest,
    pb.AuthRoleGrantPermissionResponse,
    is_write=True,
)
ROLE_REVOKE_PERMISSION = Method(
    "Auth",
    "RoleRevokePermission",
    pb.AuthRoleRevokePermissionRequest,
    pb.AuthRoleRevokePermissionResponse,
    is_write=True,
)


def member_of(message: pb.Member) -> EtcdMember:
    """One member, decoded. Raises `Unavailable` for one that no etcd reports."""
    if len(message.peerURLs) > _MOST_URLS or len(message.name) > _LONGEST_TEXT:
        raise Unavailable(
            f"member {hex_id(message.ID)} has a longer name, or more peer URLs, than is possible"
        )
    if any(len(url) > _LONGEST_TEXT for url in message.peerURLs):
        raise Unavailable(f"member {hex_id(message.ID)} has a longer peer URL than is possible")
    return EtcdMember(
        id=hex_id(message.ID),
        name=message.name,
        peer_urls=tuple(message.peerURLs),
        is_learner=message.isLearner,
    )


def members_of(messages: Sequence[pb.Member]) -> tuple[EtcdMember, ...]:
    """A member list, decoded, in order of ID. Raises `Unavailable` for one that no etcd reports."""
    if len(messages) > MOST_MEMBERS:
        raise Unavailable(f"the list has {len(messages)} members; a cluster has at most {MOST_MEMBERS}")
    return tuple(sorted(map(member_of, messages), key=lambda member: int(member.id, 16)))


def status_of(message: pb.StatusResponse) -> Status:
    """A status, decoded; texts are cut to what etcd may report."""
    return Status(
        cluster_id=hex_id(message.header.cluster_id),
        member_id=hex_id(message.header.member_id),
        version=message.version[:_LONGEST_VERSION],
        leader=hex_id(message.leader) if message.leader else "",
        is_learner=message.isLearner,
        raft_index=message.raftIndex,
        raft_applied_index=message.raftAppliedIndex,
        revision=message.header.revision,
        db_size=message.dbSize,
        errors=tuple(error[:_LONGEST_TEXT] for error in message.errors[:_MOST_ERRORS]),
    )


def alarms_of(messages: Iterable[pb.AlarmMember]) -> tuple[Alarm, ...]:
    """The active alarms of the kinds that are known, decoded."""
    kinds = {pb.AlarmType.Value(kind.value): kind for kind in AlarmKind}
    return tuple(
        Alarm(member_id=hex_id(message.memberID), kind=kinds[message.alarm])
        for message in messages
        if message.alarm in kinds
    )
