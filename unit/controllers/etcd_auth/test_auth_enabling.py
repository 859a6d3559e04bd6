"""Authentication is enabled once users are there, and disabled again, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.errors import Forbidden
from etcd_operator.etcd.channel import Channels, TlsCredentials
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS, SECRETS
from unit.fakes.clock import FakeClock
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, USERS, ephemeral, persistent
from unit.passes.disturbance import (
    DISTURBANCES,
    AtNthWrite,
    Disturbance,
    EachWrite,
    run_or_die,
)
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.restored_clusters import stored
from unit.passes.users import auth, messages, ready, role, roles_of, secret, user

TLS: dict[str, Any] = {"client": {"auto": {}}}
ON: dict[str, Any] = {"auth": {"enabled": True}}
OFF: dict[str, Any] = {"auth": {"enabled": False}}
Make = Callable[..., tuple[Kind, Json]]


@contextmanager
def served(
    make: Make, size: int = 1, *, ago: timedelta = timedelta(0), **spec: Any
) -> Iterator[tuple[Bench, Kind]]:
    """A cluster with TLS for clients, a role and a user of each method."""
    with bench(FakeClock(datetime.now(UTC) - ago)) as made:  # the time by which connections are verified
        made.api.add_namespace(OWN_NAMESPACE)
        made.start()
        kind, body = make(size=size, **{"tls": TLS, **spec})
        made.create(kind, body)
        made.settle()
        made.create(*role())
        made.create(*user(authentication="certificate"))
        made.create(*user("named"))
        made.drain()
        yield made, kind


def switch(made: Bench, kind: Kind, wanted: Any) -> None:
    made.edit(kind, "c", {"spec": wanted})


def is_enabled(made: Bench) -> bool:
    return auth(made).is_enabled


def wait_for(made: Bench, *, enabled: bool) -> None:
    made.run_until(lambda: is_enabled(made) is enabled)


@contextmanager
def client(made: Bench, name: str = "app-etcd-connection") -> Iterator[KeyClient]:
    """An application that mounts the connection Secret of its user."""
    found = secret(made, name)
    pem = {key: found[key].encode() for key in ("ca.crt", "tls.crt", "tls.key")}
    credentials = TlsCredentials(
        ca=pem["ca.crt"], certificate=pem["tls.crt"], key=pem["tls.key"], server_name="localhost"
    )
    channels, at = Channels(credentials), made.etcd.etcd.members[0].endpoint
    try:
        token = None
        if "password" in found:
            token = KeyClient(channels, at).authenticate(found["username"], found["password"])
        yield KeyClient(channels, at, token=token)
    finally:
        channels.close()


@MAKERS
def test_users_are_required_once_they_are_there_and_then_no_more(make: Make) -> None:
    with served(make) as (made, kind):
        made.etcd.put(b"/app/a", b"1")
        assert "c-client-tls" in made.names(SECRETS)
        switch(made, kind, ON)
        wait_for(made, enabled=True)
        made.settle()
        made.drain()
        assert made.status(kind)["auth"] == {"enabled": True}
        assert (auth(made).users["root"].password, auth(made).users["root"].roles) == (None, {"root"})
        assert ready(made) == ready(made, USERS, "named") == ("True", "Applied")
        for name in ("app", "named"):
            with client(made, f"{name}-etcd-connection") as app:
                assert app.get(b"/app/a") is not None
                with pytest.raises(Forbidden):
                    app.put(b"/app/a", b"2")
                with pytest.raises(Forbidden):
                    app.member_remove("1")
        (warned,) = messages(made, "EnablingAuthentication")
        assert "only app, named will be served" in warned
        assert messages(made, "AuthenticationEnabled") == ["requests need a user"]
        assert made.condition(kind, "AuthenticationEnabled")["status"] == "True"
        made.rest()

        switch(made, kind, OFF)
        wait_for(made, enabled=False)
        made.settle()
        made.drain()
        assert made.status(kind)["auth"] == {"enabled": False}
        assert roles_of(made) == roles_of(made, "named") == {"reader"}
        assert len(messages(made, "AuthenticationDisabled")) == 1
        assert made.condition(kind, "AuthenticationEnabled")["status"] == "False"


def test_a_new_cluster_has_users_from_the_beginning() -> None:
    """And no certificate that anybody may use."""
    with bench(FakeClock(datetime.now(UTC))) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        made.start()
        made.create(*persistent(size=1, tls=TLS, **ON))
        made.settle()
        wait_for(made, enabled=True)
        (warned,) = messages(made, "EnablingAuthentication")
        assert "no client will be served" in warned


def test_the_certificate_for_any_client_is_withdrawn_where_users_are_required() -> None:
    with served(persistent, ago=timedelta(minutes=10)) as (made, kind):
        made.settle()
        made.create(*user("late", roles=["writer"]))
        switch(made, kind, ON)
        made.wait(35.0)
        assert "c-client-tls" in made.names(SECRETS), "as long as it is accepted"
        made.create(*role("writer"))
        wait_for(made, enabled=True)
        made.wait(310.0)
        assert "c-client-tls" not in made.names(SECRETS)
        theirs = made.create(SECRETS, {"metadata": {"name": "c-client-tls"}, "data": {}})
        made.edit(USERS, "late", {"metadata": {"labels": {"touch": "1"}}})
        made.wait(35.0)
        assert made.get(SECRETS, "c-client-tls")["metadata"]["uid"] == theirs["metadata"]["uid"]
        made.delete(SECRETS, "c-client-tls")
        switch(made, kind, OFF)
        made.run_until(lambda: "c-client-tls" in made.names(SECRETS))


def test_nobody_is_refused_while_a_user_is_not_there_yet() -> None:
    with served(persistent) as (made, kind):
        made.create(*user("late", roles=["writer"]))
        switch(made, kind, ON)
        made.wait(35.0)
        assert not is_enabled(made)
        held = made.condition(kind, "AuthenticationEnabled")
        assert (held["status"], held["reason"]) == ("False", "Held")
        assert held["message"] == "authentication is enabled once these are ready: EtcdUser late"
        made.create(*role("writer"))
        wait_for(made, enabled=True)
        assert roles_of(made, "late") == {"writer"}


def test_what_somebody_switches_by_hand_is_put_back() -> None:
    with served(persistent, **ON) as (made, kind):
        wait_for(made, enabled=True)
        made.drain()
        with made.etcd.etcd.changed:
            auth(made).disable()
        made.wait(31.0)
        assert is_enabled(made)
        switch(made, kind, {"auth": None})
        wait_for(made, enabled=False)


def test_what_somebody_has_enabled_remains_where_nothing_is_asked_for() -> None:
    with served(persistent) as (made, kind):
        with made.etcd.etcd.changed:
            auth(made).require_root(None)
        made.create(*role("writer"))
        made.wait(65.0)
        assert is_enabled(made)
        assert "auth" not in made.status(kind)
        assert not made.condition(kind, "AuthenticationEnabled")
        switch(made, kind, OFF)
        wait_for(made, enabled=False)


def test_a_password_is_rotated_without_a_refusal() -> None:
    with served(persistent, ago=timedelta(hours=3), **ON) as (made, _):
        wait_for(made, enabled=True)
        made.edit(USERS, "named", {"spec": {"rotateAfter": "2h"}})
        made.drain()
        with client(made, "named-etcd-connection") as before:
            made.clock.advance(2 * 3600.0)
            made.wait(31.0)
            assert secret(made, "named-etcd-connection")["username"] == "named_2"
            assert before.get(b"/app/a") is None
            with client(made, "named-etcd-connection") as after:
                assert after.get(b"/app/a") is None


# Everything the operator does works while users are required


@MAKERS
def test_members_come_and_go_while_users_are_required(make: Make) -> None:
    with served(make, **ON) as (made, kind):
        wait_for(made, enabled=True)
        made.etcd.put(b"key", b"value")
        for size in (3, 1):
            made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": size}})
            made.settle()
            assert len(made.etcd.etcd.members) == size
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert is_enabled(made)
        made.rest()


@MAKERS
def test_members_are_upgraded_and_replaced_while_users_are_required(make: Make) -> None:
    with served(make, size=3, version="3.5.35", **ON) as (made, kind):
        wait_for(made, enabled=True)
        made.edit(kind, "c", {"spec": {"version": "3.6.16"}})
        made.settle()
        assert {member.version for member in made.etcd.etcd.members} == {"3.6.16"}
        lost = min(made.names(PODS))
        if kind is COREOS:
            made.delete(PODS, lost)
        else:
            made.lose_claim("c-0")
        made.settle()
        assert len(made.etcd.etcd.members) == 3
        assert is_enabled(made)


def test_a_lost_quorum_is_recovered_while_users_are_required() -> None:
    with served(ephemeral, size=3, **ON) as (made, kind):
        wait_for(made, enabled=True)
        made.etcd.put(b"key", b"value")
        for pod in sorted(made.names(PODS))[:2]:
            made.delete(PODS, pod)
        made.run_until(lambda: "recovery" in made.status(kind))
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert is_enabled(made)
        assert made.status(kind)["auth"] == {"enabled": True}
        made.wait(31.0)
        assert ready(made) == ("True", "Applied")


@pytest.mark.parametrize("wanted", [ON, OFF], ids=["on", "off"])
def test_data_that_is_restored_in_place_is_brought_in_line(wanted: dict[str, Any]) -> None:
    """Although etcd has the same revision of its users as before: enabling does not change it."""
    with stored(size=1, tls=TLS, **wanted) as (made, backups):
        enabled = wanted["auth"]["enabled"]
        made.create(*role())
        made.create(*user())
        wait_for(made, enabled=enabled)
        made.settle()
        with made.etcd.etcd.changed:
            if enabled:
                auth(made).is_enabled = False  # as it was when the backup was taken
            else:
                auth(made).add_user("root", None)
                auth(made).grant_role("root", "root")
                auth(made).is_enabled = True
        backups.take("other")
        auth(made).is_enabled = enabled
        made.wait(31.0)
        made.run_until(lambda: made.status(IMPROBABLE)["clusterID"] == "c0de")
        backups.ask("c0de/other/1")
        backups.until_restored()
        made.wait(31.0)
        assert is_enabled(made) is enabled
        assert roles_of(made) == {"reader"}


# At any moment


@pytest.mark.exhaustive
@pytest.mark.parametrize("enabled", [True, False], ids=["on", "off"])
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
def test_it_is_switched_whatever_happens_at_any_write(disturbance: Disturbance, enabled: bool) -> None:
    writes = EachWrite()
    for write in writes:
        with served(persistent, **(OFF if enabled else ON)) as (made, kind):
            wait_for(made, enabled=not enabled)
            made.drain()
            made.kill()
            switch(made, kind, ON if enabled else OFF)
            made.create(*user("late"))
            has_come = disturbance.arrange(made, write)

            def end(made: Bench = made) -> None:
                made.run_until(
                    lambda: is_enabled(made) is enabled and ready(made, USERS, "late") == ("True", "Applied")
                )
                made.settle()

            if not run_or_die(made, end):
                made.start()
                end()
            assert roles_of(made, "late") == {"reader"}
            assert made.status(kind)["auth"] == {"enabled": enabled}
            writes.goes_on = has_come()
    assert writes.runs > (5 if enabled else 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("enabled", [True, False], ids=["on", "off"])
def test_an_edit_turns_it_back_at_any_write(enabled: bool) -> None:
    writes = EachWrite()
    for write in writes:
        with served(persistent, **(OFF if enabled else ON)) as (made, kind):
            wait_for(made, enabled=not enabled)
            made.drain()

            def turn_back(made: Bench = made, kind: Kind = kind) -> None:
                switch(made, kind, OFF if enabled else ON)

            hook = AtNthWrite(write, turn_back)
            hook.install(made, after=True)
            switch(made, kind, ON if enabled else OFF)
            made.settle()
            made.wait(35.0)
            assert is_enabled(made) is (not enabled if hook.has_fired else enabled)
            writes.goes_on = hook.has_fired
    assert writes.runs > 2
