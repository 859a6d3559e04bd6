"""Calls to one etcd member about users, roles, and whether requests need a user.

All but `authenticate` need a quorum, and role root once authentication is enabled; etcd 3.5 to 3.7 take even
reads of users and roles through the log (measured). Each change may be repeated: one that finds its result is
no error, so that a lost reply is none either.

A password is in requests only: in no error, no log and no `repr`.
"""

from contextlib import suppress

from etcd_operator.errors import AlreadyExists
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.errors import NotGranted, RoleNotFound, UserNotFound
from etcd_operator.etcd.values import Access, AuthStatus, Permission
from etcd_operator.formats import hex_id

_ACCESS = {pb.Permission.Type.Value(access.value): access for access in Access}


class AuthClient(EtcdClient):
    """Calls one endpoint, also about users and roles."""

    def auth_status(self) -> AuthStatus:
        """Whether requests need a user. 3.5 and 3.6 ask for role root once they do."""
        response = self._call(methods.AUTH_STATUS, pb.AuthStatusRequest())
        return AuthStatus(
            is_enabled=response.enabled,
            revision=response.authRevision,
            cluster_id=hex_id(response.header.cluster_id),
        )

    def auth_enable(self) -> None:
        """Require a user from now on. Raises `Conflict` if there is no user root with role root."""
        self._call(methods.AUTH_ENABLE, pb.AuthEnableRequest())

    def auth_disable(self) -> None:
        """Require no user any more."""
        self._call(methods.AUTH_DISABLE, pb.AuthDisableRequest())

    # Users

    def users(self) -> tuple[str, ...]:
        """The names of all users."""
        return tuple(self._call(methods.USER_LIST, pb.AuthUserListRequest()).users)

    def roles_of(self, user: str) -> tuple[str, ...] | None:
        """The roles of a user; None if there is no such user."""
        try:
            return tuple(self._call(methods.USER_GET, pb.AuthUserGetRequest(name=user)).roles)
        except UserNotFound:
            return None

    def add_user(self, user: str, password: str | None) -> bool:
        """Add a user without roles; false if there is one of that name, with whatever password.

        None: a user who is known by certificate only, and for whom no password can ever be set.
        """
        options = pb.UserAddOptions(no_password=password is None)
        request = pb.AuthUserAddRequest(name=user, password=password or "", options=options)
        try:
            self._call(methods.USER_ADD, request)
        except AlreadyExists:
            return False
        return True

    def delete_user(self, user: str) -> None:
        """Delete a user, and end all tokens of that user. Raises `Invalid` for root."""
        with suppress(UserNotFound):
            self._call(methods.USER_DELETE, pb.AuthUserDeleteRequest(name=user))

    def change_password(self, user: str, password: str) -> None:
        """Set a password, and end all tokens of that user. Raises `UserNotFound`."""
        request = pb.AuthUserChangePasswordRequest(name=user, password=password)
        self._call(methods.USER_CHANGE_PASSWORD, request)

    def grant_role(self, user: str, role: str) -> None:
        """Give a user a role. Raises `UserNotFound`, `RoleNotFound`."""
        self._call(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user=user, role=role))

    def revoke_role(self, user: str, role: str) -> None:
        """Take a role from a user. Raises `UserNotFound`."""
        with suppress(NotGranted):
            self._call(methods.USER_REVOKE_ROLE, pb.AuthUserRevokeRoleRequest(name=user, role=role))

    # Roles

    def roles(self) -> tuple[str, ...]:
        """The names of all roles."""
        return tuple(self._call(methods.ROLE_LIST, pb.AuthRoleListRequest()).roles)

    def permissions_of(self, role: str) -> tuple[Permission, ...] | None:
        """The permissions of a role; None if there is no such role. Those of role root are not stored."""
        try:
            response = self._call(methods.ROLE_GET, pb.AuthRoleGetRequest(role=role))
        except RoleNotFound:
            return None
        return tuple(
            Permission(key=each.key, range_end=each.range_end, access=_ACCESS[each.permType])
            for each in response.perm
            if each.permType in _ACCESS
        )

    def add_role(self, role: str) -> bool:
        """Add a role without permissions; false if there is one of that name."""
        try:
            self._call(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=role))
        except AlreadyExists:
            return False
        return True

    def delete_role(self, role: str) -> None:
        """Delete a role, and take it from all users. Raises `Invalid` for root."""
        with suppress(RoleNotFound):
            self._call(methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role=role))

    def grant_permission(self, role: str, permission: Permission) -> None:
        """Give a role a permission; one for the same key and end is replaced. Raises `RoleNotFound`."""
        message = pb.Permission(
            permType=permission.access.value, key=permission.key, range_end=permission.range_end
        )
        request = pb.AuthRoleGrantPermissionRequest(name=role, perm=message)
        self._call(methods.ROLE_GRANT_PERMISSION, request)

    def revoke_permission(self, role: str, key: bytes, range_end: bytes) -> None:
        """Take the permission for exactly this key and end from a role. Raises `RoleNotFound`."""
        request = pb.AuthRoleRevokePermissionRequest(role=role, key=key, range_end=range_end)
        with suppress(NotGranted):
            self._call(methods.ROLE_REVOKE_PERMISSION, request)
