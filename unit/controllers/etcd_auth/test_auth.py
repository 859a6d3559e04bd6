"""EtcdRoles and EtcdUsers at work, in clusters of both groups."""

import base64
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from etcd_operator.api.users import ROTATED_ANNOTATION
from etcd_operator.controllers.etcd_auth import etcd
from etcd_operator.controllers.etcd_auth.reconciler import AuthReconciler
from etcd_operator.errors import Unavailable
from etcd_operator.keys import Key
from unit.fakes.apiserver import Answer, Json, Kind, Request, no_fault
from unit.fakes.apiserver.kinds import SECRETS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import IMPROBABLE, MAKERS, ROLES, USERS, persistent
from unit.passes.users import (
    SECRET,
    auth,
    messages,
    permissions_of,
    ready,
    role,
    roles_of,
    secret,
    user,
)

SOMEBODY = "etcd was changed by somebody else"


@pytest.fixture
def made() -> Iterator[Bench]:
    """A cluster with a role and a user who has a password."""
    with bench() as world:
        world.start()
        world.create(*persistent(size=1))
        world.settle()
        world.create(*role())
        world.create(*user())
        world.drain()
        yield world


@MAKERS
def test_a_declared_user_can_connect_with_what_the_secret_says(
    make: Callable[..., tuple[Kind, Json]],
) -> None:
    with bench() as world:
        world.start()
        world.create(*user())
        world.create(*role())
        world.drain()
        assert ready(world) == ready(world, ROLES, "reader") == ("False", "ClusterNotFound")
        world.create(*make())
        world.settle()
        world.drain()
        assert ready(world) == ready(world, ROLES, "reader") == ("True", "Applied")
        found = secret(world)
        assert (found["host"], found["port"], found["username"]) == ("c.default.svc", "2379", "app")
        assert found["endpoints"] == "http://c.default.svc:2379"
        assert found["uri"] == f"http://app:{found['password']}@c.default.svc:2379"
        assert len(found["password"]) == 43, "32 random bytes"
        assert world.status(USERS, "app")["connectionSecret"] == SECRET
        assert auth(world).users["app"].password == found["password"]
        assert roles_of(world) == {"reader"}
        assert permissions_of(world) == {b"/app/": "READ"}
        (owner,) = world.get(SECRETS, SECRET)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("EtcdUser", "app")


def test_nothing_is_asked_of_etcd_while_nothing_changes(made: Bench) -> None:
    index, revision = made.etcd.etcd.raft_index, auth(made).revision
    writes = made.count_writes()
    made.wait(240.0)
    assert (made.etcd.etcd.raft_index, auth(made).revision) == (index, revision)
    assert made.count_writes() == writes


def test_an_edit_is_applied_and_reported(made: Bench) -> None:
    made.edit(ROLES, "reader", {"spec": {"permissions": [{"prefix": "/app/", "access": "ReadWrite"}]}})
    made.edit(USERS, "app", {"spec": {"roles": []}})
    made.drain()
    assert permissions_of(made) == {b"/app/": "READWRITE"}
    assert roles_of(made) == set()
    assert "revoked role reader from user app" in messages(made, "Applied")
    assert messages(made, "DriftCorrected") == []


def test_what_somebody_changes_in_etcd_is_put_back_and_reported(made: Bench) -> None:
    with made.etcd.etcd.changed:
        auth(made).grant_permission("reader", b"/", b"0", "READWRITE")
        auth(made).add_role("other")
        auth(made).grant_role("app", "other")
        auth(made).revoke_role("app", "reader")
    made.wait(31.0)
    assert roles_of(made) == {"reader"}
    assert permissions_of(made) == {b"/app/": "READ"}
    found = messages(made, "DriftCorrected")
    assert sorted(found) == [
        f"{SOMEBODY}: granted role reader to user app; revoked role other from user app",
        f"{SOMEBODY}: revoked READWRITE from '/' to '0' from role reader",
    ]
    (undeclared,) = messages(made, "UndeclaredUsers")
    assert undeclared.endswith(": role other")


def test_an_etcd_that_does_not_take_the_operator_for_root_is_reported(made: Bench) -> None:
    with made.etcd.etcd.changed:
        auth(made).require_root(None)
    made.wait(31.0)
    assert ready(made) == ready(made, ROLES, "reader") == ("False", "AuthEnabled")
    with made.etcd.etcd.changed:
        auth(made).disable()
    made.wait(61.0)
    assert ready(made) == ("True", "Applied")


def test_a_password_that_somebody_changes_is_set_again(made: Bench) -> None:
    with made.etcd.etcd.changed:
        auth(made).change_password("app", "another")
    made.wait(31.0)
    assert auth(made).users["app"].password == secret(made)["password"]
    revision = auth(made).revision
    made.wait(300.0)
    assert auth(made).revision == revision, "once is enough"


