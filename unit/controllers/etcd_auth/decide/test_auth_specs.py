"""What specs of EtcdRoles and EtcdUsers stand for, and which are not valid."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.api.definitions.user_validations import NAME_LENGTH, ROLE_NAME_LENGTH
from etcd_operator.api.users import RoleSpec, UserSpec
from etcd_operator.controllers.etcd_auth.decide.spec import (
    end_of_prefix,
    name_problem,
    permissions,
    role_problem,
    rotate_after,
    user_problem,
)
from etcd_operator.etcd.values import OPEN_END, Access, Permission
from unit.api.contract.case import Case, changed
from unit.api.contract.user_cases import ROLE_CASES, USER_CASES


def spec_of(*asked: dict[str, Any]) -> RoleSpec:
    return msgspec.convert({"clusterRef": {"name": "c"}, "permissions": list(asked)}, RoleSpec)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"key": "a"}, (b"a", b"")),
        ({"prefix": "/app/"}, (b"/app/", b"/app0")),
        ({"prefix": ""}, (b"\0", OPEN_END)),
        ({"prefix": "\u00e9"}, (b"\xc3\xa9", b"\xc3\xaa")),
        ({"range": {"from": "a", "to": "b"}}, (b"a", b"b")),
        ({"range": {"from": "a"}}, (b"a", OPEN_END)),
    ],
)
def test_keys_are_bytes(asked: dict[str, Any], place: tuple[bytes, bytes]) -> None:
    spec = spec_of({**asked, "access": "ReadWrite"})
    assert role_problem(spec) == ""
    key, end = place
    assert permissions(spec) == (Permission(key=key, range_end=end, access=Access.READ_WRITE),)


def test_a_permission_for_no_keys_never_becomes_one_for_all() -> None:
    with pytest.raises(ValueError, match="without a place"):
        permissions(spec_of({"access": "Read"}))


def test_permissions_for_the_same_keys_add_up() -> None:
    same = {"prefix": "a"}, {"range": {"from": "a", "to": "b"}}
    read, write = ({**same[0], "access": "Read"}, {**same[1], "access": "Write"})
    (both,) = permissions(spec_of(read, write))
    assert both.access is Access.READ_WRITE
    (one,) = permissions(spec_of(read, read))
    assert one.access is Access.READ


@given(st.binary(max_size=4), st.binary(max_size=4))
def test_the_end_of_a_prefix_parts_what_begins_with_it(prefix: bytes, key: bytes) -> None:
    end = end_of_prefix(prefix)
    assert key.startswith(prefix) is (prefix <= key and (end == OPEN_END or key < end))


RULES = [case for case in (*ROLE_CASES, *USER_CASES) if case.is_by_rule and not case.edits]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.typed)
def test_what_the_api_server_refuses_is_refused_here_with_the_same_words(case: Case) -> None:
    body = changed(case.base, case.changes)
    if body["kind"] == "EtcdRole":
        wrong = role_problem(msgspec.convert(body["spec"], RoleSpec))
    else:
        wrong = user_problem(msgspec.convert(body["spec"], UserSpec))
    length = ROLE_NAME_LENGTH if body["kind"] == "EtcdRole" else NAME_LENGTH
    found = wrong or name_problem(body["metadata"]["name"], length)
    assert found == re.sub(r' Invalid value:( ".*":)?', "", case.sees)


def test_how_long_a_password_is_used() -> None:
    asked = {"clusterRef": {"name": "c"}, "authentication": "password", "rotateAfter": "1w1d"}
    spec = msgspec.convert(asked, UserSpec)
    assert rotate_after(spec) == timedelta(days=8)
    assert rotate_after(msgspec.structs.replace(spec, rotate_after="")) is None
