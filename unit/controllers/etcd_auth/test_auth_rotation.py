"""Passwords that are replaced: two users in turn, with a time in which both are valid."""

from collections.abc import Iterator

import pytest

from unit.fakes.apiserver.kinds import SECRETS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import USERS, persistent
from unit.passes.disturbance import run_or_die
from unit.passes.users import SECRET, auth, messages, role, roles_of, secret, user

HOUR = 3600.0


def rotating(world: Bench) -> None:
    """A user whose password lives for two hours, the former one for another hour."""
    world.start()
    world.create(*persistent(size=1))
    world.settle()
    world.create(*role())
    world.create(*user(rotateAfter="2h"))
    world.drain()


def pass_time(world: Bench, seconds: float) -> None:
    """Without all that would happen meanwhile."""
    world.clock.advance(seconds)
    world.wait(31.0)


@pytest.fixture
def made() -> Iterator[Bench]:
    with bench() as world:
        rotating(world)
        yield world


def test_both_users_are_valid_until_the_grace_period_is_over(made: Bench) -> None:
    first = secret(made)
    assert made.status(USERS, "app")["rotationTime"] == made.get(USERS, "app")["status"]["rotationTime"]
    pass_time(made, 2 * HOUR)
    second = secret(made)
    assert (first["username"], second["username"]) == ("app", "app_2")
    assert first["password"] != second["password"]
    assert second.keys() == first.keys(), "nothing of the rotation remains in it"
    assert {name: user.password for name, user in auth(made).users.items()} == {
        "app": first["password"],
        "app_2": second["password"],
    }
    assert roles_of(made, "app") == roles_of(made, "app_2") == {"reader"}
    assert made.status(USERS, "app")["username"] == "app_2"
    pass_time(made, HOUR)
    assert set(auth(made).users) == {"app_2"}
    pass_time(made, HOUR)
    assert secret(made)["username"] == "app"
    assert auth(made).users["app"].password == secret(made)["password"] != first["password"]
    assert messages(made, "DriftCorrected") == []


def test_roles_change_for_both_users(made: Bench) -> None:
    pass_time(made, 2 * HOUR)
    made.edit(USERS, "app", {"spec": {"roles": []}})
    made.drain()
    assert roles_of(made, "app") == roles_of(made, "app_2") == set()


def test_a_user_who_is_deleted_in_the_grace_period_is_gone_with_both_names(made: Bench) -> None:
    pass_time(made, 2 * HOUR)
    made.delete(USERS, "app")
    made.drain()
    assert auth(made).users == {}


@pytest.mark.parametrize("write", range(1, 8))
def test_the_secret_never_has_a_password_that_etcd_has_not_whenever_the_operator_ends(write: int) -> None:
    with bench() as world:
        rotating(world)
        world.kill()
        world.clock.advance(2 * HOUR + 1)
        world.start(dies_at=write)

        def rotate() -> None:
            world.run_until(lambda: secret(world)["username"] == "app_2")
            world.wait(1.0)

        if not run_or_die(world, rotate):
            found = secret(world)
            assert auth(world).users[found["username"]].password == found["password"]
            world.start()
            rotate()
        found = secret(world)
        assert found["username"] == "app_2"
        assert auth(world).users["app_2"].password == found["password"]
        assert "next-password" not in found
        assert world.names(SECRETS) == [SECRET]
