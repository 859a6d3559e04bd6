"""Nothing is removed from etcd because an object only seems to be deleted."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_auth.caches import AuthCaches
from etcd_operator.kube.store import Store
from unit.passes.bench import Bench, bench
from unit.passes.bodies import ROLES, USERS, persistent
from unit.passes.unreadable import mend, spoil
from unit.passes.users import auth, permissions_of, ready, role, roles_of, user


@pytest.fixture
def made() -> Iterator[Bench]:
    with bench() as world:
        world.start()
        world.create(*persistent(size=1))
        world.settle()
        world.create(*role())
        world.create(*user())
        world.drain()
        yield world


def test_caches_that_lack_an_object_remove_nothing(made: Bench) -> None:
    """As those of an operator whose API server is behind."""
    nothing = patch.object(Store, "values", lambda _: ())
    with nothing, patch.object(AuthCaches, "users_of", lambda *_: ()):
        made.edit(ROLES, "reader", {"metadata": {"labels": {"touch": "1"}}})
        made.wait(5.0)
    assert roles_of(made) == {"reader"}
    made.wait(61.0)
    assert ready(made) == ("True", "Applied")


@pytest.mark.parametrize("kind", [ROLES, USERS], ids=["role", "user"])
def test_objects_that_cannot_be_read_are_not_deleted_ones(made: Bench, kind: object) -> None:
    """Also for an operator that has never read them, and also where another one can be."""
    name = "reader" if kind is ROLES else "app"
    made.kill()
    before = spoil(made, kind, name, "conditions", 5)  # type: ignore[arg-type]
    made.start()
    made.settle()
    made.create(*role("other"))
    made.drain()
    assert "app" in auth(made).users
    assert permissions_of(made) == {b"/app/": "READ"}
    assert ready(made, ROLES, "other") == ("True", "Applied")
    mend(made, kind, before, name)  # type: ignore[arg-type]
    made.wait(61.0)
    assert roles_of(made) == {"reader"}


def test_a_deletion_is_carried_out_once_nothing_unreadable_is_left(made: Bench) -> None:
    made.create(*role("odd"))
    made.drain()
    before = spoil(made, ROLES, "odd", "conditions", 5)
    made.delete(USERS, "app")
    made.wait(31.0)
    assert "app" in auth(made).users
    mend(made, ROLES, before, "odd")
    made.wait(61.0)
    assert "app" not in auth(made).users
