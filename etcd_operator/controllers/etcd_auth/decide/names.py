"""How etcd itself records which users and roles are the operator's, and the names of a user.

A record in Kubernetes would be lost with its object, and would not know what a restore brings back. So a user
that the operator manages has a role of a reserved name, and a managed role has a permission for a reserved
key (the mark), each with the UID of the EtcdCluster. A user or role whose mark has another UID is from a
former cluster: it is taken over if an object declares it, and remains if none does.

etcd adds users and roles without anything granted, and the mark is the first that is granted. A user or role
that has nothing granted allows nothing, so it may be taken over, too.
"""

from collections.abc import Collection, Iterable
from enum import Enum

from etcd_operator.api.users import MARK
from etcd_operator.etcd.values import Access, Permission

ROOT = "root"
"""The user and the role that the operator itself has."""

SECOND = "_2"
"""The end of the other name of a user whose password is rotated. No EtcdUser can have such a name."""


class Method(Enum):
    """How etcd knows a user."""

    CERTIFICATE = "certificate"
    PASSWORD = "password"  # noqa: S105 -- a word of the API


def user_mark(uid: str, method: Method) -> str:
    """The role that marks users of a cluster; etcd shows nowhere whether a user has a password."""
    return f"{MARK}{uid}/{method.value}"


def role_mark(uid: str) -> Permission:
    """The permission that marks roles of a cluster. There is no such key."""
    return Permission(key=f"{MARK}{uid}".encode(), access=Access.READ)


def is_managed_user(roles: Iterable[str], uid: str) -> bool:
    """Whether a user with these roles is managed for the cluster of this UID."""
    return any(role.startswith(f"{MARK}{uid}/") for role in roles)


def is_managed_role(permissions: Iterable[Permission], uid: str) -> bool:
    """Whether a role with these permissions is managed for the cluster of this UID."""
    return any(each.key == role_mark(uid).key for each in permissions)


def may_take_user(roles: Collection[str]) -> bool:
    """Whether a user with these roles may be replaced by a declared one."""
    return not roles or any(role.startswith(MARK) for role in roles)


def may_take_role(permissions: Collection[Permission]) -> bool:
    """Whether a role with these permissions may become a declared one."""
    return not permissions or any(each.key.startswith(MARK.encode()) for each in permissions)


def names_of(user: str) -> tuple[str, str]:
    """The names in etcd that an EtcdUser may have, one after the other."""
    return user, f"{user}{SECOND}"


def other_name(user: str, username: str) -> str:
    """The name that follows `username`."""
    first, second = names_of(user)
    return second if username == first else first
