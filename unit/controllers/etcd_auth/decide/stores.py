"""A store of users and roles on which changes are made as etcd makes them."""

from collections.abc import Iterable

from etcd_operator.controllers.etcd_auth.decide.names import Method
from etcd_operator.controllers.etcd_auth.decide.state import (
    AddRole,
    AddUser,
    AuthState,
    AuthStore,
    Change,
    DeleteRole,
    DeleteUser,
    DesiredRole,
    DesiredUser,
    GrantPermission,
    GrantRole,
    RevokePermission,
    RevokeRole,
    SetPassword,
)
from etcd_operator.etcd.values import Access, Permission

UID = "uid-1"
READ_APP = Permission(key=b"/app/", range_end=b"/app0", access=Access.READ)
WRITE_APP = Permission(key=b"/app/", range_end=b"/app0", access=Access.READ_WRITE)
ONE = Permission(key=b"one", access=Access.WRITE)
CERTIFICATE, PASSWORD = Method.CERTIFICATE, Method.PASSWORD


class Etcd:
    """Refuses, by an assertion, what etcd refuses."""

    def __init__(self) -> None:
        self.users: dict[str, set[str]] = {}
        self.methods: dict[str, Method] = {}
        self.roles: dict[str, dict[tuple[bytes, bytes], Permission]] = {}

    @property
    def store(self) -> AuthStore:
        return AuthStore(
            users={name: frozenset(roles) for name, roles in self.users.items()},
            roles={name: tuple(each.values()) for name, each in self.roles.items()},
        )

    def with_role(self, name: str, *permissions: Permission) -> "Etcd":
        self.roles[name] = {(each.key, each.range_end): each for each in permissions}
        return self

    def with_user(self, name: str, *roles: str, method: Method = CERTIFICATE) -> "Etcd":
        for role in {*roles} - {"root"}:
            self.roles.setdefault(role, {})
        self.users[name], self.methods[name] = set(roles), method
        return self

    def make_all(self, changes: Iterable[Change]) -> "Etcd":
        for change in changes:
            self.make(change)
        return self

    def make(self, change: Change) -> None:
        match change:
            case AddRole(role=role):
                self.roles.setdefault(role, {})
            case DeleteRole(role=role):
                self.roles.pop(role, None)
                for roles in self.users.values():
                    roles.discard(role)
            case GrantPermission(role=role, permission=each):
                self.roles[role][each.key, each.range_end] = each
            case RevokePermission(role=role, permission=each):
                self.roles[role].pop((each.key, each.range_end), None)
            case _:
                self._make_of_user(change)

    def _make_of_user(self, change: Change) -> None:
        match change:
            case AddUser(user=user, method=method):
                if user not in self.users:
                    self.users[user], self.methods[user] = set(), method
            case DeleteUser(user=user):
                self.users.pop(user, None)
            case SetPassword(user=user):
                assert self.methods[user] is PASSWORD
            case GrantRole(user=user, role=role):
                assert role in self.roles
                self.users[user].add(role)
            case RevokeRole(user=user, role=role):
                self.users[user].discard(role)
            case _:
                raise AssertionError(change)


def role(name: str, *permissions: Permission) -> DesiredRole:
    return DesiredRole(name=name, permissions=permissions)


def user(
    name: str, *roles: str, method: Method = CERTIFICATE, of: str = "", is_retiring: bool = False
) -> DesiredUser:
    return DesiredUser(
        name=name, of=of or name, method=method, roles=frozenset(roles), is_retiring=is_retiring
    )


def state(
    etcd: Etcd, *declared: DesiredRole | DesiredUser, uid: str = UID, may_remove: bool = True
) -> AuthState:
    return AuthState(
        uid=uid,
        store=etcd.store,
        roles=tuple(each for each in declared if isinstance(each, DesiredRole)),
        users=tuple(each for each in declared if isinstance(each, DesiredUser)),
        may_remove=may_remove,
    )
