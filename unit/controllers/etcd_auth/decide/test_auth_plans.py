"""What is changed in etcd so that it has the declared users and roles; what is somebody else's remains."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.controllers.etcd_auth.decide.names import role_mark, user_mark
from etcd_operator.controllers.etcd_auth.decide.plan import plan
from etcd_operator.controllers.etcd_auth.decide.state import (
    AddUser,
    AuthState,
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
from unit.controllers.etcd_auth.decide.stores import (
    CERTIFICATE,
    ONE,
    PASSWORD,
    READ_APP,
    UID,
    WRITE_APP,
    Etcd,
    role,
    state,
    user,
)

MARK = user_mark(UID, CERTIFICATE)
READER = role("reader", READ_APP)
APP = user("app", "reader")


def settled(*declared: DesiredRole | DesiredUser) -> Etcd:
    """What etcd has once all of it is carried out."""
    etcd = Etcd()
    etcd.make_all(plan(state(etcd, *declared)).changes)
    assert plan(state(etcd, *declared)).changes == (), "one plan is enough"
    return etcd


def test_declared_users_and_roles_are_added_with_a_mark() -> None:
    etcd = settled(READER, APP)
    assert set(etcd.roles["reader"].values()) == {READ_APP, role_mark(UID)}
    assert etcd.users == {"app": {"reader", MARK}}
    assert etcd.roles[MARK] == {}, "the mark allows nothing"


def test_a_role_is_there_before_a_user_gets_it_and_a_user_before_the_roles() -> None:
    changes = plan(state(Etcd(), APP, READER)).changes
    assert changes.index(AddUser(user="app", of="app", method=CERTIFICATE)) < changes.index(
        GrantRole(user="app", of="app", role=MARK)
    )
    first = next(index for index, each in enumerate(changes) if isinstance(each, GrantRole))
    assert all(index < first for index, each in enumerate(changes) if isinstance(each, GrantPermission))


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (READ_APP, WRITE_APP, [GrantPermission(role="reader", permission=WRITE_APP)]),
        (
            READ_APP,
            ONE,
            [
                GrantPermission(role="reader", permission=ONE),
                RevokePermission(role="reader", permission=READ_APP),
            ],
        ),
    ],
)
def test_what_is_granted_instead_comes_before_what_is_revoked(
    before: object, now: object, changes: list[object]
) -> None:
    etcd = settled(replace(READER, permissions=(before,)), APP)  # type: ignore[arg-type]
    made = plan(state(etcd, replace(READER, permissions=(now,)), APP))  # type: ignore[arg-type]
    assert list(made.changes) == changes


def test_another_role_is_granted_before_the_former_one_is_revoked() -> None:
    writer = role("writer", WRITE_APP)
    etcd = settled(READER, writer, APP)
    assert plan(state(etcd, READER, writer, user("app", "writer"))).changes == (
        GrantRole(user="app", of="app", role="writer"),
        RevokeRole(user="app", of="app", role="reader"),
    )


def test_what_somebody_changed_is_put_back() -> None:
    etcd = settled(READER, APP).with_role("other", ONE)
    etcd.users["app"].add("other")
    etcd.users["app"].add("root")
    etcd.users["app"].discard("reader")
    etcd.roles["reader"][ONE.key, b""] = ONE
    del etcd.roles["reader"][READ_APP.key, READ_APP.range_end]
    made = plan(state(etcd, READER, APP))
    assert made.changes == (
        GrantPermission(role="reader", permission=READ_APP),
        GrantRole(user="app", of="app", role="reader"),
        RevokePermission(role="reader", permission=ONE),
        RevokeRole(user="app", of="app", role="other"),
        RevokeRole(user="app", of="app", role="root"),
    )
    assert made.undeclared_roles == ("other",)


def test_a_password_that_is_not_proven_is_set() -> None:
    app = user("app", method=PASSWORD)
    etcd = settled(app)
    unproven = replace(app, has_other_password=True)
    assert plan(state(etcd, unproven)).changes == (SetPassword(user="app", of="app"),)
    fresh = plan(state(Etcd(), unproven)).changes
    assert not any(isinstance(each, SetPassword) for each in fresh), "it is added with that password"


def test_a_user_who_gets_a_certificate_loses_the_password() -> None:
    etcd = settled(READER, user("app", "reader", method=PASSWORD))
    etcd.make_all(plan(state(etcd, READER, APP)).changes)
    assert (etcd.methods["app"], etcd.users["app"]) == (CERTIFICATE, {"reader", MARK})


@pytest.mark.parametrize("may_remove", [True, False])
def test_whose_object_is_deleted_is_removed_if_that_is_proven(may_remove: bool) -> None:
    etcd = settled(READER, APP)
    made = plan(state(etcd, may_remove=may_remove))
    expected = (DeleteUser(user="app"), DeleteRole(role="reader"))
    assert made.changes == (expected if may_remove else ())
    assert (made.undeclared_users, made.undeclared_roles) == ((), ())


def test_users_are_revoked_before_anything_that_may_fail() -> None:
    etcd = settled(READER, APP)
    made = plan(state(etcd, READER, user("late", "reader")))
    assert made.changes[0] == DeleteUser(user="app")
    assert AddUser(user="late", of="late", method=CERTIFICATE) in made.changes[1:]


def test_a_role_is_deleted_although_a_user_is_to_have_it() -> None:
    etcd = settled(READER, APP)
    made = plan(state(etcd, APP))
    assert made.changes == (DeleteRole(role="reader"),)
    assert made.missing == {"app": ("reader",)}
    etcd.make_all(made.changes)
    again = plan(state(etcd, APP))
    assert (again.changes, again.missing) == ((), made.missing)


def test_a_role_that_somebody_made_can_be_given_but_is_not_changed() -> None:
    etcd = Etcd().with_role("hand-made", ONE)
    etcd.make_all(plan(state(etcd, user("app", "hand-made"))).changes)
    assert etcd.users["app"] == {"hand-made", MARK}
    assert set(etcd.roles["hand-made"].values()) == {ONE}


def test_users_and_roles_of_others_are_never_changed() -> None:
    etcd = Etcd().with_role("reader", ONE).with_user("app", "reader").with_user("root", "root")
    etcd.with_user("old", "reader")
    made = plan(state(etcd, READER, APP))
    assert made.changes == ()
    assert (set(made.taken_roles), set(made.taken_users)) == ({"reader"}, {"app"})
    assert made.undeclared_users == ("old",)


def test_what_has_nothing_granted_is_taken_over() -> None:
    """As it is left behind by an operator that ended right after it added the user or the role."""
    etcd = Etcd().with_role("reader").with_user("app", method=PASSWORD)
    etcd.make_all(plan(state(etcd, READER, APP)).changes)
    assert (etcd.users["app"], etcd.methods["app"]) == ({"reader", MARK}, CERTIFICATE)
    assert set(etcd.roles["reader"].values()) == {READ_APP, role_mark(UID)}


def test_users_of_a_former_cluster_are_kept_and_taken_over_where_they_are_declared() -> None:
    """As after a restore to a new cluster, whose users may connect at once."""
    etcd = settled(READER, APP, user("other", "reader"))
    made = plan(state(etcd, uid="uid-2"))
    assert made.changes == ()
    assert (made.undeclared_users, made.undeclared_roles) == (("app", "other"), ("reader",))
    etcd.make_all(plan(state(etcd, READER, APP, uid="uid-2")).changes)
    assert etcd.users["app"] == {"reader", user_mark("uid-2", CERTIFICATE)}
    assert set(etcd.roles["reader"].values()) == {READ_APP, role_mark("uid-2")}
    assert "other" in etcd.users


def test_what_is_held_remains_as_it_is() -> None:
    etcd = settled(READER, APP)
    held = AuthState(
        uid=UID,
        store=etcd.store,
        held_roles=frozenset({"reader"}),
        held_users=frozenset({"app"}),
        may_remove=True,
    )
    assert plan(held).changes == ()


def test_a_retiring_user_is_kept_and_not_made_again() -> None:
    etcd = settled(READER, user("app", "reader", method=PASSWORD))
    retiring = user("app", "reader", method=PASSWORD, is_retiring=True)
    following = user("app_2", "reader", method=PASSWORD, of="app")
    etcd.make_all(plan(state(etcd, READER, retiring, following)).changes)
    assert set(etcd.users) == {"app", "app_2"}
    assert plan(state(etcd, READER, following)).changes == (DeleteUser(user="app"),)
    assert plan(state(Etcd(), retiring)).changes == ()


def test_nobody_gets_a_mark_or_the_role_root() -> None:
    etcd = settled(user("app")).with_role("root")
    made = plan(state(etcd, user("app"), user("evil", MARK, "root")))
    granted = {each.role for each in made.changes if isinstance(each, GrantRole) and each.user == "evil"}
    assert granted == {MARK}
    assert made.missing == {"evil": (MARK, "root")}


NAMES = ("a", "b")
ROLES = st.sampled_from([None, (), (READ_APP,), (ONE,), (READ_APP, ONE)])
USERS = st.sampled_from(
    [None, *itertools.product([(), ("a",), ("a", "b")], [CERTIFICATE, PASSWORD])],
)
DECLARED = st.tuples(ROLES, ROLES, USERS, USERS)


def declared(chosen: tuple[object, ...]) -> list[DesiredRole | DesiredUser]:
    roles = zip(NAMES, chosen[:2], strict=True)
    users = zip(("u", "v"), chosen[2:], strict=True)
    made: list[DesiredRole | DesiredUser] = [role(n, *ps) for n, ps in roles if ps is not None]  # type: ignore[misc]
    made += [user(n, *each[0], method=each[1]) for n, each in users if each is not None]  # type: ignore[index]
    return made


@given(steps=st.lists(st.tuples(DECLARED, st.integers(0, 12)), min_size=1, max_size=4))
def test_whatever_is_declared_and_wherever_the_operator_ends_etcd_becomes_as_declared(
    steps: list[tuple[tuple[object, ...], int]],
) -> None:
    etcd = Etcd().with_role("hand", ONE).with_user("root", "root").with_user("hand", "hand")
    for chosen, made_before_end in steps:
        wanted = declared(chosen)
        etcd.make_all(plan(state(etcd, *wanted)).changes[:made_before_end])
        etcd.make_all(plan(state(etcd, *wanted)).changes)
        assert plan(state(etcd, *wanted)).changes == ()
        roles = {each.name: each for each in wanted if isinstance(each, DesiredRole)}
        assert {name for name in etcd.roles if not name.startswith("etcd.")} == {"hand", *roles}
        for name, each in roles.items():
            assert set(etcd.roles[name].values()) == {*each.permissions, role_mark(UID)}
        users = {each.name: each for each in wanted if isinstance(each, DesiredUser)}
        assert set(etcd.users) == {"root", "hand", *users}
        for name, asked in users.items():
            assert etcd.users[name] == (asked.roles & roles.keys()) | {user_mark(UID, asked.method)}
            assert etcd.methods[name] is asked.method
    assert (etcd.users["root"], etcd.users["hand"]) == ({"root"}, {"hand"})


@given(before=DECLARED, after=DECLARED)
def test_what_is_allowed_before_and_after_is_allowed_all_the_time(
    before: tuple[object, ...], after: tuple[object, ...]
) -> None:
    """But for users who are replaced, and roles of which the object is gone."""
    etcd = Etcd()
    etcd.make_all(plan(state(etcd, *declared(before))).changes)
    start = allowed(etcd)
    changes = plan(state(etcd, *declared(after))).changes
    replaced = {each.user for each in changes if isinstance(each, DeleteUser)}
    seen = [start, *(allowed(etcd) for each in changes if etcd.make(each) is None)]  # type: ignore[func-returns-value]
    kept = {pair for pair in seen[0] & seen[-1] if pair[0] not in replaced}
    assert all(kept <= each for each in seen)


def allowed(etcd: Etcd) -> set[tuple[str, object]]:
    return {
        (name, (each.key, access))
        for name, roles in etcd.users.items()
        for role_name in roles
        for each in etcd.roles[role_name].values()
        for access in each.access.value.replace("WRITE", " WRITE").split()
    }
