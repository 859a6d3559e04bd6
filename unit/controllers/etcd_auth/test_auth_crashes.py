"""A crash or a lost reply at each write for a role and a user: etcd becomes as declared."""

import pytest

from unit.passes.bench import bench
from unit.passes.bodies import USERS, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, run_or_die
from unit.passes.users import auth, permissions_of, ready, role, roles_of, secret, user

MOST_WRITES = 20


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_a_user_is_added_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on and write < MOST_WRITES:
        with bench() as made:
            made.start()
            made.create(*persistent(size=1))
            made.settle()
            made.kill()
            made.create(*role())
            made.create(*user())
            has_come = disturbance.arrange(made, write)

            def end() -> None:
                made.run_until(lambda: ready(made) == ("True", "Applied"))

            if not run_or_die(made, end):
                made.start()
                end()
            assert auth(made).users["app"].password == secret(made)["password"]
            assert roles_of(made) == {"reader"}
            assert permissions_of(made) == {b"/app/": "READ"}
            assert made.names(USERS) == ["app"]
            goes_on, write = has_come(), write + 1
    assert write > 8
