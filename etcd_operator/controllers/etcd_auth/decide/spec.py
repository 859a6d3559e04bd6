"""What specs of EtcdRoles and EtcdUsers mean: whether they are valid, and what they ask of etcd."""

from collections.abc import Iterator
from datetime import timedelta

from etcd_operator.api.definitions import user_validations as rules
from etcd_operator.api.users import MARK, PermissionSpec, RoleSpec, UserSpec
from etcd_operator.controllers.etcd_auth.decide.names import ROOT
from etcd_operator.etcd.values import OPEN_END, Access, Permission
from etcd_operator.formats import seconds_of

_ACCESS = {"Read": Access.READ, "Write": Access.WRITE, "ReadWrite": Access.READ_WRITE}
_FIRST_KEY = b"\0"
_LONGEST_SECONDS = 10 * 365 * 86_400.0


def name_problem(name: str, length: str) -> str:
    """What is wrong with the name of an object, or empty; length: the message for one that is too long."""
    if len(name) > rules.LONGEST_NAME:
        return f"metadata.name: {length}"
    return "" if rules.RESERVED.fits(name) else f"metadata.name: {rules.RESERVED.message}"


def role_problem(spec: RoleSpec) -> str:
    """What is wrong with a spec, as the API server reports it; empty if nothing is."""
    found = (
        f"spec.permissions[{number}]{text}"
        for number, each in enumerate(spec.permissions)
        for text in _permission_problems(each)
    )
    return next(found, "")


def user_problem(spec: UserSpec) -> str:
    """What is wrong with a spec, as the API server reports it; empty if nothing is."""
    if ROOT in spec.roles:
        return f"spec.roles[{spec.roles.index(ROOT)}]: {rules.ROOT_ROLE}"
    if spec.rotate_after and not rules.ROTATION.fits(spec.rotate_after):
        return f"spec.rotateAfter: {rules.ROTATION.message}"
    if spec.rotate_after and spec.authentication != "password":
        return f"spec.rotateAfter: {rules.ONLY_PASSWORDS}"
    return ""


def rotate_after(spec: UserSpec) -> timedelta | None:
    """How long a password is used; None: for ever."""
    if not spec.rotate_after:
        return None
    return timedelta(seconds=min(seconds_of(spec.rotate_after), _LONGEST_SECONDS))


def permissions(spec: RoleSpec) -> tuple[Permission, ...]:
    """What etcd stores for a valid spec: one permission for each key and end, with all access to it."""
    found: dict[tuple[bytes, bytes], Access] = {}
    for each in spec.permissions:
        place, access = _place(each), _ACCESS[each.access]
        found[place] = access if found.get(place, access) == access else Access.READ_WRITE
    return tuple(
        Permission(key=key, range_end=end, access=access) for (key, end), access in sorted(found.items())
    )


def end_of_prefix(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else OPEN_END


def _place(spec: PermissionSpec) -> tuple[bytes, bytes]:
    if spec.key is not None:
        return spec.key.encode(), b""
    if spec.prefix is not None:
        prefix = spec.prefix.encode()
        return prefix or _FIRST_KEY, end_of_prefix(prefix)
    if spec.range is None:
        raise ValueError("a permission without a place")
    return spec.range.from_.encode(), spec.range.to.encode() or OPEN_END


def _permission_problems(spec: PermissionSpec) -> Iterator[str]:
    if [spec.key, spec.prefix, spec.range].count(None) != 2:
        yield f": {rules.ONE_PLACE}"
    if spec.key == "":
        yield f".key: {rules.EMPTY_KEY}"
    if spec.key and spec.key.startswith(MARK):
        yield f".key: {rules.MARKED_KEY}"
    if spec.range is not None and not spec.range.from_:
        yield f".range.from: {rules.EMPTY_KEY}"
    if spec.range is not None and spec.range.to and spec.range.to.encode() <= spec.range.from_.encode():
        yield f".range: {rules.ORDER}"