def test_whose_object_is_deleted_loses_all_rights_and_nothing_waits_for_it(made: Bench) -> None:
    made.delete(USERS, "app")
    made.delete(ROLES, "reader")
    assert (made.names(USERS), made.names(ROLES)) == ([], []), "no finalizer"
    made.drain()
    assert (auth(made).users, [name for name in auth(made).roles if "/" not in name]) == ({}, [])
    assert messages(made, "Revoked") == ["deleted user app; deleted role reader"]


def test_a_deletion_while_no_operator_runs_is_noticed_later(made: Bench) -> None:
    made.kill()
    made.delete(USERS, "app")
    made.start()
    made.settle()
    made.drain()
    assert "app" not in auth(made).users
    assert permissions_of(made) == {b"/app/": "READ"}


def test_a_deleted_cluster_is_not_held_up(made: Bench) -> None:
    made.delete(IMPROBABLE, "c")
    made.drain()
    assert made.names(IMPROBABLE) == []
    assert ready(made) == ready(made, ROLES, "reader") == ("False", "ClusterNotFound")
    made.delete(USERS, "app")
    assert made.names(USERS) == []


def test_a_role_that_is_deleted_is_reported_by_its_users(made: Bench) -> None:
    made.delete(ROLES, "reader")
    made.drain()
    assert ready(made) == ("False", "RoleMissing")
    assert roles_of(made) == set()
    made.create(*role())
    made.drain()
    assert ready(made) == ("True", "Applied")
    assert roles_of(made) == {"reader"}


def test_users_and_roles_that_somebody_made_are_not_touched(made: Bench) -> None:
    with made.etcd.etcd.changed:
        auth(made).add_user("theirs", "secret")
        auth(made).add_role("theirs")
        auth(made).grant_permission("theirs", b"a", b"", "READ")
        auth(made).grant_role("theirs", "theirs")
    made.create(*user("theirs"))
    made.create(*role("theirs"))
    made.drain()
    assert ready(made, USERS, "theirs") == ready(made, ROLES, "theirs") == ("False", "NameTaken")
    assert (auth(made).users["theirs"].password, roles_of(made, "theirs")) == ("secret", {"theirs"})
    made.delete(USERS, "theirs")
    made.delete(ROLES, "theirs")
    made.drain()
    assert roles_of(made, "theirs") == {"theirs"}


def test_users_are_no_news_where_nobody_declares_any() -> None:
    with bench() as world:
        world.start()
        world.create(*persistent(size=1))
        world.settle()
        with world.etcd.etcd.changed:
            auth(world).add_user("theirs", "secret")
        world.restart()
        world.settle()
        world.wait(60.0)
        assert messages(world, "UndeclaredUsers") == []
        world.create(*role())
        world.drain()
        assert len(messages(world, "UndeclaredUsers")) == 1


def test_what_is_not_valid_changes_nothing_and_says_why(made: Bench) -> None:
    made.edit(ROLES, "reader", {"spec": {"permissions": [{"access": "Read"}]}})
    made.create(*user("root"))
    made.edit(USERS, "app", {"spec": {"roles": ["root"]}})
    made.drain()
    for kind, name in ((ROLES, "reader"), (USERS, "root"), (USERS, "app")):
        assert ready(made, kind, name) == ("False", "InvalidSpec")
    assert permissions_of(made) == {b"/app/": "READ"}
    assert roles_of(made) == {"reader"}
    assert "root" not in auth(made).users


def test_a_secret_of_that_name_that_is_not_the_operators_is_left_alone(made: Bench) -> None:
    made.create(SECRETS, {"metadata": {"name": "other-etcd-connection"}, "data": {"a": "Yg=="}})
    made.create(*user("other"))
    made.drain()
    assert ready(made, USERS, "other") == ("False", "NameConflict")
    assert secret(made, "other-etcd-connection") == {"a": "b"}
    assert "other" not in auth(made).users
    made.delete(SECRETS, "other-etcd-connection")
    made.wait(60.0)
    assert ready(made, USERS, "other") == ("True", "Applied")


def test_a_certificate_needs_a_cluster_that_has_some(made: Bench) -> None:
    made.create(*user("other", authentication="certificate"))
    made.drain()
    assert ready(made, USERS, "other") == ("False", "ClientTLSRequired")
    assert "other" not in auth(made).users


