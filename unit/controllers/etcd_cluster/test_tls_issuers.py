"""Clusters whose certificates cert-manager issues: its CA may have another key at any renewal."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.tls.issuers import UNISSUED_SECONDS
from etcd_operator.pki.description import describe, describe_bundle
from unit.controllers.etcd_cluster.test_tls import authorities, files, secrets, world
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CONFIG_MAPS, PODS, SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral, persistent
from unit.passes.cert_managers import CERTIFICATES, CertManager
from unit.passes.disturbance import EachWrite, run_or_die

OURS: dict[str, Any] = {"certManager": {"issuerRef": {"name": "ours"}}}
HOUR: dict[str, Any] = {side: {**OURS, "leafDuration": "60m"} for side in ("peer", "client")}
BOTH: dict[str, Any] = {"peer": OURS, "client": OURS}
REQUESTED = (
    "c-cert-manager-operator",
    "c-cert-manager-peer",
    "c-cert-manager-peer-dial",
    "c-cert-manager-server",
)


@contextmanager
def issued(kind: Kind, body: Json, ago: timedelta = timedelta(0)) -> Iterator[tuple[Bench, CertManager]]:
    """A cluster that is as desired."""
    with world(kind.group, ago) as made:
        issuer = CertManager(made)
        made.start()
        made.create(kind, body)
        made.settle()
        yield made, issuer


def later(made: Bench, minutes: int) -> None:
    """The operator was away meanwhile."""
    made.kill()
    made.clock.advance(60.0 * minutes)
    for each in made.controllers:
        each()
    made.start()
    made.wait(30.0)


def record(made: Bench, side: str) -> dict[str, Any]:
    (stored,) = authorities(made)
    found: dict[str, Any] = json.loads(files(stored)[f"{side}.json"])
    return found


def bundles(made: Bench, side: str) -> list[list[str]]:
    """The CAs that the Secrets of members have, by the IDs of their keys."""
    held = [found for name, found in secrets(made).items() if "cert-manager" not in name]
    return [[ca.key_id for ca in describe_bundle(found[f"{side}-ca.crt"])] for found in held]


def lists(made: Bench) -> list[Any]:
    """The requests for all Certificates."""
    found = [each.request for each in made.api.log if each.request.plural == "certificates"]
    return [each for each in found if each.method == "GET"]


def key_of(issuer: CertManager) -> str:
    return describe(issuer.ca.certificate).key_id


@MAKERS
def test_a_cluster_is_made_with_what_cert_manager_issues_and_resized(make: type) -> None:
    kind, body = make(size=2, tls=BOTH)
    with issued(kind, body) as (made, issuer):
        assert tuple(sorted(made.names(CERTIFICATES))) == REQUESTED
        asked = made.get(CERTIFICATES, "c-cert-manager-peer")["spec"]
        assert (asked["duration"], asked["renewBefore"]) == ("2160h0m0s", "720h0m0s")  # as Go writes it
        recorded = made.status(kind)["tls"]
        assert recorded["peerIssuer"] == {"name": "ours"}
        assert (recorded["peerCA"], recorded["clientCA"]) == (key_of(issuer),) * 2
        (cas,) = map(files, authorities(made))
        assert not [name for name in cas if name.endswith(".key") and "-leaf-" not in name]
        root = secrets(made)["c-cert-manager-operator"]["tls.key"]
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        held = secrets(made)
        members = [found for name, found in held.items() if name not in REQUESTED]
        assert len(members) == 3
        for found in members:
            assert root not in found.values()
            assert found["peer-dial.crt"] == held["c-cert-manager-peer-dial"]["tls.crt"]
        assert "c-client-tls" not in held
        assert made.get(CONFIG_MAPS, "c-ca")["data"]["ca.crt"].encode() == issuer.ca.certificate
        made.restart()
        made.settle()
        made.rest()


@MAKERS
def test_one_side_may_be_issued_and_the_other_one_signed_by_the_operator(make: type) -> None:
    for side in ("peer", "client"):
        kind, body = make(size=1, tls={**{each: {"auto": {}} for each in BOTH}, side: OURS})
        with issued(kind, body) as (made, issuer):
            recorded = made.status(kind)["tls"]
            assert recorded[f"{side}CA"] == key_of(issuer)
            assert recorded["clientCA"] != recorded["peerCA"]
            made.rest()


def test_a_ca_of_the_operator_is_renewed_although_cert_manager_is_gone() -> None:
    kind, body = ephemeral(
        size=1, tls={"peer": {"auto": {}, "leafDuration": "10m", "caDuration": "30m"}, "client": OURS}
    )
    with issued(kind, body, ago=timedelta(minutes=50)) as (made, issuer):
        before = describe(files(authorities(made)[0])["peer-issuer.crt"])
        made.controllers.remove(issuer.step)
        for name in made.names(CERTIFICATES):
            made.delete(CERTIFICATES, name)
        made.api.objects.kinds.withdraw(CERTIFICATES)
        later(made, 25)
        now = describe(files(authorities(made)[0])["peer-issuer.crt"])
        assert now.key_id == before.key_id
        assert now.not_after > before.not_after
        made.run_until(lambda: "MemberRestarted" in {event["reason"] for event in made.events()})
        made.wait(60.0)
        made.edit(kind, "c", {"spec": {"size": 2}})
        made.run_until(lambda: len(made.names(PODS)) == 2)
        asked = len(lists(made))
        made.wait(60.0)
        assert len(lists(made)) - asked <= 60 / UNISSUED_SECONDS + 1


def test_without_cert_manager_nothing_is_created() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with world(kind.group) as made:
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        told = made.condition(kind, "Degraded")["message"]
        assert told.startswith(
            "cert-manager is not installed: the API server has no certificates.cert-manager.io"
        )
        CertManager(made)
        made.settle()


def test_what_cert_manager_refuses_is_reported_in_its_words() -> None:
    kind, body = persistent(size=1, tls=BOTH)
    with world(kind.group) as made:
        issuer = CertManager(made)
        issuer.refusal = "the issuer is not ready"
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        told = made.condition(kind, "Degraded")["message"]
        assert "Certificate c-cert-manager-peer is not ready: Failed: the issuer is not ready" in told
        assert not made.names(PODS)
        issuer.refusal = ""
        made.settle()


@MAKERS
def test_a_renewed_certificate_is_loaded_without_a_restart(make: type) -> None:
    kind, body = make(size=2, tls=BOTH)
    with issued(kind, body, ago=timedelta(minutes=20)) as (made, issuer):
        before = {pod["metadata"]["uid"] for pod in made.api.objects.select(PODS)}
        issuer.renew()
        made.wait(400.0)  # a Secret is written once the volume of the member before has followed
        made.wait(400.0)
        made.settle()
        held = secrets(made)
        for name in set(held) - set(REQUESTED):
            assert held[name]["server.crt"] == held["c-cert-manager-server"]["tls.crt"]
            assert held[name]["peer.crt"] == held["c-cert-manager-peer"]["tls.crt"]
        assert {pod["metadata"]["uid"] for pod in made.api.objects.select(PODS)} == before
        assert "MemberRestarted" not in {event["reason"] for event in made.events()}
        made.rest()


def followed(made: Bench, issuer: CertManager, kind: Kind) -> None:
    """Until all have followed the CA that the issuer has."""
    for _ in range(60):
        made.wait(15.0)
        made.clock.advance(45.0)  # members and clients are given time, which the operator need not spend
        (stored,) = authorities(made)
        now = [describe(files(stored)[f"{side}-issuer.crt"]).key_id for side in BOTH]
        is_done = all(record(made, side)["phase"] == "Stable" for side in BOTH)
        if now == [key_of(issuer)] * 2 and is_done and made.is_settled(kind, "c"):
            return
    raise AssertionError(f"not followed: {made.story()}")


@MAKERS
def test_another_ca_is_trusted_by_all_before_what_it_has_signed_is_used(make: type) -> None:
    kind, body = make(size=2, tls=HOUR)
    with issued(kind, body, ago=timedelta(minutes=50)) as (made, issuer):
        made.etcd.put(b"key", b"value")
        former = key_of(issuer)
        issuer.change_ca()
        issuer.renew()
        followed(made, issuer, kind)
        recorded = made.status(kind)["tls"]
        assert (recorded["peerCA"], recorded["clientCA"]) == (key_of(issuer),) * 2
        # Peers have no use for the former CA any more, and clients may have certificates of it.
        made.wait(120.0)
        assert all(found == [key_of(issuer)] for found in bundles(made, "peer"))
        assert all(found == [former, key_of(issuer)] for found in bundles(made, "client"))
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        assert made.etcd.etcd.has_quorum
        restarts = sum(event["count"] for event in made.events() if event["reason"] == "MemberRestarted")
        assert (
            restarts == 4
        )  # each to load the new CA of both sides, and each for peers without the former one


def test_a_ca_that_is_renewed_with_its_key_is_loaded() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with issued(kind, body, ago=timedelta(minutes=20)) as (made, issuer):
        issuer.extend_ca()
        issuer.renew("c-cert-manager-server", "c-cert-manager-peer")
        made.wait(400.0)
        made.settle()
        issuer.renew()
        made.wait(400.0)
        made.settle()
        (held,) = [found for name, found in secrets(made).items() if name not in REQUESTED]
        assert held["peer-ca.crt"] == held["client-ca.crt"] == issuer.ca.certificate
        made.rest()


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", [ephemeral, pytest.param(persistent, marks=pytest.mark.long)])
def test_an_operator_that_dies_at_a_write_while_a_ca_is_followed_is_followed_by_one_that_goes_on(
    make: type,
) -> None:
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=1, tls=HOUR)
        with issued(kind, body, ago=timedelta(minutes=50)) as (made, issuer):
            made.etcd.put(b"key", b"value")
            made.kill()
            issuer.change_ca()
            issuer.renew()
            issuer.step()
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, partial(followed, made, issuer, kind))
            if writes.goes_on:
                made.start()
                followed(made, issuer, kind)
            assert made.etcd.etcd.keys[b"key"][0] == b"value"
            assert len(made.names(PODS)) == 1


@pytest.mark.exhaustive
@MAKERS
def test_an_operator_that_dies_at_a_write_of_a_creation_is_followed_by_one_that_ends_it(make: type) -> None:
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=1, tls=BOTH)
        with world(kind.group) as made:
            issuer = CertManager(made)
            made.create(kind, body)
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, made.settle)
            if writes.goes_on:
                made.start()
                made.settle()
            assert tuple(sorted(made.names(CERTIFICATES))) == REQUESTED
            assert made.status(kind)["tls"]["clientCA"] == key_of(issuer)


def test_a_certificate_that_somebody_deletes_is_asked_for_again_and_one_that_is_changed_is_restored() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with issued(kind, body) as (made, _):
        made.delete(CERTIFICATES, "c-cert-manager-peer")
        made.edit(CERTIFICATES, "c-cert-manager-server", {"spec": {"dnsNames": ["wrong.example.com"]}})
        made.wait(320.0)
        made.settle()
        assert tuple(sorted(made.names(CERTIFICATES))) == REQUESTED
        assert "wrong.example.com" not in made.get(CERTIFICATES, "c-cert-manager-server")["spec"]["dnsNames"]


def change_certificates(kind: Kind, obj: Json) -> None:
    """An admission policy."""
    if kind == CERTIFICATES:
        obj["spec"]["renewBefore"] = "720h0m1s"


def test_a_policy_that_changes_certificates_is_reported_and_stops_nothing_else() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with issued(kind, body, ago=timedelta(minutes=20)) as (made, _):
        made.api.objects.mutate = change_certificates
        made.edit(CERTIFICATES, "c-cert-manager-peer", {"metadata": {"annotations": {"some": "edit"}}})
        made.wait(320.0)
        made.edit(kind, "c", {"spec": {"size": 2}})
        made.run_until(lambda: len(made.names(PODS)) == 2)
        told = "is stored with another renewBefore: an admission policy or webhook changes it back"
        made.run_until(lambda: told in made.condition(kind, "Degraded").get("message", ""))
        requests = [each for each in made.writes() if each.request.plural == "certificates"]
        made.wait(120.0)
        more = [each for each in made.writes() if each.request.plural == "certificates"]
        assert 0 < len(more) - len(requests) <= 5


def test_a_cluster_is_not_made_while_a_policy_changes_certificates() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with world(kind.group) as made:
        CertManager(made)
        made.api.objects.mutate = change_certificates
        made.start()
        made.create(kind, body)
        told = "Certificate c-cert-manager-peer is stored with another renewBefore"
        made.run_until(lambda: told in made.condition(kind, "Degraded").get("message", ""))
        assert not made.names(PODS)


def test_what_another_issuer_has_signed_for_somebody_who_may_change_certificates_is_not_trusted() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with issued(kind, body, ago=timedelta(minutes=20)) as (made, issuer):
        issuer.others["evil"] = issuer.new_ca()
        made.edit(CERTIFICATES, "c-cert-manager-server", {"spec": {"issuerRef": {"name": "evil"}}})
        issuer.step()
        made.wait(340.0)
        made.settle()
        assert made.get(CERTIFICATES, "c-cert-manager-server")["spec"]["issuerRef"]["name"] == "ours"
        assert {key_id for found in bundles(made, "client") for key_id in found} == {key_of(issuer)}
        assert made.get(CONFIG_MAPS, "c-ca")["data"]["ca.crt"].encode() == issuer.ca.certificate


def test_what_was_issued_for_another_certificate_is_not_trusted() -> None:
    """cert-manager writes the Secret that each Certificate names."""
    kind, body = ephemeral(size=1, tls=BOTH)
    with issued(kind, body, ago=timedelta(minutes=20)) as (made, issuer):
        own = key_of(issuer)
        issuer.change_ca()
        issuer.renew("c-cert-manager-server")
        issuer.step()
        another = {"cert-manager.io/certificate-name": "evil"}
        made.edit(SECRETS, "c-cert-manager-server", {"metadata": {"annotations": another}})
        made.wait(340.0)
        assert {key_id for found in bundles(made, "client") for key_id in found} == {own}
        told = made.condition(kind, "Degraded")["message"]
        assert "is of the Certificate 'evil' and the Issuer 'ours', and not of Certificate c-cert" in told


def test_more_names_are_asked_for() -> None:
    kind, body = ephemeral(size=1, tls={"client": OURS})
    with issued(kind, body, ago=timedelta(minutes=10)) as (made, _):
        made.edit(kind, "c", {"spec": {"tls": {"client": {"extraDNSNames": ["etcd.example.com"]}}}})
        made.wait(320.0)
        made.settle()
        assert "etcd.example.com" in describe(secrets(made)["c-0000-tls"]["server.crt"]).names


def test_where_nothing_is_renewed_in_time_it_is_reported_and_nobody_is_taken_for_lost() -> None:
    kind, body = ephemeral(size=1, tls=HOUR)
    with issued(kind, body, ago=timedelta(minutes=50)) as (made, issuer):
        issuer.refusal = "the issuer is away"
        pods = made.names(PODS)
        later(made, 53)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert made.condition(kind, "CertificateExpiring")["status"] == "True"
        assert "Failed: the issuer is away" in made.condition(kind, "Degraded")["message"]
        later(made, 10)
        told = "no member is asked until cert-manager has issued another one"
        made.run_until(lambda: told in made.condition(kind, "Degraded").get("message", ""))
        # What there is for peers does not wait for what is missing for clients.
        issuer.refused = frozenset({"c-cert-manager-operator"})
        made.wait(120.0)
        held = secrets(made)
        assert held["c-0000-tls"]["peer.crt"] == held["c-cert-manager-peer"]["tls.crt"]
        assert held["c-0000-tls"]["server.crt"] != held["c-cert-manager-server"]["tls.crt"]
        assert told in made.condition(kind, "Degraded")["message"]
        issuer.refusal = ""
        made.run_until(
            lambda: (
                files(authorities(made)[0])["client-leaf-operator.crt"]
                == secrets(made)["c-cert-manager-operator"]["tls.crt"]
            )
        )
        assert made.names(PODS) == pods


def test_a_survivor_is_copied_with_the_certificate_of_the_operator() -> None:
    kind, body = ephemeral(tls=BOTH)
    with issued(kind, body) as (made, _):
        made.etcd.put(b"key", b"value")
        for pod in sorted(made.names(PODS))[:2]:
            made.delete(PODS, pod)
        made.run_until(lambda: "recovery" in made.status(kind))
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        made.wait(310.0)
        assert not any("seed.key" in found for found in secrets(made).values())


@pytest.mark.parametrize(
    ("instead", "told"),
    [
        ("c-cert-manager-server", "lacks the extended key usage clientAuth"),
        ("c-cert-manager-peer-dial", "has the common name 'etcd-peer' instead of 'root': use an issuer that"),
    ],
)
def test_what_an_issuer_has_changed_is_refused(instead: str, told: str) -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with world(kind.group) as made:
        CertManager(made)
        made.start()
        made.create(kind, body)
        made.run_until(lambda: set(REQUESTED) <= set(made.names(SECRETS)))
        content = {"data": made.get(SECRETS, instead)["data"]}
        made.api.objects.patch(SECRETS, "default", "c-cert-manager-operator", content, "merge")
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert told in made.condition(kind, "Degraded")["message"]
