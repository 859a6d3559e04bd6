"""The roles and users that are declared for one cluster, those that its etcd has, and what may be done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from etcd_operator.api.users import MARK
from etcd_operator.controllers.etcd_auth.decide.names import Method
from etcd_operator.etcd.values import OPEN_END, Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredRole:
    """What a valid EtcdRole asks for."""

    name: str
    permissions: tuple[Permission, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredUser:
    """One user in etcd that a valid EtcdUser asks for."""

    name: str  # in etcd
    of: str  # the name of the EtcdUser
    method: Method
    roles: frozenset[str]
    is_retiring: bool = False  # it is kept as it is until its time is over, but not made again
    has_other_password: bool = False  # than the connection Secret, or it is not known whether it has


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthStore:
    """What etcd has: users and their roles, roles and their permissions."""

    users: Mapping[str, frozenset[str]]
    roles: Mapping[str, tuple[Permission, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthState:
    """What the changes of one cluster rest on.

    held_roles, held_users: names in etcd of objects whose spec is not valid or cannot be read: what etcd has
    of them remains as it is. may_remove: whether it is proven which objects exist.
    """

    uid: str  # of the EtcdCluster
    store: AuthStore
    roles: tuple[DesiredRole, ...] = ()
    users: tuple[DesiredUser, ...] = ()
    held_roles: frozenset[str] = frozenset()
    held_users: frozenset[str] = frozenset()
    may_remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRole:
    """A role without permissions."""

    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRole:
    """A role, which all users lose."""

    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPermission:
    """One more permission of a role, or another access to the same keys."""

    role: str
    permission: Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePermission:
    """A permission that a role has."""

    role: str
    permission: Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class AddUser:
    """A user without roles; of: the EtcdUser."""

    user: str
    of: str
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    """A user; of: the EtcdUser, empty where none declares the user any more."""

    user: str
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPassword:
    """The password in the connection Secret."""

    user: str
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole:
    """One more role of a user."""

    user: str
    of: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRole:
    """A role that a user has."""

    user: str
    of: str
    role: str


RoleChange = AddRole | DeleteRole | GrantPermission | RevokePermission
UserChange = AddUser | DeleteUser | SetPassword | GrantRole | RevokeRole
Change = RoleChange | UserChange


def role_of(change: Change) -> str:
    """The role in etcd that is changed; empty for a change of a user."""
    return change.role if isinstance(change, RoleChange) else ""


def user_of(change: Change) -> str:
    """The EtcdUser whose user in etcd is changed; empty for none."""
    return change.of if isinstance(change, UserChange) else ""


def described(changes: Iterable[Change]) -> str:
    """What was done, for an Event; nothing of what only marks what is the operator's."""
    words = (_of_role(each) if isinstance(each, RoleChange) else _of_user(each) for each in changes)
    return "; ".join(filter(None, words))


def _of_role(change: RoleChange) -> str:
    match change:
        case AddRole(role=role):
            return "" if role.startswith(MARK) else f"added role {role}"
        case DeleteRole(role=role):
            return f"deleted role {role}"
        case GrantPermission(role=role, permission=permission):
            return _of_permission("granted", permission, f"to role {role}")
        case RevokePermission(role=role, permission=permission):
            return _of_permission("revoked", permission, f"from role {role}")
        case _:
            assert_never(change)


def _of_user(change: UserChange) -> str:
    match change:
        case AddUser(user=user):
            return f"added user {user}"
        case DeleteUser(user=user):
            return f"deleted user {user}"
        case SetPassword(user=user):
            return f"set the password of user {user}"
        case GrantRole(user=user, role=role):
            return "" if role.startswith(MARK) else f"granted role {role} to user {user}"
        case RevokeRole(user=user, role=role):
            return "" if role.startswith(MARK) else f"revoked role {role} from user {user}"
        case _:
            assert_never(change)


def _of_permission(verb: str, permission: Permission, role: str) -> str:
    """Keys may be any bytes."""
    if permission.key.startswith(MARK.encode()):
        return ""
    key, end = (part.decode(errors="backslashreplace") for part in (permission.key, permission.range_end))
    keys = f"from {key!r} to {end!r}" if permission.range_end else f"of {key!r}"
    if permission.range_end == OPEN_END:
        keys = f"from {key!r} on"
    return f"{verb} {permission.access.value} {keys} {role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthPlan:
    """What is changed, in this order; each change may be repeated, and none needs one that comes later.

    taken_roles, taken_users: names in etcd that are another one's. missing: by EtcdUser, roles that etcd has
    not. undeclared: users and roles that nobody declares and that are not the operator's, for people.
    """

    changes: tuple[Change, ...] = ()
    taken_roles: frozenset[str] = frozenset()
    taken_users: frozenset[str] = frozenset()
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undeclared_roles: tuple[str, ...] = ()
    undeclared_users: tuple[str, ...] = ()
