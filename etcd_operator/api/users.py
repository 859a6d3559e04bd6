"""`etcd.improbable.io/v1alpha1`: EtcdRole and EtcdUser, who may do what in an etcd cluster.

`spec` of a stored object stays raw until a pass parses it, like the spec of an EtcdBackup.
"""

from typing import Literal

import msgspec

from etcd_operator.api.improbable import GROUP, VERSION
from etcd_operator.api.meta import Condition, Stored, Value

API_VERSION = f"{GROUP}/{VERSION}"
ROLE_KIND, USER_KIND = "EtcdRole", "EtcdUser"

MARK = f"{GROUP}/managed/"
"""The prefix of names of roles, and of keys, in etcd that are reserved for the operator (decision 042)."""

READY = "Ready"
"""The condition of both kinds: whether etcd has what the spec asks for."""

USER_ANNOTATION = f"{GROUP}/user"
"""On a connection Secret: the user in etcd that it is for."""

ROTATED_ANNOTATION = f"{GROUP}/rotated-at"
"""On a connection Secret: since when it has this user and password (RFC 3339, UTC)."""


class ClusterRef(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An EtcdCluster in the namespace of the object, of either group: no two have the same name."""

    name: str  #: The name of the EtcdCluster.


class KeyRange(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys in the order of their bytes."""

    from_: str = msgspec.field(name="from")  #: The first key.
    to: str = ""  #: The first key that is not included. Default: no end.


class PermissionSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access to keys; exactly one of key, prefix and range is set."""

    access: Literal["Read", "Write", "ReadWrite"]  #: Read, Write or ReadWrite.
    key: str | None = None  #: One key.
    prefix: str | None = None  #: All keys that begin with this text; all keys, if it is empty.
    range: KeyRange | None = None  #: All keys from one key up to, and not including, another one.


class RoleSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired role."""

    cluster_ref: ClusterRef  #: The cluster that has this role. Immutable.
    #: What the role allows. Permissions add up.
    permissions: tuple[PermissionSpec, ...] = ()


class RoleStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdRole(Stored, frozen=True, kw_only=True):
    """A role in etcd, of the same name: a set of permissions that EtcdUsers get."""

    status: RoleStatus = RoleStatus()


class UserSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired user."""

    cluster_ref: ClusterRef  #: The cluster that has this user. Immutable.
    #: certificate: etcd knows the user by the CN of a client certificate. password: by name and password,
    #: which the operator generates. In both cases the connection Secret contains what a client needs.
    authentication: Literal["certificate", "password"]
    roles: tuple[str, ...] = ()  #: The roles of the user: names of EtcdRoles, or of other roles in etcd.
    #: How long a generated password is used, like 30d, in the units w, d and h. Then the connection Secret
    #: gets another user with the same roles and another password; the former user is valid for half of this
    #: time, and at most for 1d. Default: no rotation.
    rotate_after: str = ""


class UserStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    username: str = ""  #: The user in etcd that the connection Secret is for.
    connection_secret: str = ""  #: The Secret with what a client needs to connect.
    rotation_time: str = ""  #: When the password is replaced next.
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdUser(Stored, frozen=True, kw_only=True):
    """A user in etcd of the same name, and a Secret with which an application connects as this user."""

    status: UserStatus = UserStatus()
