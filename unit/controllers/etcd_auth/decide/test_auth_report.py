"""What the status of an EtcdRole or EtcdUser reports, and what an Event says of the changes."""

import pytest

from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_auth.decide.names import role_mark, user_mark
from etcd_operator.controllers.etcd_auth.decide.report import (
    MISSING,
    TAKEN,
    WAITING,
    Verdict,
    invalid,
    issues_no_certificates,
    needs_client_tls,
    no_cluster,
    of_role,
    of_user,
    refused,
    waiting,
    was_ready,
)
from etcd_operator.controllers.etcd_auth.decide.state import (
    AddRole,
    AddUser,
    AuthPlan,
    Change,
    DeleteRole,
    DeleteUser,
    GrantPermission,
    GrantRole,
    RevokePermission,
    RevokeRole,
    SetPassword,
    described,
)
from etcd_operator.etcd.values import OPEN_END, Access, Permission
from unit.controllers.etcd_auth.decide.stores import CERTIFICATE, READ_APP, UID

USER_MARK = user_mark(UID, CERTIFICATE)


def test_what_is_applied_is_ready() -> None:
    assert of_role("reader", AuthPlan()).is_ready
    assert of_user("app", ["app"], AuthPlan()).is_ready


def test_a_name_that_is_taken_comes_with_the_command_that_frees_it() -> None:
    role = of_role("reader", AuthPlan(taken_roles=frozenset({"reader"})))
    plan = AuthPlan(taken_users=frozenset({"app-b", "other"}), missing={"app": ("reader",)})
    user = of_user("app", ["app-a", "app-b"], plan)
    assert (role.is_ready, role.reason, user.is_ready, user.reason) == (False, TAKEN, False, TAKEN)
    assert "`etcdctl role delete reader`" in role.message
    assert "`etcdctl user delete app-b`" in user.message


def test_roles_that_are_missing_are_named() -> None:
    verdict = of_user("app", ["app"], AuthPlan(missing={"app": ("reader", "writer")}))
    assert (verdict.is_ready, verdict.reason) == (False, MISSING)
    assert "reader, writer" in verdict.message


@pytest.mark.parametrize(
    "verdict",
    [invalid("x"), no_cluster("c"), waiting("x"), refused(), needs_client_tls(), issues_no_certificates()],
)
def test_what_holds_an_object_up_is_not_ready(verdict: Verdict) -> None:
    condition = verdict.condition(3)
    assert (condition.status, condition.reason, condition.observed_generation) == ("False", verdict.reason, 3)


@pytest.mark.parametrize(
    ("conditions", "was"),
    [
        ((), False),
        ((of_role("reader", AuthPlan()).condition(2),), True),
        ((of_role("reader", AuthPlan()).condition(1),), False),
        ((waiting("no leader").condition(2),), False),
    ],
)
def test_a_change_reverts_somebody_only_where_this_generation_was_applied(
    conditions: tuple[Condition, ...], was: bool
) -> None:
    assert waiting("").reason == WAITING
    assert was_ready(conditions, 2) is was


def permission(key: bytes, end: bytes = b"") -> Permission:
    return Permission(key=key, range_end=end, access=Access.READ)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (AddRole(role="reader"), "added role reader"),
        (AddRole(role=USER_MARK), ""),
        (DeleteRole(role="reader"), "deleted role reader"),
        (
            GrantPermission(role="reader", permission=READ_APP),
            "granted READ from '/app/' to '/app0' to role reader",
        ),
        (GrantPermission(role="reader", permission=permission(b"a")), "granted READ of 'a' to role reader"),
        (
            RevokePermission(role="reader", permission=permission(b"a\xff", OPEN_END)),
            r"revoked READ from 'a\\xff' on from role reader",
        ),
        (GrantPermission(role="reader", permission=role_mark(UID)), ""),
        (AddUser(user="app", of="app", method=CERTIFICATE), "added user app"),
        (DeleteUser(user="app", of="app"), "deleted user app"),
        (SetPassword(user="app", of="app"), "set the password of user app"),
        (GrantRole(user="app", of="app", role="reader"), "granted role reader to user app"),
        (GrantRole(user="app", of="app", role=USER_MARK), ""),
        (RevokeRole(user="app", of="app", role="reader"), "revoked role reader from user app"),
        (RevokeRole(user="app", of="app", role=USER_MARK), ""),
    ],
)
def test_an_event_says_what_was_done_and_nothing_of_marks(change: Change, words: str) -> None:
    assert described([change]) == words
    assert described([change, AddRole(role="last")]) == "; ".join(filter(None, [words, "added role last"]))
