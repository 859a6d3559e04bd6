"""What is planned for users and roles can be carried out by etcd, and is then all that is to be done."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_auth import etcd
from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep, AuthSwitch
from etcd_operator.controllers.etcd_auth.decide.names import Method
from etcd_operator.controllers.etcd_auth.decide.plan import plan
from etcd_operator.controllers.etcd_auth.decide.spec import end_of_prefix
from etcd_operator.controllers.etcd_auth.decide.state import AuthState, AuthStore, DesiredRole, DesiredUser
from etcd_operator.controllers.etcd_auth.switch import switch
from etcd_operator.errors import Forbidden
from etcd_operator.etcd.values import OPEN_END, Access, Permission
from unit.etcd.contract.authority import Authority
from unit.etcd.contract.harness import Subject

READER = DesiredRole(
    name="reader",
    permissions=(
        Permission(key=b"\0", range_end=OPEN_END, access=Access.READ),
        Permission(key=b"/app/", range_end=end_of_prefix(b"/app/"), access=Access.READ_WRITE),
        Permission(key="é".encode(), access=Access.WRITE),
    ),
)
CERTIFIED = DesiredUser(name="app", of="app", method=Method.CERTIFICATE, roles=frozenset({"reader"}))
NAMED = DesiredUser(name="pass_2", of="pass", method=Method.PASSWORD, roles=frozenset({"reader"}))
EMPTY = AuthStore(users={}, roles={})
DECLARED = AuthState(uid="uid-1", store=EMPTY, roles=(READER,), users=(CERTIFIED, NAMED), may_remove=True)


def apply(subject: Subject, declared: AuthState) -> etcd.Found:
    """Carry out what is planned, as a pass does; what etcd has then."""
    found = read(subject)
    passwords = {"pass_2": "secret"}
    etcd.carry_out(found.client, plan(replace(declared, store=found.store)).changes, passwords, lambda: None)
    after = read(subject)
    assert plan(replace(declared, store=after.store)).changes == ()
    return after


def read(subject: Subject) -> etcd.Found:
    cluster_id = subject.client("m0").status().cluster_id
    return etcd.read(subject.channels, [subject.endpoint("m0")], cluster_id, lambda *_: None)


def test_users_are_required_and_then_no_more(secured: Subject, authority: Authority) -> None:
    """Each step repeated, as after a lost reply. The operator is root by its certificate only."""
    secured.bootstrap("m0")
    app = type(secured.client("m0"))(authority.of("app"), secured.endpoint("m0"), deadline=10.0)
    steps: list[AuthStep] = []
    for wanted in (True, True, False, False, True):
        found = read(secured)
        state = AuthSwitch(
            wanted=wanted,
            is_enabled=found.status.is_enabled,
            requires_certificates=True,
            root_roles=found.store.users.get("root"),
        )
        for _ in range(2):
            taken, held = switch(found.client, state, lambda _: None)
            steps += taken
            assert held == ""
        assert read(secured).status.is_enabled is wanted
        if wanted:
            with pytest.raises(Forbidden):
                app.put(b"a", b"1")
        else:
            app.put(b"a", b"1")
    first = (AuthStep.ADD_ROOT, AuthStep.GRANT_ROOT, AuthStep.ENABLE)
    # What is there already is noticed.
    repeated = (AuthStep.ADD_ROOT, AuthStep.ENABLE)
    again = (AuthStep.DISABLE, AuthStep.DISABLE, AuthStep.ENABLE, AuthStep.ENABLE)
    assert tuple(steps) == (*first, *repeated, *again)


def test_a_user_who_is_declared_meets_no_refusal_while_users_become_required_and_no_more(
    secured: Subject, authority: Authority
) -> None:
    """Writes one key after the other all the time; of three members, the others are asked for the change."""
    secured.bootstrap("m0", "m1", "m2")
    apply(secured, DECLARED)
    app = type(secured.client("m1"))(authority.of("app"), secured.endpoint("m1"), deadline=10.0)
    is_over, written = threading.Event(), list[int]()

    def write() -> None:
        while not is_over.is_set():
            app.put(b"/app/%d" % len(written), b"1")
            written.append(len(written))

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        for wanted in (True, False, True, False):
            found, before = read(secured), len(written)
            state = AuthSwitch(
                wanted=wanted,
                is_enabled=found.status.is_enabled,
                requires_certificates=True,
                root_roles=found.store.users.get("root"),
            )
            switch(found.client, state, lambda _: None)
            secured.until(lambda before=before: len(written) > before + 20 or writer.done())  # type: ignore[misc]
        is_over.set()
        writer.result(timeout=30.0)
    found = read(secured)
    assert not found.status.is_enabled
    assert all(app.get(b"/app/%d" % number) is not None for number in written)


def test_etcd_becomes_as_declared_and_users_may_what_their_roles_allow(
    secured: Subject, authority: Authority
) -> None:
    secured.bootstrap("m0")
    found = apply(secured, DECLARED)
    assert set(found.store.users) == {"app", "pass_2"}
    secured.enable_auth("m0", None)
    apply(secured, DECLARED)
    app = type(secured.client("m0"))(authority.of("app"), secured.endpoint("m0"), deadline=10.0)
    app.put(b"/app/a", b"1")
    assert app.get(b"any") is None
    with pytest.raises(Forbidden):
        app.put(b"any", b"1")
    assert etcd.has_password(found.client, "pass_2", "secret")
    assert not etcd.has_password(found.client, "pass_2", "other")
    assert not etcd.has_password(found.client, "app", "secret")

    narrowed = replace(READER, permissions=READER.permissions[:1])
    apply(secured, replace(DECLARED, roles=(narrowed,)))
    with pytest.raises(Forbidden):
        app.put(b"/app/a", b"1")
    found = apply(secured, replace(DECLARED, roles=(), users=()))
    assert set(found.store.users) == {"root"}
    assert {name for name in found.store.roles if "/" not in name} <= {"root"}
    with pytest.raises(Forbidden):
        app.get(b"/app/a")
