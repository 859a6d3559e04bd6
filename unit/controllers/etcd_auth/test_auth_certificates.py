"""Users with certificates: what their Secrets have, and when that is replaced."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.controllers.etcd_auth.access import LASTS, ClientAuthority, client_tls
from etcd_operator.controllers.etcd_auth.manifests.connection import ClientTls
from etcd_operator.pki.authority import new_ca
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import ClockSkew
from unit.controllers.etcd_cluster.test_tls import set_clock
from unit.fakes.apiserver.kinds import SECRETS
from unit.fakes.clock import FakeClock
from unit.passes.bench import Bench, bench
from unit.passes.bodies import USERS, persistent
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.users import SECRET, auth, messages, ready, role, roles_of, secret, user

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = timedelta(days=3650)


def authority(now: datetime = NOW) -> ClientAuthority:
    made = new_ca("clients of c", now=now, duration=YEARS)
    return ClientAuthority(pair=made, bundle=made.certificate, shared="c-client-tls")


NONE = ClientTls(ca="", certificate="", key="")


def test_a_certificate_names_the_user_and_is_kept_until_two_thirds_of_its_life() -> None:
    ca = authority()
    first = client_tls(NONE, "app", ca, None, NOW)
    found = describe(first.certificate.encode())
    assert (found.common_name, found.not_after - NOW) == ("app", LASTS)
    assert client_tls(first, "app", ca, None, NOW + LASTS * 0.66) == first
    assert client_tls(first, "app", ca, None, NOW + LASTS * 0.67) != first


def test_a_certificate_is_not_valid_any_more_when_its_user_has_that_name_again() -> None:
    after = timedelta(days=10)
    made = client_tls(NONE, "app", authority(), after, NOW)
    last_renewal = NOW + after
    assert describe(made.certificate.encode()).not_after - NOW + last_renewal <= NOW + 2 * after


@pytest.mark.parametrize("what", ["user", "authority", "key", "certificate", "half"])
def test_a_certificate_that_is_not_the_users_is_replaced(what: str) -> None:
    ca, other = authority(), authority()
    first = client_tls(NONE, "app", ca, None, NOW)
    another = client_tls(NONE, "app", ca, None, NOW).key
    odd = {
        "user": client_tls(NONE, "root", ca, None, NOW),
        "authority": client_tls(NONE, "app", other, None, NOW),
        "key": ClientTls(ca=first.ca, certificate=first.certificate, key=another),
        "certificate": ClientTls(ca=first.ca, certificate="no PEM", key=first.key),
        "half": ClientTls(ca=first.ca, certificate=first.certificate, key=""),
    }[what]
    made = client_tls(odd, "app", ca, None, NOW)
    assert made.certificate != odd.certificate
    assert describe(made.certificate.encode()).common_name == "app"


def test_a_clock_that_is_off_issues_nothing_and_keeps_what_is_valid() -> None:
    ca = authority()
    first = client_tls(NONE, "app", ca, None, NOW)
    off = replace(ca, refusal="the clock is off")
    assert client_tls(first, "app", off, None, NOW + LASTS * 0.9) == first
    for stored, username, now in (
        (first, "app", NOW + LASTS * 1.1),
        (first, "other", NOW),
        (NONE, "app", NOW),
    ):
        with pytest.raises(ClockSkew):
            client_tls(stored, username, off, None, now)


def test_clients_trust_the_whole_bundle() -> None:
    ca = authority()
    both = replace(ca, bundle=ca.bundle + authority().bundle)
    first = client_tls(NONE, "app", ca, None, NOW)
    now = client_tls(first, "app", both, None, NOW)
    assert (now.certificate, now.ca) == (first.certificate, both.bundle.decode())


@pytest.fixture
def made() -> Iterator[Bench]:
    """A cluster with client TLS, and two users. Its members know the operator as root by its certificate."""
    with bench(FakeClock(datetime.now(UTC))) as world:  # the time by which connections are verified
        world.api.add_namespace(OWN_NAMESPACE)
        world.start()
        world.create(*persistent(size=1, tls={"client": {"auto": {}}}))
        world.settle()
        world.create(*role())
        world.create(*user(authentication="certificate"))
        world.create(*user("named"))
        world.drain()
        yield world


def test_a_user_with_a_certificate_has_no_password(made: Bench) -> None:
    assert ready(made) == ("True", "Applied")
    assert (auth(made).users["app"].password, roles_of(made)) == (None, {"reader"})
    found = secret(made)
    assert found.keys() == {"host", "port", "endpoints", "uri", "username", "ca.crt", "tls.crt", "tls.key"}
    assert found["uri"] == "https://c.default.svc:2379"
    assert describe(found["tls.crt"].encode()).common_name == "app"
    named = secret(made, "named-etcd-connection")
    assert named.keys() == found.keys() | {"password"}
    assert describe(named["tls.crt"].encode()).common_name == "named"


def test_a_certificate_is_replaced_in_the_same_secret(made: Bench) -> None:
    before, uid = secret(made), made.get(SECRETS, SECRET)["metadata"]["uid"]
    revision = auth(made).revision
    made.edit(SECRETS, SECRET, {"data": {"tls.crt": "eA=="}})
    made.wait(301.0)
    after = secret(made)
    assert {key for key in after if after[key] != before[key]} == {"tls.crt", "tls.key"}
    assert made.get(SECRETS, SECRET)["metadata"]["uid"] == uid
    assert auth(made).revision == revision


@pytest.mark.parametrize(
    ("ahead", "reason"), [(timedelta(minutes=10), "ClockSkew"), (timedelta(days=365), "ClusterNotReady")]
)
def test_a_user_gets_no_certificate_while_the_clock_is_off(
    made: Bench, ahead: timedelta, reason: str
) -> None:
    """If it is far off, the operator itself cannot dial members."""
    before = secret(made)
    set_clock(made, ahead)
    made.create(*user("late", authentication="certificate"))
    made.wait(310.0)
    status, found = ready(made, USERS, "late")
    assert (status, found) == ("False", reason)
    assert "clock is off" in made.condition(USERS, "Ready", "late")["message"]
    assert secret(made) == before
    set_clock(made, -ahead)
    made.wait(61.0)
    assert ready(made, USERS, "late") == ("True", "Applied")
    leaf = describe(secret(made, "late-etcd-connection")["tls.crt"].encode())
    assert leaf.is_valid(made.clock.now())


def test_a_user_changes_between_password_and_certificate(made: Bench) -> None:
    made.edit(USERS, "app", {"spec": {"authentication": "password"}})
    made.drain()
    assert auth(made).users["app"].password == secret(made)["password"]
    made.edit(USERS, "app", {"spec": {"authentication": "certificate"}})
    made.drain()
    assert auth(made).users["app"].password is None
    assert "password" not in secret(made)
    assert roles_of(made) == {"reader"}


def test_a_key_is_in_its_secret_only(made: Bench) -> None:
    key = secret(made)["tls.key"].splitlines()[1]
    assert re.fullmatch("[A-Za-z0-9+/=]{64}", key)
    objects = [obj for place, obj in made.api.objects.store.everything() if SECRETS.plural not in place]
    assert key not in str(objects) + str(made.events())


def test_authentication_does_not_lock_the_operator_out(made: Bench) -> None:
    with made.etcd.etcd.changed:
        auth(made).require_root(None)
        auth(made).change_password("named", "another")
    made.wait(31.0)
    assert ready(made) == ready(made, USERS, "named") == ("True", "Applied")
    assert auth(made).users["named"].password == secret(made, "named-etcd-connection")["password"]
    corrected = "etcd was changed by somebody else: set the password of user named"
    assert corrected in messages(made, "DriftCorrected")
