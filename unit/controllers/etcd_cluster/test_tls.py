"""Clusters with TLS: members serve it on loopback, with what is in their Secrets; the operator dials it."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import Mock, patch
from urllib.parse import urlsplit

import pytest

from etcd_operator.api.definitions.user_validations import RESERVED
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.shared_keys import ROTATE_CLIENT_ANNOTATION, ROTATE_PEER_ANNOTATION
from etcd_operator.api.tls import Tls
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    CA_LABEL,
    CLUSTER_ANNOTATION,
    authorities_secret,
    new_authorities,
)
from etcd_operator.controllers.etcd_cluster.tls import authorities as authorities_module
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.shared.secret_reads import AGAIN_SECONDS, KEPT_SECONDS
from etcd_operator.errors import Conflict, Forbidden, NotFound, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.listing import Listing
from etcd_operator.kube.views import Secret, Written
from etcd_operator.pki.authority import KeyPair, renewed_ca
from etcd_operator.pki.description import describe
from unit.controllers.etcd_cluster.decide import builders
from unit.fakes.apiserver import Answer, Fault, Json, Kind, Request, no_fault
from unit.fakes.apiserver.faults import GIVES_RIGHT_ON_SECRETS, no_right_on_config_maps
from unit.fakes.apiserver.kinds import CLAIMS, CONFIG_MAPS, PODS, SECRETS
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.launcher import Saved
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, MAKERS, PEERS, ephemeral, persistent
from unit.passes.disturbance import EachWrite, run_or_die
from unit.passes.harness import OWN_NAMESPACE
from unit.passes.manual_recoveries import ask
from unit.passes.manual_recoveries import lose as lose_volumes
from unit.passes.restored_clusters import Stored

HOUR: dict[str, Any] = {side: {"auto": {}, "leafDuration": "60m"} for side in ("peer", "client")}

ROTATIONS = (ROTATE_PEER_ANNOTATION, ROTATE_CLIENT_ANNOTATION)

BOTH: dict[str, Any] = {"peer": {"auto": {}}, "client": {"auto": {}}}


@contextmanager
def world(only: str = "", ago: timedelta = timedelta(0)) -> Iterator[Bench]:
    """With a clock that is right, or `ago` behind: certificates are verified by the real time."""
    with bench(FakeClock(datetime.now(UTC) - ago), only=(only,) if only else ()) as made:
        made.api.add_namespace(OWN_NAMESPACE)
        yield made


@contextmanager
def secured(kind: Kind, body: Json, ago: timedelta = timedelta(0)) -> Iterator[Bench]:
    """A cluster with TLS that is as desired."""
    with world(kind.group, ago) as made:
        made.start()
        made.create(kind, body)
        made.settle()
        yield made


def files(secret: Json) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in secret["data"].items()}


def authorities(made: Bench) -> list[Json]:
    return made.api.objects.select(SECRETS, OWN_NAMESPACE)


def secrets(made: Bench) -> dict[str, dict[str, bytes]]:
    found = made.api.objects.select(SECRETS, "default")
    return {secret["metadata"]["name"]: files(secret) for secret in found}


@MAKERS
def test_a_cluster_is_made_with_tls_and_resized(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        (cas,) = map(files, authorities(made))
        record = made.status(kind)["tls"]
        assert describe(cas["peer-issuer.crt"]).key_id == record["peerCA"]
        assert describe(cas["client-issuer.crt"]).key_id == record["clientCA"]
        held = secrets(made)
        for name, found in held.items():
            keys = {content for file, content in cas.items() if file.endswith(".key")}
            assert not keys & set(found.values()), name
        published = made.get(CONFIG_MAPS, "c-ca")["data"]["ca.crt"].encode()
        assert published == held["c-client-tls"]["ca.crt"]
        assert published == cas["client-issuer.crt"] + cas["client-next.crt"]
        name = describe(held["c-client-tls"]["tls.crt"]).common_name
        assert name == "etcd-client"
        assert not RESERVED.fits(name), "no EtcdUser may have it"
        for size in (2, 1):
            made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": size}})
            made.settle()
            pods = made.objects()["pods"]
            held = secrets(made)
            assert held.keys() == {"c-client-tls", *(f"{pod}-tls" for pod in pods)}
            # The Jobs of backups dial what the status has, and verify its names.
            hosts = {urlsplit(url).hostname for url in made.status(kind)["endpoints"]}
            assert len(hosts) == size
            assert hosts <= {
                name for pod in pods for name in describe(held[f"{pod}-tls"]["server.crt"]).names
            }
        made.rest()


def test_plain_clusters_have_neither() -> None:
    with bench() as made:
        made.start()
        made.create(*ephemeral(size=1))
        made.settle()
        assert not made.api.objects.select(SECRETS)
        assert "tls" not in made.status(COREOS)


@pytest.mark.exhaustive
@MAKERS
@pytest.mark.parametrize("write", range(1, 12))
def test_an_operator_that_dies_while_it_makes_them_leaves_one_pair_of_cas(make: type, write: int) -> None:
    kind, body = make(size=1, tls=BOTH)
    with world(kind.group) as made:
        made.create(kind, body)
        made.start(dies_at=write)
        assert not run_or_die(made, made.settle)
        made.start()
        made.settle()
        (cas,) = map(files, authorities(made))
        assert describe(cas["client-issuer.crt"]).key_id == made.status(kind)["tls"]["clientCA"]


def conditions(made: Bench) -> dict[str, list[Json]]:
    """Of pods and peers, by name."""
    found = [*made.api.objects.select(PODS, "default"), *made.api.objects.select(PEERS, "default")]
    return {each["metadata"]["name"]: each.get("status", {}).get("conditions", []) for each in found}


@MAKERS
def test_without_its_cas_nothing_is_changed_until_they_are_back(make: type) -> None:
    """The members serve, and their pods remain ready: the operator does not ask them."""
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        (stored,) = authorities(made)
        made.api.objects.delete(SECRETS, OWN_NAMESPACE, stored["metadata"]["name"])
        serving = conditions(made)
        made.restart()
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        before = len(made.writes())
        made.wait(30.0)
        assert made.reason(kind) == "TLSInvalid"
        assert conditions(made) == serving
        assert all("/status" in write.request.path for write in made.writes()[before:])
        kept = {field: stored["metadata"][field] for field in ("name", "labels", "annotations")}
        made.api.objects.create(SECRETS, OWN_NAMESPACE, {**stored, "metadata": kept})
        made.settle()


@pytest.mark.parametrize("code", [500, 403])
def test_a_lost_member_is_replaced_while_secrets_cannot_be_read(code: int) -> None:
    """As without a KMS. Only the pod of the new member waits for it: it would not start anyhow."""
    kind, body = ephemeral(tls=BOTH)
    with secured(kind, body, ago=timedelta(minutes=10)) as made:
        lose_a_member_without_secrets(made, code)


def lose_a_member_without_secrets(made: Bench, code: int) -> None:
    """One of three members is lost while Secrets cannot be read, and is replaced once they can be."""
    made.api.before = partial(unreadable, code)
    made.wait(310.0)
    lost = min(made.names(PODS))
    made.delete(PODS, lost)
    made.run_until(lambda: lost not in {member.name for member in made.etcd.etcd.members})
    made.api.before = no_fault
    made.settle()
    assert len(made.names(PODS)) == 3
    made.rest()


def unreadable(code: int, request: Request) -> Fault | None:
    """Secrets in the namespace of the cluster."""
    is_read = request.plural == "secrets" and not request.is_write
    return Answer(code=code) if is_read and "/default/" in request.path else None


def test_a_secret_that_cannot_be_written_stops_neither_a_repair_nor_the_renewal_of_others() -> None:
    """As one that is immutable."""
    sides = {side: {"auto": {}, "leafDuration": "60m"} for side in BOTH}
    kind, body = ephemeral(tls=sides)
    with secured(kind, body, ago=timedelta(minutes=55)) as made:
        before, (first, second, lost) = secrets(made), sorted(made.names(PODS))
        made.api.before = partial(immutable, f"{first}-tls")
        for _ in range(42):
            made.wait(60.0)
        made.run_until(lambda: made.reason(kind) == "Invalid")
        after = secrets(made)
        assert after[f"{first}-tls"] == before[f"{first}-tls"]
        assert after[f"{second}-tls"] != before[f"{second}-tls"]
        made.delete(PODS, lost)
        made.run_until(lambda: lost not in made.names(PODS) and len(made.names(PODS)) == 3)
        made.api.before = no_fault
        made.wait(60.0)
        made.settle()
        assert secrets(made)[f"{first}-tls"] != before[f"{first}-tls"]


def immutable(name: str, request: Request) -> Fault | None:
    """A Secret that is not changed any more."""
    is_change = request.method == "PATCH" and request.path.endswith(f"/secrets/{name}")
    return Answer(code=422, reason="Invalid", message="field is immutable") if is_change else None


def test_a_leaf_of_somebody_else_is_replaced() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with secured(kind, body, ago=timedelta(minutes=10)) as made:
        before = secrets(made)
        key = base64.b64encode(before["c-client-tls"]["tls.key"]).decode()
        made.edit(SECRETS, "c-0000-tls", {"data": {"server.key": key}})
        made.wait(310.0)
        made.settle()
        assert secrets(made)["c-0000-tls"]["server.key"] != before["c-client-tls"]["tls.key"]
        made.rest()


@MAKERS
def test_a_record_that_an_operator_without_tls_removed_is_written_again(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        made.kill()
        record, pods = made.status(kind)["tls"], made.names(PODS)
        made.edit(kind, "c", {"status": {"tls": None}}, subresource="status")
        made.start()
        made.settle()
        assert made.status(kind)["tls"] == record
        assert made.names(PODS) == pods
        made.rest()


@MAKERS
def test_members_whose_tls_is_not_recorded_are_not_dialed_without_the_proof_of_their_cas(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        (stored,) = authorities(made)
        made.kill()
        made.edit(kind, "c", {"status": {"tls": None}}, subresource="status")
        made.api.objects.delete(SECRETS, OWN_NAMESPACE, stored["metadata"]["name"])
        made.start()
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        before, pods = len(made.writes()), made.names(PODS)
        made.wait(30.0)
        assert "an operator without TLS has written it" in made.condition(kind, "Degraded")["message"]
        assert all("/status" in write.request.path for write in made.writes()[before:])
        kept = {field: stored["metadata"][field] for field in ("name", "labels", "annotations")}
        made.api.objects.create(SECRETS, OWN_NAMESPACE, {**stored, "metadata": kept})
        made.settle()
        assert made.names(PODS) == pods


def test_secrets_that_cannot_be_read_from_the_beginning_are_reported() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with secured(kind, body) as made:
        made.api.before = partial(unreadable, 500)
        made.restart()
        made.run_until(lambda: made.reason(kind) == "TLSUnreadable")
        assert made.condition(kind, "Available")["status"] == "True"
        made.api.before = no_fault
        made.settle()


@MAKERS
def test_without_a_right_on_config_maps_a_cluster_serves_and_reports_it(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with world(kind.group) as made:
        made.api.before = no_right_on_config_maps
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "Forbidden")
        found = {each["type"]: each for each in made.status(kind)["conditions"]}
        assert found["Available"]["status"] == "True"
        assert found["Degraded"]["message"].endswith(GIVES_RIGHT_ON_SECRETS)
        assert "c-client-tls" in secrets(made)
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3, "version": "v3.7.3"}})
        made.run_until(lambda: made.status(kind)["currentVersion"] == "3.7.3", turns=2000)
        made.run_until(lambda: len(made.etcd.etcd.members) == 3)
        made.run_until(lambda: made.reason(kind) == "Forbidden")
        made.api.before = no_fault
        made.settle()
        made.rest()


@MAKERS
def test_leafs_are_renewed_at_two_thirds_without_a_restart(make: type) -> None:
    kind, body = make(size=1, tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=45)) as made:
        before, pods = secrets(made), made.names(PODS)
        assert made.operator is not None
        made.operator.schedule.advance(41 * 60.0)
        made.settle()
        after = secrets(made)
        assert before.keys() == after.keys()
        for name, found in after.items():
            assert all(found[f] != before[name][f] for f in found if "ca.crt" not in f)
            assert all(found[f] == before[name][f] for f in found if "ca.crt" in f)
        assert made.names(PODS) == pods
        made.rest()


@MAKERS
def test_cas_are_rotated_on_request_with_one_restart_of_each_member(make: type) -> None:
    """Ephemeral members are restarted in their pods, which have their data."""
    kind, body = make(tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=50)) as made:
        made.etcd.put(b"key", b"value")
        (before,) = map(files, authorities(made))
        former, identity = made.etcd.etcd.cluster_id, made.status(kind)["clusterID"]
        request_rotation(made, kind)
        made.run_until(lambda: made.condition(kind, "Progressing")["reason"] == "TLSRotating")
        after = rotated(made, kind)
        record = made.status(kind)["tls"]
        for side in ("peer", "client"):
            assert after[f"{side}-issuer.crt"] == before[f"{side}-next.crt"]
            assert after[f"{side}-next.crt"] != before[f"{side}-issuer.crt"]
            assert f"{side}-old.crt" not in after
            assert describe(after[f"{side}-issuer.crt"]).key_id == record[f"{side}CA"]
        held, bundle = secrets(made), after["client-issuer.crt"] + after["client-next.crt"]
        assert {found.get("client-ca.crt", bundle) for found in held.values()} == {bundle}
        assert made.get(CONFIG_MAPS, "c-ca")["data"]["ca.crt"].encode() == held["c-client-tls"]["ca.crt"]
        assert held["c-client-tls"]["ca.crt"] == bundle
        assert (made.etcd.etcd.cluster_id, made.status(kind)["clusterID"]) == (former, identity)
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        reasons = [event["reason"] for event in made.events()]
        assert (reasons.count("MemberRestarted"), reasons.count("UpgradeFinished")) == (3, 0)
        made.rest()
        made.restart()
        made.rest()  # what no handshake has shown yet is not reported


def test_cas_of_before_a_rotation_are_refused() -> None:
    """Somebody restores an old copy of the Secret: members do not trust its CAs any more."""
    kind, body = persistent(size=1, tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=50)) as made:
        (stored,) = authorities(made)
        request_rotation(made, kind)
        rotated(made, kind)
        held, pods = secrets(made), made.names(PODS)
        made.kill()
        name, data = stored["metadata"]["name"], stored["data"]
        old = {"client-old.crt": None, "peer-old.crt": None, **data}
        made.api.objects.patch(SECRETS, OWN_NAMESPACE, name, {"data": old}, "merge")
        made.start()
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        made.wait(60.0)
        assert (secrets(made), made.names(PODS)) == (held, pods)


@pytest.mark.exhaustive
@MAKERS
def test_a_rotation_goes_on_while_members_come_and_go(make: type) -> None:
    kind, body = make(tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=50)) as made:
        made.etcd.put(b"key", b"value")
        request_rotation(made, kind)
        size = "size" if kind is COREOS else "replicas"
        for phase, wanted in (("Trusting", 4), ("Reissuing", 2), ("Dropping", 3)):
            made.run_until(lambda phase=phase: phase in phases(made), turns=3000)  # type: ignore[misc]
            made.edit(kind, "c", {"spec": {size: wanted}})
            if phase == "Reissuing":
                made.delete(PODS, min(made.names(PODS)))
        after = rotated(made, kind)
        assert len(made.names(PODS)) == 3
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        bundle = after["client-issuer.crt"] + after["client-next.crt"]
        assert {found.get("client-ca.crt", bundle) for found in secrets(made).values()} == {bundle}
        made.rest()


def phases(made: Bench) -> set[str]:
    (found,) = map(files, authorities(made))
    return {json.loads(found[f"{side}.json"])["phase"] for side in ("peer", "client")}


@MAKERS
def test_clients_without_tls_are_served_and_refused_again_with_one_restart_of_each_member(make: type) -> None:
    kind, body = make(tls=BOTH)
    with secured(kind, body) as made:
        made.etcd.put(b"key", b"value")
        former, keys = made.etcd.etcd.cluster_id, kind.group
        for restarts, (mode, lowest) in enumerate((("Prefer", "TLS1.3"), ("Require", "TLS1.2")), start=1):
            made.edit(kind, "c", {"spec": {"tls": {"client": {"mode": mode, "minVersion": lowest}}}})
            made.run_until(lambda: made.condition(kind, "Progressing")["reason"] == "TLSRotating")
            made.settle()
            assert served(made, keys) == {(("http," if mode == "Prefer" else "") + "https", lowest)}
            counts = Counter({event["reason"]: 0 for event in made.events()})
            for event in made.events():
                counts[event["reason"]] += event["count"]
            assert (counts["MemberRestarted"], counts["UpgradeFinished"]) == (3 * restarts, 0)
            made.rest()
        assert made.etcd.etcd.cluster_id == former
        assert made.etcd.etcd.keys[b"key"][0] == b"value"


def served(made: Bench, group: str) -> set[tuple[str, str]]:
    """How members serve clients: the schemes, and the lowest version of TLS."""
    annotations = [made.get(PODS, name)["metadata"]["annotations"] for name in made.names(PODS)]
    urls = [
        (found[f"{group}/listen-client-urls"], found[f"{group}/tls-min-version"]) for found in annotations
    ]
    return {(at.replace("://0.0.0.0:2379", ""), lowest) for at, lowest in urls}


@pytest.mark.exhaustive
@MAKERS
def test_a_change_of_the_mode_is_reverted_while_the_operator_dies_at_any_write(make: type) -> None:
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=1, tls=BOTH)
        with secured(kind, body) as made:
            made.etcd.put(b"key", b"value")
            made.kill()
            made.edit(kind, "c", {"spec": {"tls": {"client": {"mode": "Prefer"}}}})
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, made.settle)
            if writes.goes_on:
                made.edit(kind, "c", {"spec": {"tls": {"client": {"mode": "Require"}}}})
                made.start()
                made.settle()
            assert served(made, kind.group) == {("https" if writes.goes_on else "http,https", "")}
            assert made.etcd.etcd.keys[b"key"][0] == b"value"


def request_rotation(made: Bench, kind: Kind) -> None:
    made.edit(kind, "c", {"metadata": {"annotations": dict.fromkeys(ROTATIONS, "1")}})


def rotated(made: Bench, kind: Kind) -> dict[str, bytes]:
    """What the Secret of the CAs has in the end."""
    for _ in range(40):
        made.wait(60.0)
        (found,) = map(files, authorities(made))
        sides = [json.loads(found[f"{side}.json"]) for side in ("peer", "client")]
        is_done = all((side["phase"], side.get("request")) == ("Stable", "1") for side in sides)
        if is_done and made.is_settled(kind, "c"):
            return found
    raise AssertionError(f"the rotation does not end: {made.story()}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", [pytest.param(ephemeral, marks=pytest.mark.long), persistent])
def test_an_operator_that_dies_at_a_write_of_a_rotation_is_followed_by_one_that_ends_it(make: type) -> None:
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=1, tls=HOUR)
        with secured(kind, body, ago=timedelta(minutes=50)) as made:
            made.etcd.put(b"key", b"value")
            made.kill()
            request_rotation(made, kind)
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, partial(rotated, made, kind))
            if writes.goes_on:
                made.start()
                rotated(made, kind)
            assert made.etcd.etcd.keys[b"key"][0] == b"value"
            assert len(made.names(PODS)) == 1


def age_client_ca(made: Bench, age: timedelta) -> dict[str, bytes]:
    """Make the client CA that old, while no operator runs; what there was before."""
    (stored,) = authorities(made)
    before = files(stored)
    pair = KeyPair(before["client-issuer.crt"], before["client-issuer.key"])
    aged = renewed_ca(pair, now=made.clock.now() - age, duration=timedelta(days=3650))
    data = {"client-issuer.crt": base64.b64encode(aged.certificate).decode()}
    made.api.objects.patch(SECRETS, OWN_NAMESPACE, stored["metadata"]["name"], {"data": data}, "merge")
    return before


@MAKERS
def test_a_ca_that_is_due_is_renewed_with_its_key_and_loaded_by_all_members(make: type) -> None:
    kind, body = make(size=2, tls=BOTH)
    with secured(kind, body) as made:
        made.kill()
        before = age_client_ca(made, timedelta(days=2500))
        record = made.status(kind)["tls"]
        made.start()
        for _ in range(10):
            made.wait(30.0)
        made.settle()
        (after,) = map(files, authorities(made))
        renewed = describe(after["client-issuer.crt"])
        assert renewed.not_after > describe(before["client-next.crt"]).not_after
        assert renewed.key_id == describe(before["client-issuer.crt"]).key_id
        assert after["peer-issuer.crt"] == before["peer-issuer.crt"]
        assert made.status(kind)["tls"] == record
        assert [event["reason"] for event in made.events()].count("MemberRestarted") == 2
        made.rest()


@MAKERS
def test_a_shorter_life_of_cas_renews_those_that_are_too_old_by_then(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body, ago=timedelta(minutes=15)) as made:
        made.kill()
        key = describe(age_client_ca(made, timedelta(days=190))["client-issuer.crt"]).key_id
        made.start()
        made.run_until(lambda: "MemberRestarted" in [event["reason"] for event in made.events()])
        made.settle()  # The member has loaded what is there now.
        for days, restarts in ((300, 0), (270, 1)):
            made.edit(kind, "c", {"spec": {"tls": {"client": {"caDuration": f"{days}d"}}}})
            for _ in range(10):
                made.wait(30.0)
            made.settle()
            (found,) = map(files, authorities(made))
            ca = describe(found["client-issuer.crt"])
            assert ca.key_id == key
            assert (ca.not_after - made.clock.now() < timedelta(days=270)) is bool(restarts)
            events = (event for event in made.events() if event["reason"] == "MemberRestarted")
            assert sum(event["count"] for event in events) == 1 + restarts
        made.rest()


def test_cas_that_are_deleted_while_the_operator_knows_them_are_restored() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with secured(kind, body, ago=timedelta(minutes=10)) as made:
        (stored,) = authorities(made)
        made.api.objects.delete(SECRETS, OWN_NAMESPACE, stored["metadata"]["name"])
        made.wait(310.0)
        (again,) = authorities(made)
        assert files(again) == files(stored)
        assert again["metadata"]["labels"] == stored["metadata"]["labels"]
        made.settle()


def test_certificates_are_renewed_while_the_cluster_is_paused() -> None:
    kind, body = ephemeral(size=1, tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=45)) as made:
        made.edit(kind, "c", {"spec": {"paused": True}})
        before = secrets(made)
        for _ in range(41):
            made.wait(60.0)
        after = secrets(made)
        assert before.keys() == after.keys()
        for name, found in after.items():
            assert all(found[f] != before[name][f] for f in found if "ca.crt" not in f), name
        assert made.condition(kind, "Progressing")["reason"] == "Paused"


def test_more_names_are_certified_at_once() -> None:
    kind, body = ephemeral(size=1, tls={"client": {"auto": {}}})
    with secured(kind, body) as made:
        names = {"extraDNSNames": ["etcd.example.com"], "extraIPs": ["192.0.2.1"]}
        made.edit(kind, "c", {"spec": {"tls": {"client": names}}})
        made.settle()
        assert {"etcd.example.com", "192.0.2.1"} <= set(
            describe(secrets(made)["c-0000-tls"]["server.crt"]).names
        )


def test_a_survivor_is_copied_over_tls() -> None:
    kind, body = ephemeral(tls=BOTH)
    with secured(kind, body) as made:
        made.etcd.put(b"key", b"value")
        for pod in sorted(made.names(PODS))[:2]:
            made.delete(PODS, pod)
        made.run_until(lambda: "recovery" in made.status(kind))
        made.settle()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        made.wait(310.0)
        assert not any("seed.key" in found for found in secrets(made).values())


def test_a_cluster_with_tls_begins_with_a_backup() -> None:
    """Its seed dials nobody: it has no certificate of root."""
    with world(COREOS.group) as made:
        made.etcds.backups["newest"] = Saved({b"key": (b"value", 2)}, 5, None)
        requested = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made.create(CLAIMS, {"metadata": {"name": "old-pvc"}, "spec": requested})
        made.start()
        kind, body = ephemeral(tls=BOTH, restore={"backupClusterName": "old"})
        made.create(kind, body)
        made.run_until(lambda: "c-0000" in made.names(PODS))
        assert "seed.key" not in secrets(made)["c-0000-tls"]
        made.settle()
        assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
        assert {url.partition(":")[0] for m in made.etcd.etcd.members for url in m.peer_urls} == {"https"}
        (cas,) = map(files, authorities(made))
        assert describe(cas["client-issuer.crt"]).key_id == made.status(kind)["tls"]["clientCA"]
        assert len(made.names(PODS)) == 3


def test_a_cluster_with_tls_that_lost_its_volumes_is_recovered_from_an_etcdbackup() -> None:
    with world() as made:
        made.start()
        kind, body = persistent(size=1, tls=BOTH)
        made.create(kind, body)
        made.settle()
        made.etcd.put(b"key", b"value")
        record, backups = made.status(kind)["tls"], Stored(made)
        backups.take()
        lose_volumes(made, 0)
        made.run_until(lambda: made.reason(kind) == "QuorumLost")
        made.wait(SILENCE + 1.0)
        ask(made, "c0de/backup:one/1")
        backups.until_restored()
        assert made.etcd.etcd.keys[b"key"][0] == b"value"
        (member,) = made.etcd.etcd.members
        assert [url.partition(":")[0] for url in member.peer_urls] == ["https"]
        assert made.status(kind)["tls"] == record
        assert not any("seed.key" in found for found in secrets(made).values())
        annotations = made.get(CLAIMS, member.name)["metadata"]["annotations"]
        assert annotations["etcd.improbable.io/peer-tls"] == "true"


def test_the_cas_of_a_deleted_cluster_are_deleted() -> None:
    kind, body = ephemeral(size=1, tls=BOTH)
    with secured(kind, body) as made:
        made.delete(kind, "c")
        made.run_until(lambda: not authorities(made))


def test_known_cas_are_used_while_their_secret_cannot_be_read() -> None:
    """An API server that starts answers 403 to what it allows a moment later."""
    clock, client, made = FakeClock(), Mock(spec=Client), Mock()
    client.get.side_effect = [Mock(), Forbidden("no"), Forbidden("no")]
    store = AuthorityStore(client=client, clock=clock, namespace=OWN_NAMESPACE, zone="z")
    cluster = Mock(key=Key("default", "c"), uid="u")
    with patch.object(authorities_module, "authorities_of", return_value=made):
        assert store.get(cluster) is made
    clock.advance(KEPT_SECONDS)
    assert store.get(cluster) is made
    with pytest.raises(Forbidden):
        store.get(Mock(key=Key("default", "d"), uid="other"))


@MAKERS
def test_cas_are_kept_while_members_that_outlive_their_cluster_use_them(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        former = authorities(made)
        made.delete(kind, "c", propagation="Orphan")
        made.wait(60.0)
        assert authorities(made) == former
        made.restart()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "TLSRefused")
        made.wait(60.0)
        assert authorities(made) == former
        made.delete(kind, "c")
        made.wait(60.0)
        assert authorities(made) == former


def test_a_clock_that_was_ahead_leaves_nothing_that_is_not_valid_yet() -> None:
    """Nothing that is read or issued counts for longer than it would have with the right clock.

    Nothing shows that it is wrong.
    """
    kind, body = ephemeral(size=1, tls=BOTH)
    with world(kind.group, ago=timedelta(minutes=10)) as made:
        made.api.ahead = None
        made.start()
        made.create(kind, body)
        made.settle()
        ahead = timedelta(days=80).total_seconds()
        made.clock.jump(ahead)
        made.wait(310.0)
        early = secrets(made)["c-0000-tls"]["server.crt"]
        assert describe(early).not_before > datetime.now(UTC)
        made.clock.jump(-ahead)
        made.wait(60.0)
        made.settle()
        assert describe(secrets(made)["c-0000-tls"]["server.crt"]).is_valid(datetime.now(UTC))
        made.rest()


def set_clock(made: Bench, change: timedelta) -> None:
    """That of the operator; that of the API server remains as it is."""
    made.clock.jump(change.total_seconds())
    made.api.ahead = (made.api.ahead or timedelta()) - change


@MAKERS
def test_nothing_is_issued_while_the_clock_is_off(make: type) -> None:
    """By this clock all leafs are due. What the operator has itself is valid: it goes on to ask members."""
    kind, body = make(size=1, tls=HOUR)
    with secured(kind, body, ago=timedelta(minutes=10)) as made:
        before, ahead = secrets(made), timedelta(minutes=45)
        set_clock(made, ahead)
        made.run_until(lambda: made.reason(kind) == "ClockSkew")
        made.wait(310.0)
        assert secrets(made) == before
        found = {each["type"]: each for each in made.status(kind)["conditions"]}
        assert found["Available"]["status"] == "True"
        assert found["Degraded"]["message"].startswith("client CA: the operator's clock is off by 44 min")
        set_clock(made, -ahead)
        made.wait(60.0)
        made.settle()
        assert secrets(made) == before
        made.rest()


@MAKERS
def test_nobody_is_asked_while_no_certificate_can_be_issued_for_that(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with secured(kind, body) as made:
        before, serving, ahead = secrets(made), conditions(made), timedelta(days=365)
        set_clock(made, ahead)
        made.restart()
        made.run_until(lambda: made.reason(kind) == "ClockSkew")
        made.wait(60.0)
        assert (secrets(made), conditions(made)) == (before, serving)
        set_clock(made, -ahead)
        made.wait(60.0)
        made.settle()
        assert secrets(made) == before
        made.rest()


@MAKERS
def test_a_cluster_is_made_once_the_clock_is_right(make: type) -> None:
    kind, body = make(size=1, tls=BOTH)
    with world(kind.group) as made:
        set_clock(made, -timedelta(minutes=10))
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "ClockSkew")
        assert not authorities(made)
        set_clock(made, timedelta(minutes=10))
        made.wait(60.0)
        made.settle()


def test_the_names_in_leafs_are_of_the_domain_that_is_recorded_with_the_cas() -> None:
    """So an operator that finds another one, as in the network of its node, replaces no leaf."""
    kind, body = ephemeral(size=1, tls=BOTH)
    with secured(kind, body) as made:
        (stored,) = authorities(made)
        assert files(stored)["zone"] == b"cluster.local"
        made.kill()
        name = stored["metadata"]["name"]
        data = {"zone": base64.b64encode(b"example.org\n").decode()}
        made.api.objects.patch(SECRETS, OWN_NAMESPACE, name, {"data": data}, "merge")
        made.start()
        made.wait(60.0)
        made.settle()
        names = describe(secrets(made)["c-0000-tls"]["server.crt"]).names
        assert "c.default.svc.example.org" in names
        made.kill()
        made.api.objects.patch(SECRETS, OWN_NAMESPACE, name, {"data": {"zone": None}}, "merge")
        made.start()
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert "it has no 'zone'" in made.condition(kind, "Degraded")["message"]


def test_cas_that_are_not_recorded_are_read_again_and_others_than_those_on_record_are_not_used() -> None:
    record = TlsRecord(peer_ca="a" * 40, client_ca="b" * 40, client_cert_auth=True)
    new = replace(builders.ephemeral(), tls=Tls())
    begun = replace(new, persisted=PersistedState(tls=record, cluster_id="c0de"))
    clock = FakeClock()
    body = authorities_secret(new, OWN_NAMESPACE, new_authorities(new, clock.now(), "z"))
    found = Secret(metadata=ObjectMeta(name="s", uid="s"), data=body["data"])
    client = Mock(spec=Client)
    client.get.side_effect = [found, found, Unavailable("no KMS"), NotFound("gone")]
    store = AuthorityStore(client=client, clock=clock, namespace=OWN_NAMESPACE, zone="z")
    assert store.get_live(new) == store.get_live(new) == store.get(new)
    with pytest.raises(Conflict, match="has other CAs than this cluster uses"):
        store.trust(begun, "c-0000")
    with pytest.raises(Unavailable, match="no KMS"):
        store.get_live(new)
    assert store.get(new) is not None
    clock.advance(AGAIN_SECONDS)
    assert store.get_live(new) is None


def test_cas_are_kept_while_the_kind_of_their_cluster_is_not_served() -> None:
    """A request for one cluster would get the same 404 as for one that was deleted."""
    about = {CLUSTER_ANNOTATION: "coreos.com/v1 default/c"}
    stored = ObjectMeta(name="etcd-authorities-u", uid="s", labels={CA_LABEL: "u"}, annotations=about)
    client = Mock(spec=Client)
    client.get.return_value = Written(metadata=stored)
    client.list.side_effect = [
        Listing(items=(Written(metadata=stored),), resource_version="1"),
        NotFound("404 page not found"),
    ]
    store = AuthorityStore(client=client, clock=FakeClock(), namespace=OWN_NAMESPACE, zone="z")
    assert not store.forget(Key("default", "c"), objects=Mock())
    assert client.list.call_count == 2
    client.delete.assert_not_called()
