"""Users and roles: what is stored, what refuses, and who may call what once authentication is enabled."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.errors import Conflict, Forbidden, Invalid
from etcd_operator.etcd import errors
from etcd_operator.etcd.auth import AuthClient
from etcd_operator.etcd.values import OPEN_END, Access, AuthStatus, Permission
from unit.etcd.contract.authority import Authority
from unit.etcd.contract.harness import Subject, new_peer_url

APP = Permission(key=b"/app/", range_end=b"/app0", access=Access.READ)
ONE = Permission(key=b"one", access=Access.WRITE)
REST = Permission(key=b"x", range_end=OPEN_END, access=Access.READ_WRITE)


def test_roles_keep_one_permission_for_each_key_and_end(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.users("m0")
    assert (client.roles(), client.permissions_of("app")) == ((), None)
    assert client.add_role("app")
    assert not client.add_role("app")
    assert client.permissions_of("app") == ()
    for permission in (REST, APP, ONE, APP):
        client.grant_permission("app", permission)
    assert client.permissions_of("app") == (APP, ONE, REST)
    more = Permission(key=APP.key, range_end=APP.range_end, access=Access.READ_WRITE)
    client.grant_permission("app", more)
    client.revoke_permission("app", ONE.key, ONE.range_end)
    client.revoke_permission("app", ONE.key, ONE.range_end)
    assert client.permissions_of("app") == (more, REST)
    with pytest.raises(Invalid):
        client.grant_permission("app", Permission(key=b"b", range_end=b"a", access=Access.READ))
    with pytest.raises(errors.RoleNotFound):
        client.grant_permission("other", APP)
    client.delete_role("app")
    client.delete_role("app")
    assert client.roles() == ()


def test_users_have_roles_that_exist(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.users("m0")
    assert (client.users(), client.roles_of("app")) == ((), None)
    assert client.add_user("app", "secret")
    assert not client.add_user("app", None), "whatever the password"
    with pytest.raises(errors.RoleNotFound):
        client.grant_role("app", "reader")
    with pytest.raises(errors.UserNotFound):
        client.grant_role("other", "root")
    with pytest.raises(errors.UserNotFound):
        client.change_password("other", "secret")
    client.add_role("reader")
    client.add_role("writer")
    for role in ("writer", "reader", "reader"):
        client.grant_role("app", role)
    assert client.roles_of("app") == ("reader", "writer")
    client.revoke_role("app", "writer")
    client.revoke_role("app", "writer")
    assert client.roles_of("app") == ("reader",)
    client.delete_role("reader")
    assert client.roles_of("app") == (), "a role is deleted also where it is in use"
    assert client.users() == ("app",)
    client.delete_user("app")
    client.delete_user("app")
    assert client.users() == ()


def test_users_are_required_once_there_is_a_root_and_each_change_has_a_revision(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.users("m0")
    before = client.auth_status()
    own = client.status().cluster_id
    assert before == AuthStatus(is_enabled=False, revision=1, cluster_id=own)
    with pytest.raises(Conflict, match="root user does not exist"):
        client.auth_enable()
    with pytest.raises(errors.AuthNotEnabled):
        client.authenticate("root", "secret")
    client.add_user("root", "secret")
    with pytest.raises(Conflict, match="root user does not have root role"):
        client.auth_enable()
    client.grant_role("root", "root")
    client.auth_enable()
    root = subject.users("m0", token=client.authenticate("root", "secret"))
    assert root.auth_status() == AuthStatus(is_enabled=True, revision=3, cluster_id=own)
    root.auth_enable()
    with pytest.raises(Invalid):
        root.delete_user("root")
    with pytest.raises(Invalid):
        root.revoke_role("root", "root")
    root.auth_disable()
    assert client.auth_status() == AuthStatus(is_enabled=False, revision=4, cluster_id=own)
    subject.until(lambda: subject.page("m0").auth_revision == 4)


def test_a_password_that_was_changed_is_refused_with_the_tokens_for_it(secured: Subject) -> None:
    secured.bootstrap("m0")
    secured.enable_auth("m0", None)
    root = secured.users("m0")
    root.add_user("app", "planted-1")
    root.add_user("cert", None)
    token = root.authenticate("app", "planted-1")
    root.change_password("app", "planted-2")
    for name, password in (("app", "planted-1"), ("cert", "planted-1"), ("root", ""), ("no", "planted-1")):
        with pytest.raises(errors.AuthRequired) as caught:
            root.authenticate(name, password)
        assert "planted" not in f"{caught.value!r} {caught.value} {root!r}"
    with pytest.raises(errors.AuthRequired):
        secured.client("m0", token=token).status()
    fresh = root.authenticate("app", "planted-2")
    assert secured.users("m0", token=fresh).roles_of("app") == ()
    root.change_password("cert", "planted-1")
    with pytest.raises(errors.AuthRequired):
        root.authenticate("cert", "planted-1")
    root.delete_user("app")
    with pytest.raises(errors.AuthRequired):
        secured.client("m0", token=fresh).status()


Do = Callable[[AuthClient], Any]
CALLS: dict[str, Do] = {
    "Status": lambda client: client.status(),
    "MemberList": lambda client: client.member_list(linearizable=True),
    "MemberList, of one": lambda client: client.member_list(linearizable=False),
    "Alarm": lambda client: client.alarms(),
    "Range": lambda client: client.has_quorum(deadline=10.0),
    "HashKV": lambda client: client.hash_kv(),
    "Snapshot": lambda client: list(client.snapshot(stall=10.0)),
    "MemberRemove": lambda client: client.member_remove("1"),
    "UserList": lambda client: client.users(),
    "RoleList": lambda client: client.roles(),
    "UserGet, own": lambda client: client.roles_of("app"),
    "RoleGet, own": lambda client: client.permissions_of("reader"),
    "RoleGet, other": lambda client: client.permissions_of("writer"),
    "RoleAdd": lambda client: client.add_role("new"),
    "AuthDisable": lambda client: client.auth_disable(),
}
ANYBODY = {"Status", "MemberList", "MemberList, of one", "Alarm", "Range"}
OWN = {"UserGet, own", "RoleGet, own"}


def outcome(do: Do, client: AuthClient) -> type[Exception] | None:
    try:
        do(client)
    except Forbidden as error:
        return type(error)
    return None


def test_each_certificate_may_call_what_its_user_may(secured: Subject, authority: Authority) -> None:
    secured.bootstrap("m0")
    root = secured.users("m0")
    root.add_role("reader")
    root.add_role("writer")
    root.grant_permission("reader", APP)
    root.add_user("app", None)
    root.grant_role("app", "reader")
    secured.enable_auth("m0", None)
    refusals = {"app": errors.PermissionDenied, "stranger": errors.UserNotFound, "": errors.AuthRequired}
    for user, refusal in refusals.items():
        client = secured.users("m0", by=authority.of(user))
        found = {name: outcome(do, client) for name, do in CALLS.items()}
        may = ANYBODY | OWN if user == "app" else ANYBODY
        # What is refused because the caller is no user looks as if the user that is read did not exist.
        expected: dict[str, type[Exception] | None] = {name: refusal for name in CALLS if name not in may}
        if user == "stranger":
            expected["UserGet, own"] = None
            assert client.roles_of("app") is None
        assert {name: error for name, error in found.items() if error is not None} == {
            name: error for name, error in expected.items() if error is not None
        }, user
    assert {name: outcome(do, root) for name, do in CALLS.items()} == dict.fromkeys(CALLS)


def test_roles_decide_about_keys_and_a_token_comes_before_the_certificate(
    secured: Subject, authority: Authority
) -> None:
    secured.bootstrap("m0")
    secured.client("m0").put(b"/app/a", b"1")
    root = secured.users("m0")
    root.add_role("reader")
    root.grant_permission("reader", APP)
    root.add_user("app", None)
    root.add_user("pass", "secret")
    root.grant_role("app", "reader")
    secured.enable_auth("m0", None)
    app = type(secured.client("m0"))(authority.of("app"), secured.endpoint("m0"))
    assert app.get(b"/app/a") is not None
    for refused in (lambda: app.get(b"/app0"), lambda: app.put(b"/app/a", b"2")):
        with pytest.raises(errors.PermissionDenied):
            refused()
    with pytest.raises(errors.AuthRequired, match=re.escape("invalid auth token")):
        secured.client("m0", token="stale").status()
    with pytest.raises(errors.PermissionDenied):
        secured.client("m0", token=root.authenticate("pass", "secret")).get(b"/app/a")


def test_a_follower_does_not_promote_for_a_certificate(secured: Subject) -> None:
    secured.bootstrap("m0", "m1")
    secured.enable_auth("m0", None)
    statuses = {name: secured.users(name).status() for name in ("m0", "m1")}
    leader, follower = sorted(statuses, key=lambda name: not statuses[name].is_leader)
    peer_url = new_peer_url()
    # Refused until the members have been connected for 5 s.
    secured.until(lambda: bool(secured.users(leader).member_add((peer_url,), learner=True)))
    secured.join("m2", peer_url)
    learner = secured.users("m2")
    secured.until(lambda: learner.status().is_learner)
    member_id = learner.status().member_id
    with pytest.raises(errors.Timeout):
        secured.users(follower, deadline=1.0).member_promote(member_id)
    secured.until(lambda: secured.users(leader).member_promote(member_id))