def test_a_secret_that_was_edited_is_put_right(made: Bench) -> None:
    password = secret(made)["password"]
    made.edit(SECRETS, SECRET, {"data": {"host": None, "endpoints": "eA=="}})
    made.edit(USERS, "app", {"metadata": {"labels": {"touch": "1"}}})
    made.drain()
    assert (secret(made)["host"], secret(made)["password"]) == ("c.default.svc", password)
    made.edit(SECRETS, SECRET, {"data": {"password": None}})
    made.wait(301.0)
    assert secret(made)["password"] not in ("", password)
    assert auth(made).users["app"].password == secret(made)["password"]


@pytest.mark.parametrize("harm", ["date", "policy", "fault", "password"])
def test_harm_to_the_secret_of_one_user_holds_up_no_revocation_of_another(made: Bench, harm: str) -> None:
    """Whoever may change one Secret, as its application, or an admission policy."""
    made.create(*user("leaked"))
    made.drain()
    assert "leaked" in auth(made).users
    match harm:
        case "date":
            never = {ROTATED_ANNOTATION: "9999-12-31T23:59:59Z"}
            made.edit(SECRETS, SECRET, {"metadata": {"annotations": never}})
        case "policy":
            made.edit(SECRETS, SECRET, {"metadata": {"annotations": {ROTATED_ANNOTATION: None}}})
            made.api.before = lambda request: Answer(code=422) if _is_of_app(request) else None
        case "fault":
            made.api.before = lambda request: Answer(code=500) if request.plural == "secrets" else None
        case _:
            made.edit(SECRETS, SECRET, {"data": {"password": base64.b64encode(b"x" * 73).decode()}})
    made.wait(310.0)
    made.delete(USERS, "leaked")
    made.wait(60.0)
    assert "leaked" not in auth(made).users
    assert ready(made)[0] == ("False" if harm in ("policy", "fault") else "True")
    made.api.before = no_fault
    made.wait(60.0)
    assert ready(made) == ("True", "Applied")
    assert auth(made).users["app"].password == secret(made)["password"]
    assert len(secret(made)["password"]) == 43


def _is_of_app(request: Request) -> bool:
    return request.path.endswith(f"/{SECRET}") and request.is_write


def test_users_of_a_secret_that_cannot_be_published_keep_their_former_password(made: Bench) -> None:
    made.edit(USERS, "app", {"spec": {"rotateAfter": "1h"}})
    made.drain()
    before = secret(made)["password"]
    is_prepared = False

    def refuse_the_second(request: Request) -> Answer | None:
        nonlocal is_prepared
        if not _is_of_app(request):
            return None
        was_prepared, is_prepared = is_prepared, True
        return Answer(code=422) if was_prepared else None

    made.api.before = refuse_the_second
    made.wait(3700.0)
    assert ready(made) == ("False", "SecretFailed")
    assert (secret(made)["password"], auth(made).users["app"].password) == (before, before)
    made.api.before = no_fault
    made.wait(60.0)
    assert ready(made) == ("True", "Applied")
    assert secret(made)["password"] == auth(made).users["app_2"].password != before


def test_no_user_is_written_to_the_etcd_of_another_cluster(made: Bench) -> None:
    """Which has the address that a pod of this one had, and is not known to be gone."""
    own = made.etcd.etcd.cluster_id
    with made.etcd.etcd.changed:
        made.etcd.etcd.cluster_id = 0xBAD
    reconciler = _reconciler(made)
    made.create(*user("late"))
    assert made.operator is not None
    made.operator.catch_up()
    with pytest.raises(Unavailable, match="answers for another etcd cluster"):
        reconciler.reconcile(Key("default", "c"))
    assert "late" not in auth(made).users
    with made.etcd.etcd.changed:
        made.etcd.etcd.cluster_id = own
    made.wait(60.0)
    assert "late" in auth(made).users


def _reconciler(made: Bench) -> AuthReconciler:
    assert made.operator is not None
    group = next(group for group in made.operator.groups if group.name == "auth")
    reconcile: Any = group.controllers[0].reconcile
    found: AuthReconciler = reconcile.__self__
    return found


def test_a_cluster_without_a_quorum_is_waited_for(made: Bench) -> None:
    made.etcd.etcd.elect_slowly()
    made.etcd.etcd.freeze("c-0")
    made.run_until(lambda: made.condition(IMPROBABLE, "Available")["status"] == "False")
    made.create(*role("writer"))
    hangs = patch.object(etcd, "read", side_effect=AssertionError("it would hang"))
    with hangs, capture_logs() as logs:
        made.wait(120.0)
    assert "reconcile_failed" not in {each["event"] for each in logs}, "the cluster reports it"
    assert ready(made, ROLES, "writer") == ("False", "ClusterNotReady")
    made.etcd.etcd.elect_slowly(elects=True)
    made.etcd.etcd.thaw("c-0")
    made.wait(120.0)
    assert ready(made, ROLES, "writer") == ("True", "Applied")
