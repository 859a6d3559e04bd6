"""Clusters whose certificates are in Secrets of the user: checked before a member exists, then mounted."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from etcd_operator.api.coreos import POD_KEYS
from etcd_operator.controllers.etcd_cluster.manifests.tls_pod import NAME_OPTIONS
from unit.controllers.etcd_cluster.test_tls import (
    authorities,
    files,
    lose_a_member_without_secrets,
    secrets,
    world,
)
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS, SECRETS
from unit.fakes.clock import FakeClock
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral, persistent
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.users import ready, user
from unit.pki.samples import CLIENT, SERVER, Issuer

PEERS: dict[str, Any] = {"peer": {"secretRef": {"name": "own-peer"}}}
NAMES = ("*.default.svc", "*.c-peer.default.svc")


def secret(called: str, issuer: Issuer, *names: str, keys: str = "tls", **leaf: Any) -> Json:
    """As a user makes it."""
    pair = issuer.leaf(*names, **leaf)
    ca = "ca.crt" if keys == "tls" else f"{keys}-ca.crt"
    content = {f"{keys}.crt": pair.certificate, f"{keys}.key": pair.key, ca: issuer.pem}
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    return {"metadata": {"name": called}, "data": data}


def message(made: Bench) -> str:
    found: str = made.condition(COREOS, "Available")["message"]
    return found


def give(made: Bench, body: Json) -> None:
    made.api.objects.create(SECRETS, "default", body)


@MAKERS
@pytest.mark.parametrize(("keys", "other"), [("tls", {}), ("peer", {"keys": "peer"})])
def test_members_mount_the_secret_of_the_user_for_peers(make: type, keys: str, other: Json) -> None:
    kind, body = make(size=2, tls=PEERS)
    with world(kind.group) as made:
        made.start()
        give(made, secret("own-peer", Issuer(made.clock.now()), *NAMES, keys=keys))
        made.create(kind, body)
        made.settle()
        assert secrets(made).keys() == {"own-peer"}
        assert made.status(kind)["tls"]["peerSecret"] == {"name": "own-peer", **other}
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        assert len(made.names(PODS)) == 3
        made.rest()


@MAKERS
def test_one_side_may_have_a_secret_of_the_user_and_the_other_one_of_the_operator(make: type) -> None:
    kind, body = make(size=1, tls={**PEERS, "client": {"auto": {}}})
    with world(kind.group) as made:
        made.start()
        give(made, secret("own-peer", Issuer(made.clock.now()), *NAMES))
        made.create(kind, body)
        made.settle()
        member = "c-0000" if kind is COREOS else "c-0"
        assert secrets(made)[f"{member}-tls"].keys() == {"server.crt", "server.key", "client-ca.crt"}
        made.rest()


def test_a_secret_that_is_missing_or_wrong_holds_the_creation_until_it_is_mended() -> None:
    kind, body = ephemeral(size=1, tls=PEERS)
    with world(kind.group) as made:
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert "Secret own-peer (for peers) is missing: create it" in message(made)
        ca = Issuer(made.clock.now())
        give(made, secret("own-peer", ca, "*.c.default.svc"))
        made.run_until(lambda: "is not for *.default.svc: issue it again" in message(made))
        assert not made.names(PODS)
        mended = secret("own-peer", ca, *NAMES)
        made.api.objects.patch(SECRETS, "default", "own-peer", {"data": mended["data"]}, "merge")
        made.settle()
        assert files(mended).keys() == {"tls.crt", "tls.key", "ca.crt"}
        made.rest()


CLIENTS: dict[str, Any] = {
    "client": {"secretRef": {"name": "own-server"}, "operatorSecretRef": {"name": "own-operator"}}
}
SERVES = (*NAMES, "c.default.svc")


def give_all(made: Bench, ca: Issuer) -> None:
    give(made, secret("own-peer", ca, *NAMES))
    give(made, secret("own-server", ca, *SERVES, usages=[SERVER], keys="server"))
    give(made, secret("own-operator", ca, usages=[CLIENT], keys="etcd-client", name="root"))


@contextmanager
def supplied(make: Callable[..., Any], **spec: Any) -> Iterator[tuple[Bench, Kind]]:
    """A cluster with certificates of the user only."""
    kind, body = make(tls={**PEERS, **CLIENTS}, **spec)
    with world(kind.group) as made:
        made.start()
        give_all(made, Issuer(made.clock.now()))
        made.create(kind, body)
        made.settle()
        yield made, kind


def advertised(made: Bench) -> list[str]:
    key = POD_KEYS.of("advertise-client-urls")
    return [pod["metadata"]["annotations"][key] for pod in made.api.objects.select(PODS)]


def test_members_that_are_restarted_keep_the_names_that_the_certificate_is_for() -> None:
    with supplied(ephemeral, size=2) as (made, kind):
        before = advertised(made)
        assert before == [f"https://c-000{number}.default.svc:2379" for number in range(2)]
        made.edit(kind, "c", {"spec": {"tls": {"client": {"minVersion": "TLS1.3"}}}})
        made.settle()
        assert [event["reason"] for event in made.events()].count("MemberRestarted") == 2
        assert advertised(made) == before


@MAKERS
def test_the_operator_connects_with_the_certificate_that_it_is_given(make: type) -> None:
    with supplied(make, size=2) as (made, kind):
        assert not authorities(made)
        assert secrets(made).keys() == {"own-peer", "own-server", "own-operator"}
        assert made.status(kind)["tls"] == {
            "clientCertAuth": True,
            "peerSecret": {"name": "own-peer"},
            "clientSecret": {"name": "own-server", "keys": "server"},
            "operatorSecret": {"name": "own-operator", "keys": "etcd-client"},
        }
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        made.restart()
        made.settle()
        made.rest()


def test_a_lost_member_is_replaced_while_the_secrets_of_the_user_cannot_be_read() -> None:
    with supplied(ephemeral) as (made, _):
        lose_a_member_without_secrets(made, 500)


def test_the_version_and_how_clients_are_served_may_be_changed() -> None:
    with supplied(ephemeral) as (made, kind):
        made.edit(kind, "c", {"spec": {"tls": {"client": {"minVersion": "TLS1.3"}}, "version": "v3.7.3"}})
        made.settle()
        assert made.status(kind)["currentVersion"] == "3.7.3"
        made.rest()


@pytest.mark.parametrize(
    ("name", "names", "leaf", "told"),
    [
        ("own-server", NAMES[1:], {}, "tls.crt is not for c.default.svc: issue it again"),
        ("own-operator", (), {"usages": [SERVER]}, "lacks the extended key usage clientAuth"),
        ("own-operator", None, {}, "Secret own-operator (of the operator) is missing"),
        ("own-operator", (), {}, "tls.crt is not signed by a CA in server-ca.crt of Secret own-server"),
    ],
)
def test_what_is_wrong_with_certificates_for_clients_holds_the_creation(
    name: str, names: tuple[str, ...] | None, leaf: dict[str, Any], told: str
) -> None:
    kind, asked = persistent(size=1, tls={**PEERS, **CLIENTS})
    with world(kind.group) as made:
        made.start()
        give_all(made, Issuer(made.clock.now()))
        made.api.objects.delete(SECRETS, "default", name)
        if names is not None:
            give(made, secret(name, Issuer(made.clock.now(), name="another CA"), *names, **leaf))
        made.create(kind, asked)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert told in made.condition(kind, "Available")["message"]
        assert not made.names(PODS)


def test_a_survivor_is_copied_with_the_certificate_of_the_operator() -> None:
    with supplied(ephemeral) as (made, kind):
        made.etcd.put(b"key", b"value")
        for pod in sorted(made.names(PODS))[:2]:
            made.delete(PODS, pod)
        made.run_until(lambda: "recovery" in made.status(kind))
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"


def test_users_are_refused_with_certificates_for_clients_of_the_user() -> None:
    kind, body = persistent(size=1, tls={**PEERS, **CLIENTS})
    with bench(FakeClock(datetime.now(UTC)), only=(kind.group, "auth")) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        made.start()
        give_all(made, Issuer(made.clock.now()))
        made.create(kind, body)
        made.settle()
        made.create(*user())
        made.run_until(lambda: ready(made) == ("False", "ClientTLSNotIssued"))
        assert "app-etcd-connection" not in secrets(made)


def test_the_form_of_coreos_has_the_same_effect() -> None:
    static = {
        "member": {"peerSecret": "own-peer", "serverSecret": "own-server"},
        "operatorSecret": "own-operator",
    }
    kind, body = ephemeral(size=2, TLS={"static": static})
    with world(kind.group) as made:
        made.start()
        give_all(made, Issuer(made.clock.now()))
        made.create(kind, body)
        made.settle()
        found = made.status(kind)["tls"]
        assert {use: found[f"{use}Secret"]["name"] for use in ("peer", "client", "operator")} == {
            "peer": "own-peer",
            "client": "own-server",
            "operator": "own-operator",
        }
        made.rest()


def restarted(made: Bench) -> int:
    return sum(event["count"] for event in made.events() if event["reason"] == "MemberRestarted")


def has_restarted(made: Bench, members: int) -> bool:
    return restarted(made) >= members


def replace_files(made: Bench, **contents: bytes) -> None:
    data = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in contents.items()}
    made.api.objects.patch(SECRETS, "default", "own-peer", {"data": data}, "merge")


@MAKERS
def test_a_ca_of_the_user_is_replaced_in_two_steps_without_a_person(make: type) -> None:
    """Members load the next CA beside the former one; then the certificate is changed, and that one goes."""
    with supplied(make) as (made, kind):
        following = Issuer(made.clock.now(), name="the next CA")
        replace_files(made, ca_crt=files(made.get(SECRETS, "own-peer"))["ca.crt"] + following.pem)
        made.run_until(lambda: "will be restarted" in made.condition(kind, "Progressing")["message"])
        assert made.condition(kind, "TLSRotating")["status"] == "True"
        assert not restarted(made), "the volumes of members may have the former file"
        made.run_until(lambda: restarted(made) == 3)
        made.settle()
        assert made.condition(kind, "TLSRotating")["status"] == "False"
        leaf = following.leaf(*NAMES)
        replace_files(made, ca_crt=following.pem, tls_crt=leaf.certificate, tls_key=leaf.key)
        made.run_until(lambda: restarted(made) == 6)
        made.settle()
        made.rest()


@MAKERS
def test_a_ca_that_is_replaced_at_once_restarts_no_member(make: type) -> None:
    """The first one that is restarted would be alone: the others refuse it, and it refuses them."""
    with supplied(make) as (made, kind):
        before = files(made.get(SECRETS, "own-peer"))
        other = Issuer(made.clock.now(), name="another CA")
        leaf = other.leaf(*NAMES)
        replace_files(made, ca_crt=other.pem, tls_crt=leaf.certificate, tls_key=leaf.key)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert "have loaded no CA that has signed" in made.condition(kind, "Progressing")["message"]
        made.wait(3600.0)
        assert not restarted(made)
        replace_files(made, **{key.replace(".", "_"): value for key, value in before.items()})
        made.settle()
        assert not restarted(made)
        made.rest()


@MAKERS
def test_members_load_the_cas_of_the_user_whenever_the_operator_is_killed(make: type) -> None:
    with supplied(make) as (made, kind):
        both = files(made.get(SECRETS, "own-peer"))["ca.crt"] + Issuer(made.clock.now(), name="next").pem
        replace_files(made, ca_crt=both)
        while restarted(made) < 3:
            before = restarted(made)
            made.run_until(partial(has_restarted, made, before + 1))
            made.restart()
        made.settle()
        assert made.condition(kind, "TLSRotating")["status"] == "False"
        made.rest()


def test_a_certificate_of_the_user_that_is_not_renewed_is_reported() -> None:
    kind, body = ephemeral(size=1, tls=PEERS)
    with world(kind.group, ago=timedelta(hours=1)) as made:
        made.start()
        give(made, secret("own-peer", Issuer(made.clock.now()), *NAMES, until=timedelta(hours=2)))
        made.create(kind, body)
        made.settle()
        assert made.condition(kind, "CertificateExpiring")["status"] == "False"
        made.wait(timedelta(hours=1, minutes=50).total_seconds())
        assert made.condition(kind, "CertificateExpiring")["status"] == "True"


def test_an_upgrade_changes_the_name_of_the_option_in_pods_that_remain() -> None:
    """etcd 3.6 refuses the two names together, and 3.7 the former one."""
    options = [f"coreos.com/{name}" for name in NAME_OPTIONS]
    with supplied(ephemeral, size=1, version="v3.5.35") as (made, kind):
        (pod,) = made.api.objects.select(PODS, "default")
        assert [pod["metadata"]["annotations"][name] for name in options] == ["true", ""]
        made.edit(kind, "c", {"spec": {"version": "v3.6.16"}})
        made.settle()
        (again,) = made.api.objects.select(PODS, "default")
        assert again["metadata"]["uid"] == pod["metadata"]["uid"]
        assert [again["metadata"]["annotations"][name] for name in options] == ["", "true"]
