"""A cluster with many EtcdUsers: no pass holds a worker for long, and all get their turn."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.users import EtcdUser
from etcd_operator.controllers.etcd_auth.declared import declared_user
from etcd_operator.controllers.etcd_auth.turns import LONGEST, Turns
from etcd_operator.keys import Key
from unit.fakes.apiserver import Request
from unit.fakes.apiserver.kinds import SECRETS
from unit.fakes.clock import FakeClock
from unit.passes.bench import Bench, bench
from unit.passes.bodies import USERS, persistent
from unit.passes.users import auth, ready, role, user

NAMES = [f"app-{number}" for number in range(7)]
SLOW = LONGEST / 4


@contextmanager
def many(*, is_slow: bool = True) -> Iterator[tuple[Bench, Counter[str]]]:
    """Users that appear all at once, and an API server that takes long for each Secret."""
    reads: Counter[str] = Counter()

    with bench() as made:

        def slowly(request: Request) -> None:
            if request.plural == "secrets" and request.method == "GET":
                reads[request.path.rpartition("/")[2].removesuffix("-etcd-connection")] += 1
                made.clock.advance(SLOW if is_slow else 0.0)

        made.start()
        made.create(*persistent(size=1))
        made.settle()
        made.create(*role())
        made.drain()
        made.kill()
        for name in NAMES:
            made.create(*user(name))
        made.api.before = slowly
        made.start()
        yield made, reads


def are_ready(made: Bench) -> bool:
    return all(ready(made, USERS, name) == ("True", "Applied") for name in NAMES)


def passwords(made: Bench) -> dict[str, str | None]:
    return {name: auth(made).users[name].password for name in NAMES}


def test_a_pass_leaves_to_the_next_one_what_it_has_no_time_for() -> None:
    with many() as (made, _):
        made.run_until(lambda: ready(made, USERS, NAMES[0])[0] == "True")
        assert len(made.names(SECRETS)) == 2, "two requests for each new Secret"
        assert ready(made, USERS, NAMES[-1]) == ("", ""), "nothing is written about the others"
        made.run_until(lambda: are_ready(made))
        assert set(NAMES) <= auth(made).users.keys()


def test_in_each_round_each_secret_is_read_once_and_nothing_is_changed() -> None:
    with many() as (made, reads):
        made.run_until(lambda: are_ready(made))
        made.wait(600.0)
        before, known = dict(reads), passwords(made)
        made.delete(SECRETS, f"{NAMES[-1]}-etcd-connection")
        made.run_until(lambda: f"{NAMES[-1]}-etcd-connection" in made.names(SECRETS))
        made.drain()
        counts = {reads[name] - before[name] for name in NAMES[:-1]}
        assert max(counts) <= 2
        after = passwords(made)
        assert {name for name in NAMES if after[name] != known[name]} == {NAMES[-1]}


def test_what_somebody_changes_in_the_middle_of_a_round_is_put_back() -> None:
    with many() as (made, _):
        made.run_until(lambda: ready(made, USERS, NAMES[0])[0] == "True")
        auth(made).users[NAMES[0]].roles.discard("reader")
        auth(made).revision += 1
        made.run_until(lambda: are_ready(made))
        made.wait(60.0)
        assert "reader" in auth(made).users[NAMES[0]].roles


def test_a_user_that_is_deleted_loses_its_rights_in_the_middle_of_a_round() -> None:
    with many() as (made, _):
        made.run_until(lambda: ready(made, USERS, NAMES[0])[0] == "True")
        made.delete(USERS, NAMES[0])
        made.run_until(lambda: NAMES[0] not in auth(made).users)


def test_few_users_are_one_pass() -> None:
    with many(is_slow=False) as (made, reads):
        made.drain()
        assert are_ready(made)
        assert {reads[name] for name in NAMES} == {2}


def test_in_a_round_a_password_is_doubtful_as_long_as_it_was_when_the_round_began() -> None:
    """The passes of the round change the revision themselves."""
    clock, key = FakeClock(), Key("default", "c")
    turns = Turns(clock=clock)
    users = [declared_user(EtcdUser(metadata=ObjectMeta(name=name))) for name in NAMES]
    first = turns.begin(key, users, inputs=(), revision=9, settled_at=7)
    assert not first.is_over()
    clock.advance(LONGEST)
    assert first.is_over()
    users[-1].wait()
    assert turns.end(key, first, revision=10)
    assert turns.begin(key, users, inputs=(), revision=10, settled_at=10).proven == 7
    assert turns.begin(key, users, inputs=(), revision=10, settled_at=10).proven == 10, "a new round"
