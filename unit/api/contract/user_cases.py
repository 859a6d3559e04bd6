"""EtcdRoles and EtcdUsers that are refused."""

from typing import Any

from unit.api.contract.case import ABSENT, Case, Manifest

ROLE: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdRole",
    "metadata": {"name": "my-role"},
    "spec": {
        "clusterRef": {"name": "my-cluster"},
        "permissions": [{"prefix": "/app/", "access": "ReadWrite"}],
    },
}
USER: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdUser",
    "metadata": {"name": "my-user"},
    "spec": {
        "clusterRef": {"name": "my-cluster"},
        "roles": ["my-role"],
        "authentication": "password",
        "rotateAfter": "30d",
    },
}
_ONE = "key, prefix and range are alternatives: set exactly one of them"
_EMPTY = "must not be empty: use an empty prefix for all keys"
_ORDER = "to must be greater than from, in the order of bytes, or be left out"
_RESERVED = "root, etcd and names that begin with etcd- are reserved for the operator: choose another name"
_CLUSTER = (
    "spec.clusterRef: Invalid value: Unsupported changes: spec.clusterRef cannot be changed after creation: "
    "restore the earlier value"
)
_DURATION = "must be a duration in the units w, d and h, like 30d or 1d12h"
_AT = "spec.permissions[0]"


def permission(**place: Any) -> dict[str, Any]:
    return {"spec/permissions": [{"access": "Read", **place}]}


def _names(base: Manifest, length: str) -> tuple[Case, ...]:
    reserved = (
        Case(
            typed=f"name: {name}",
            base=base,
            changes={"metadata/name": name},
            sees=f"metadata.name: Invalid value: {_RESERVED}",
        )
        for name in ("root", "etcd", "etcd-peer")
    )
    long = Case(
        typed="a name of 64 characters",
        base=base,
        changes={"metadata/name": "n" * 64},
        sees=f"metadata.name: Invalid value: must have at most 63 characters{length}: choose a shorter name",
    )
    other = Case(
        typed="another clusterRef",
        base=base,
        changes={"spec/clusterRef/name": "other"},
        sees=_CLUSTER,
        edits=True,
    )
    return (*reserved, long, other)


ROLE_CASES = (
    *_names(ROLE, ""),
    Case(
        typed="a permission for nothing",
        base=ROLE,
        changes=permission(),
        sees=f"{_AT}: Invalid value: {_ONE}",
    ),
    Case(
        typed="a permission for a key and a prefix",
        base=ROLE,
        changes=permission(key="a", prefix="b"),
        sees=f"{_AT}: Invalid value: {_ONE}",
    ),
    Case(
        typed='key: ""',
        base=ROLE,
        changes=permission(key=""),
        sees=f'{_AT}.key: Invalid value: "": {_EMPTY}',
    ),
    Case(
        typed="key: etcd.improbable.io/managed/a",
        base=ROLE,
        changes=permission(key="etcd.improbable.io/managed/a"),
        sees=f'{_AT}.key: Invalid value: "etcd.improbable.io/managed/a": keys that begin with '
        "etcd.improbable.io/managed/ are reserved for the operator: choose another key",
    ),
    Case(
        typed='from: ""',
        base=ROLE,
        changes=permission(range={"from": "", "to": "b"}),
        sees=f'{_AT}.range.from: Invalid value: "": {_EMPTY}',
    ),
    Case(
        typed="a range from b to a",
        base=ROLE,
        changes=permission(range={"from": "b", "to": "a"}),
        sees=f"{_AT}.range: Invalid value: {_ORDER}",
    ),
    Case(
        typed="access: Admin",
        base=ROLE,
        changes={"spec/permissions": [{"key": "a", "access": "Admin"}]},
        sees=f'{_AT}.access: Unsupported value: "Admin": supported values: "Read", "ReadWrite", "Write"',
    ),
    Case(
        typed="no clusterRef",
        base=ROLE,
        changes={"spec/clusterRef": ABSENT},
        sees="spec.clusterRef: Required value",
    ),
)

USER_CASES = (
    *_names(USER, ", because it is the CN of a certificate"),
    Case(
        typed="roles: [root]",
        base=USER,
        changes={"spec/roles": ["root"]},
        sees='spec.roles[0]: Invalid value: "root": the role root is reserved for the operator: grant a role '
        "with the permissions that are needed",
    ),
    *(
        Case(
            typed=f'rotateAfter: "{text}"',
            base=USER,
            changes={"spec/rotateAfter": text},
            sees=f'spec.rotateAfter: Invalid value: "{text}": {_DURATION}',
        )
        for text in ("30", "90m", "0d", "-1d", "1.5d")
    ),
    Case(
        typed="rotateAfter with authentication: certificate",
        base=USER,
        changes={"spec/authentication": "certificate"},
        sees="spec.rotateAfter: Invalid value: belongs to authentication: password. Certificates are renewed "
        "without it",
    ),
    Case(
        typed="no authentication",
        base=USER,
        changes={"spec/authentication": ABSENT},
        sees="spec.authentication: Required value",
    ),
)
