"""Users, roles and tokens of the fake etcd, and what each caller may call, as unit/etcd/contract shows it.

It does not model that a member knows only the tokens that were issued since it started.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.refusals import Refusal

ROOT = "root"

EMPTY = (grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty")
DENIED = (grpc.StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")
NO_USER = (grpc.StatusCode.FAILED_PRECONDITION, "etcdserver: user name not found")
NO_ROLE = (grpc.StatusCode.FAILED_PRECONDITION, "etcdserver: role name not found")
WRONG_PASSWORD = (
    grpc.StatusCode.INVALID_ARGUMENT,
    "etcdserver: authentication failed, invalid user ID or password",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. name: None without token and certificate, empty for a certificate without a CN."""

    name: str | None
    is_by_certificate: bool = False


@dataclass(slots=True)
class FakeUser:
    """password: None for a user without one, who has no tokens."""

    password: str | None
    roles: set[str] = field(default_factory=set)


class FakeAuth:
    """Callers hold the lock of the cluster."""

    def __init__(self) -> None:
        self.is_enabled = False
        self.revision = 1
        self.users: dict[str, FakeUser] = {}
        self.roles: dict[str, dict[tuple[bytes, bytes], str]] = {}
        self._passwords_set: dict[str, int] = {}

    def require_root(self, password: str | None) -> None:
        """A user root is there, and users are required from now on."""
        self.add_user(ROOT, password)
        self.users[ROOT].roles.add(ROOT)
        self.is_enabled = True

    # What is stored

    def add_user(self, name: str, password: str | None) -> None:
        _check(bool(name), EMPTY)
        _check(name not in self.users, _failed("user name already exists"))
        self.users[name] = FakeUser(password)
        self._invalidate(name)

    def delete_user(self, name: str) -> None:
        self._keep_root(is_root=name == ROOT)
        self.user(name)
        del self.users[name]
        self._invalidate(name)

    def change_password(self, name: str, password: str) -> None:
        user = self.user(name)
        user.password = password if user.password is not None else None
        self._invalidate(name)

    def grant_role(self, name: str, role: str) -> None:
        user = self.user(name)
        _check(role in self.roles or role == ROOT, NO_ROLE)
        if role not in user.roles:
            user.roles.add(role)
            self.revision += 1

    def revoke_role(self, name: str, role: str) -> None:
        self._keep_root(is_root=(name, role) == (ROOT, ROOT))
        user = self.user(name)
        _check(role in user.roles, _failed("role is not granted to the user"))
        user.roles.remove(role)
        self.revision += 1

    def add_role(self, name: str) -> None:
        _check(name not in self.roles, _failed("role name already exists"))
        self.roles[name] = {}
        self.revision += 1

    def delete_role(self, name: str) -> None:
        self._keep_root(is_root=name == ROOT)
        self.role(name)
        del self.roles[name]
        for user in self.users.values():
            user.roles.discard(name)
        self.revision += 1

    def grant_permission(self, name: str, key: bytes, end: bytes, access: str) -> None:
        is_range = not end or key < end or end == b"\0"
        management = (grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: invalid auth management")
        _check(bool(key) and is_range, management)
        self.role(name)[key, end] = access
        self.revision += 1

    def revoke_permission(self, name: str, key: bytes, end: bytes) -> None:
        permissions = self.role(name)
        _check((key, end) in permissions, _failed("permission is not granted to the role"))
        del permissions[key, end]
        self.revision += 1

    def enable(self) -> None:
        root = self.users.get(ROOT)
        _check(root is not None, _failed("root user does not exist"))
        assert root is not None
        _check(ROOT in root.roles, _failed("root user does not have root role"))
        self.is_enabled = True

    def disable(self) -> None:
        if self.is_enabled:
            self.is_enabled = False
            self.revision += 1

    def user(self, name: str) -> FakeUser:
        _check(name in self.users, NO_USER)
        return self.users[name]

    def role(self, name: str) -> dict[tuple[bytes, bytes], str]:
        _check(name in self.roles, NO_ROLE)
        return self.roles[name]

    # Who calls, and may they

    def authenticate(self, name: str, password: str) -> str:
        """A token."""
        _check(self.is_enabled, _failed("authentication is not enabled"))
        user = self.users.get(name)
        _check(user is not None and user.password is not None and user.password == password, WRONG_PASSWORD)
        return self._token(name)

    def caller(self, context: grpc.ServicerContext) -> Caller:
        """By token, or else by certificate: an invalid token is refused, whatever the certificate."""
        tokens = [value for key, value in context.invocation_metadata() if key == "token"]
        if tokens:
            known = {
                self._token(name): name for name, user in self.users.items() if user.password is not None
            }
            invalid = (grpc.StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")
            _check(tokens[0] in known, invalid)
            return Caller(known[str(tokens[0])])
        facts = context.auth_context()
        if "x509_pem_cert" not in facts:
            return Caller(None)
        names = facts.get("x509_common_name", [b""])
        return Caller(bytes(names[0]).decode(), is_by_certificate=True)

    def check_root(self, caller: Caller) -> None:
        """Refuse whoever has not role root."""
        _check(bool(caller.name), EMPTY)
        _check(ROOT in self.user(caller.name or "").roles, DENIED)

    def check_key(self, caller: Caller, key: bytes, end: bytes, access: str) -> None:
        """Refuse a read (READ) or write (WRITE) that no single permission covers."""
        _check(caller.name is not None, EMPTY)
        user = self.users.get(caller.name or "")
        _check(user is not None, DENIED)
        assert user is not None
        granted = (item for role in user.roles for item in self.roles.get(role, {}).items())
        is_allowed = any(
            kind in (access, "READWRITE") and _covers(permitted, key, end) for permitted, kind in granted
        )
        _check(ROOT in user.roles or is_allowed, DENIED)

    def _invalidate(self, name: str) -> None:
        self._passwords_set[name] = self._passwords_set.get(name, 0) + 1
        self.revision += 1

    def _token(self, name: str) -> str:
        number = self._passwords_set[name]
        return f"token-of-{name}" if number == 1 else f"token-of-{name}-{number}"

    def _keep_root(self, *, is_root: bool) -> None:
        management = (grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: invalid auth management")
        _check(not (self.is_enabled and is_root), management)


# Who may call


MayCall = Callable[[FakeAuth, FakeMember, Any, Caller], None]
"""Raises `Refusal`."""


def root(auth: FakeAuth, _asked: FakeMember, _request: Any, caller: Caller) -> None:
    auth.check_root(caller)


def identity(_auth: FakeAuth, _asked: FakeMember, _request: Any, caller: Caller) -> None:
    """Any token, any certificate."""
    _check(caller.name is not None, EMPTY)


def alarms(auth: FakeAuth, asked: FakeMember, request: Any, caller: Caller) -> None:
    """To read them takes an identity only."""
    (root if request.action else identity)(auth, asked, request, caller)


def reads(auth: FakeAuth, _asked: FakeMember, request: Any, caller: Caller) -> None:
    auth.check_key(caller, request.key, request.range_end, "READ")


def writes(auth: FakeAuth, _asked: FakeMember, request: Any, caller: Caller) -> None:
    auth.check_key(caller, request.key, b"", "WRITE")


def own_user(auth: FakeAuth, _asked: FakeMember, request: Any, caller: Caller) -> None:
    """The user who calls, or any for root."""
    if caller.name != request.name:
        auth.check_root(caller)


def own_role(auth: FakeAuth, _asked: FakeMember, request: Any, caller: Caller) -> None:
    """A role of the user who calls, or any for root."""
    user = auth.users.get(caller.name or "")
    if user is None or request.role not in user.roles:
        auth.check_root(caller)


def auth_status(auth: FakeAuth, asked: FakeMember, _request: Any, caller: Caller) -> None:
    """Root; anybody since 3.7."""
    if int(asked.version.split(".")[1]) < 7:
        auth.check_root(caller)


def _covers(permitted: tuple[bytes, bytes], key: bytes, end: bytes) -> bool:
    first, last = permitted
    if not last:
        return key == first and not end
    return first <= key and (last == b"\0" or (key < last if not end else end != b"\0" and end <= last))


def _failed(text: str) -> tuple[grpc.StatusCode, str]:
    return grpc.StatusCode.FAILED_PRECONDITION, f"etcdserver: {text}"


def _check(holds: object, otherwise: tuple[grpc.StatusCode, str]) -> None:
    if not holds:
        raise Refusal(*otherwise)
