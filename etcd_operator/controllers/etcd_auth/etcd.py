"""Reads the users and roles of one etcd, and carries out changes, by requests to one member.

A pass calls it, so each request has a short deadline, and the first that fails ends the work: the next pass
reads again. Each change may be repeated.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from etcd_operator.controllers.etcd_auth.decide.names import Method
from etcd_operator.controllers.etcd_auth.decide.state import (
    AddRole,
    AddUser,
    AuthStore,
    Change,
    DeleteRole,
    DeleteUser,
    GrantPermission,
    GrantRole,
    RevokePermission,
    RevokeRole,
    SetPassword,
)
from etcd_operator.errors import RetryableError, Unavailable
from etcd_operator.etcd import metrics_page
from etcd_operator.etcd.auth import AuthClient
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall
from etcd_operator.etcd.errors import AuthRequired, NotForLearner
from etcd_operator.etcd.values import AuthStatus

DEADLINE = 2.0
"""Seconds for each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one member reports."""

    client: AuthClient
    status: AuthStatus
    store: AuthStore


def read(channels: Channels, endpoints: Iterable[str], cluster_id: str, on_call: OnCall) -> Found:
    """What the first member that answers reports. Raises the errors of `AuthClient`, for the last one.

    A member of another etcd cluster, which may have the address of a pod that is gone, does not count: it
    would get passwords.
    """
    last: RetryableError = Unavailable("no member of the cluster is ready")
    for endpoint in endpoints:
        client = AuthClient(channels, endpoint, deadline=DEADLINE, on_call=on_call)
        try:
            status = client.auth_status()
            if status.cluster_id == cluster_id:
                return Found(client=client, status=status, store=_store(client))
            last = Unavailable(f"{endpoint} answers for another etcd cluster than the one on record")
        except (Unavailable, NotForLearner) as error:
            last = error
    raise last


def _store(client: AuthClient) -> AuthStore:
    """Names first: once they are known to be shown, an unknown user is one that was deleted since."""
    users = {name: client.roles_of(name) for name in client.users()}
    roles = {name: client.permissions_of(name) for name in client.roles()}
    return AuthStore(
        users={name: frozenset(each) for name, each in users.items() if each is not None},
        roles={name: each for name, each in roles.items() if each is not None},
    )


def revision(endpoints: Iterable[str]) -> int | None:
    """The revision of users and roles, from the first metrics page that has it; None if none has."""
    for endpoint in endpoints:
        found = metrics_page.read([endpoint])[endpoint].auth_revision
        if found is not None:
            return found
    return None


def has_password(client: AuthClient, user: str, password: str) -> bool:
    """Whether this is the user's password, if etcd requires users."""
    try:
        client.authenticate(user, password)
    except AuthRequired:
        return False
    return True


def carry_out(
    client: AuthClient,
    changes: Iterable[Change],
    passwords: Mapping[str, str],
    require_leadership: Callable[[], None],
) -> None:
    """Make all changes, in order. passwords: by name of the user in etcd."""
    for change in changes:
        require_leadership()
        _make(client, change, passwords)


def _make(client: AuthClient, change: Change, passwords: Mapping[str, str]) -> None:
    match change:
        case AddRole(role=role):
            client.add_role(role)
        case DeleteRole(role=role):
            client.delete_role(role)
        case GrantPermission(role=role, permission=permission):
            client.grant_permission(role, permission)
        case RevokePermission(role=role, permission=permission):
            client.revoke_permission(role, permission.key, permission.range_end)
        case AddUser(user=user, method=method):
            client.add_user(user, passwords[user] if method is Method.PASSWORD else None)
        case DeleteUser(user=user):
            client.delete_user(user)
        case SetPassword(user=user):
            client.change_password(user, passwords[user])
        case GrantRole(user=user, role=role):
            client.grant_role(user, role)
        case RevokeRole(user=user, role=role):
            client.revoke_role(user, role)
        case _:
            assert_never(change)
