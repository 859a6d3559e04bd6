"""The calls of the fake etcd that are about users and roles: all go through the log, also those that read."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.methods import Method
from unit.fakes.etcd.auth import FakeAuth, auth_status, own_role, own_user
from unit.fakes.etcd.calls import Call, always

if TYPE_CHECKING:
    from unit.fakes.etcd.rpc import Answers


def _status(answers: "Answers", _request: pb.AuthStatusRequest) -> pb.AuthStatusResponse:
    auth = answers.cluster.auth
    return pb.AuthStatusResponse(header=answers.header(), enabled=auth.is_enabled, authRevision=auth.revision)


def _user_get(answers: "Answers", request: pb.AuthUserGetRequest) -> pb.AuthUserGetResponse:
    user = answers.cluster.auth.user(request.name)
    return pb.AuthUserGetResponse(header=answers.header(), roles=sorted(user.roles))


def _role_get(answers: "Answers", request: pb.AuthRoleGetRequest) -> pb.AuthRoleGetResponse:
    permissions = [
        pb.Permission(permType=access, key=key, range_end=end)
        for (key, end), access in sorted(answers.cluster.auth.role(request.role).items())
    ]
    return pb.AuthRoleGetResponse(header=answers.header(), perm=permissions)


def _user_list(answers: "Answers", _request: pb.AuthUserListRequest) -> pb.AuthUserListResponse:
    return pb.AuthUserListResponse(header=answers.header(), users=sorted(answers.cluster.auth.users))


def _role_list(answers: "Answers", _request: pb.AuthRoleListRequest) -> pb.AuthRoleListResponse:
    return pb.AuthRoleListResponse(header=answers.header(), roles=sorted(answers.cluster.auth.roles))


def _authenticate(answers: "Answers", request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
    token = answers.cluster.auth.authenticate(request.name, request.password)
    return pb.AuthenticateResponse(header=answers.header(), token=token)


def _changing(
    change: Callable[[FakeAuth, Any], None], response: type[Any], answers: "Answers", request: Any
) -> Any:
    change(answers.cluster.auth, request)
    answers.cluster.raft_index += 1
    return response(header=answers.header())


def _change(method: Method[Any, Any], change: Callable[[FakeAuth, Any], None]) -> Call:
    answer = partial(_changing, change, method.response)
    return Call(method, answer, needs_quorum=always, is_logged=True)


def _permission(auth: FakeAuth, request: pb.AuthRoleGrantPermissionRequest) -> None:
    access = pb.Permission.Type.Name(request.perm.permType)
    auth.grant_permission(request.name, request.perm.key, request.perm.range_end, access)


def _user_add(auth: FakeAuth, request: pb.AuthUserAddRequest) -> None:
    auth.add_user(request.name, None if request.options.no_password else request.password)


AUTH_CALLS = (
    Call(methods.AUTHENTICATE, _authenticate, needs_quorum=always, may_call=None),
    Call(methods.AUTH_STATUS, _status, needs_quorum=always, may_call=auth_status, is_logged=True),
    Call(methods.USER_GET, _user_get, needs_quorum=always, may_call=own_user, is_logged=True),
    Call(methods.ROLE_GET, _role_get, needs_quorum=always, may_call=own_role, is_logged=True),
    Call(methods.USER_LIST, _user_list, needs_quorum=always, is_logged=True),
    Call(methods.ROLE_LIST, _role_list, needs_quorum=always, is_logged=True),
    _change(methods.AUTH_ENABLE, lambda auth, _: auth.enable()),
    _change(methods.AUTH_DISABLE, lambda auth, _: auth.disable()),
    _change(methods.USER_ADD, _user_add),
    _change(methods.USER_DELETE, lambda auth, asked: auth.delete_user(asked.name)),
    _change(
        methods.USER_CHANGE_PASSWORD, lambda auth, asked: auth.change_password(asked.name, asked.password)
    ),
    _change(methods.USER_GRANT_ROLE, lambda auth, asked: auth.grant_role(asked.user, asked.role)),
    _change(methods.USER_REVOKE_ROLE, lambda auth, asked: auth.revoke_role(asked.name, asked.role)),
    _change(methods.ROLE_ADD, lambda auth, asked: auth.add_role(asked.name)),
    _change(methods.ROLE_DELETE, lambda auth, asked: auth.delete_role(asked.role)),
    _change(methods.ROLE_GRANT_PERMISSION, _permission),
    _change(
        methods.ROLE_REVOKE_PERMISSION,
        lambda auth, asked: auth.revoke_permission(asked.role, asked.key, asked.range_end),
    ),
)
