"""Which changes make the users and roles of an etcd those that are declared.

What is granted comes before what is revoked, so that no request fails in between that both the former and the
wanted state allow. Nothing of others is changed: see `names` for what is the operator's.
"""

from collections.abc import Iterator

from etcd_operator.api.users import MARK
from etcd_operator.controllers.etcd_auth.decide.names import (
    ROOT,
    is_managed_role,
    is_managed_user,
    may_take_role,
    may_take_user,
    role_mark,
    user_mark,
)
from etcd_operator.controllers.etcd_auth.decide.state import (
    AddRole,
    AddUser,
    AuthPlan,
    AuthState,
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


def plan(state: AuthState) -> AuthPlan:
    """What to change. Deterministic, without side effects; nothing for a store that is as declared."""
    taken_roles = {each.name for each in state.roles if _is_taken_role(state, each)}
    taken_users = {each.name for each in state.users if _is_taken_user(state, each)}
    roles = [each for each in state.roles if each.name not in taken_roles]
    users = [each for each in state.users if each.name not in taken_users]
    available = _available(state, roles)
    return AuthPlan(
        changes=(
            *(DeleteUser(user=name) for name in _orphaned_users(state)),
            *_marks(state, users),
            *(change for role in roles for change in _granted(state, role)),
            *(change for user in users for change in _present(state, user, available)),
            *(change for role in roles for change in _narrowed(state, role)),
            *(change for user in users for change in _reduced(state, user, available)),
            *(DeleteRole(role=name) for name in _orphaned_roles(state)),
        ),
        taken_roles=frozenset(taken_roles),
        taken_users=frozenset(taken_users),
        missing=_missing(users, available),
        undeclared_roles=tuple(_undeclared_roles(state)),
        undeclared_users=tuple(_undeclared_users(state)),
    )


def _is_taken_role(state: AuthState, role: DesiredRole) -> bool:
    return not may_take_role(state.store.roles.get(role.name, ()))


def _is_taken_user(state: AuthState, user: DesiredUser) -> bool:
    return not may_take_user(state.store.users.get(user.name, frozenset()))


def _available(state: AuthState, roles: list[DesiredRole]) -> frozenset[str]:
    """The roles that users can get. Marks are not among them, whatever a spec asks for."""
    gone = set(_orphaned_roles(state))
    names = {*state.store.roles, *(role.name for role in roles)} - gone - {ROOT}
    return frozenset(name for name in names if not name.startswith(MARK))


def _missing(users: list[DesiredUser], available: frozenset[str]) -> dict[str, tuple[str, ...]]:
    lacking = {user.of: tuple(sorted(user.roles - available)) for user in users}
    return {name: roles for name, roles in lacking.items() if roles}


def _marks(state: AuthState, users: list[DesiredUser]) -> Iterator[Change]:
    wanted = {user_mark(state.uid, user.method) for user in users if not user.is_retiring}
    yield from (AddRole(role=mark) for mark in sorted(wanted - state.store.roles.keys()))


def _granted(state: AuthState, role: DesiredRole) -> Iterator[Change]:
    stored = state.store.roles.get(role.name)
    if stored is None:
        yield AddRole(role=role.name)
    for permission in (role_mark(state.uid), *role.permissions):
        if permission not in (stored or ()):
            yield GrantPermission(role=role.name, permission=permission)


def _narrowed(state: AuthState, role: DesiredRole) -> Iterator[Change]:
    kept = {(each.key, each.range_end) for each in (role_mark(state.uid), *role.permissions)}
    for permission in state.store.roles.get(role.name, ()):
        if (permission.key, permission.range_end) not in kept:
            yield RevokePermission(role=role.name, permission=permission)


def _is_to_be_replaced(state: AuthState, user: DesiredUser) -> bool:
    """Whether it may have a password although it is to have a certificate, or the other way round."""
    stored = state.store.users.get(user.name)
    return stored is not None and user_mark(state.uid, user.method) not in stored


def _present(state: AuthState, user: DesiredUser, available: frozenset[str]) -> Iterator[Change]:
    stored = state.store.users.get(user.name)
    if _is_to_be_replaced(state, user):
        yield DeleteUser(user=user.name, of=user.of)
        stored = None
    if stored is None:
        if user.is_retiring:
            return
        yield AddUser(user=user.name, of=user.of, method=user.method)
    elif user.has_other_password:
        yield SetPassword(user=user.name, of=user.of)
    for role in (user_mark(state.uid, user.method), *sorted(user.roles & available)):
        if role not in (stored or ()):
            yield GrantRole(user=user.name, of=user.of, role=role)


def _reduced(state: AuthState, user: DesiredUser, available: frozenset[str]) -> Iterator[Change]:
    if _is_to_be_replaced(state, user):
        return
    kept = (user.roles & available) | {user_mark(state.uid, user.method)}
    # A role that is deleted below is taken from all users then.
    gone = set(_orphaned_roles(state))
    for role in sorted(state.store.users.get(user.name, frozenset()) - kept - gone):
        yield RevokeRole(user=user.name, of=user.of, role=role)


def _orphaned_users(state: AuthState) -> list[str]:
    """Users of this cluster whose EtcdUser is deleted, or whose time after a rotation is over."""
    declared = {user.name for user in state.users} | state.held_users
    stored = sorted(state.store.users.items())
    orphaned = [name for name, roles in stored if name not in declared and is_managed_user(roles, state.uid)]
    return orphaned if state.may_remove else []


def _orphaned_roles(state: AuthState) -> list[str]:
    """Roles of this cluster whose EtcdRole is deleted."""
    declared = {role.name for role in state.roles} | state.held_roles
    stored = sorted(state.store.roles.items())
    orphaned = [name for name, each in stored if name not in declared and is_managed_role(each, state.uid)]
    return orphaned if state.may_remove else []


def _undeclared_users(state: AuthState) -> Iterator[str]:
    declared = {user.name for user in state.users} | state.held_users | {ROOT}
    for name, roles in sorted(state.store.users.items()):
        if name not in declared and not is_managed_user(roles, state.uid):
            yield name


def _undeclared_roles(state: AuthState) -> Iterator[str]:
    declared = {role.name for role in state.roles} | state.held_roles | {ROOT}
    for name, permissions in sorted(state.store.roles.items()):
        if name not in declared and not name.startswith(MARK) and not is_managed_role(permissions, state.uid):
            yield name
