"""Edits that the API server accepts: sizes, versions, whole objects, the status."""

import json
from collections.abc import Callable

import pytest

from unit.api.contract.case import (
    ABSENT,
    EPHEMERAL,
    PEER,
    PERSISTENT,
    REQUESTS,
    Changes,
    Manifest,
    changed,
    running_ephemeral,
    running_persistent,
)
from unit.api.contract.conftest import Requests, Result
from unit.api.contract.schedule_cases import SCHEDULE, TEMPLATE
from unit.waiting import eventually

pytestmark = pytest.mark.cluster

OLDEST = {**changed(EPHEMERAL, {"spec": ABSENT}), "size": 1}


@pytest.mark.parametrize(("base", "field"), [(PERSISTENT, "replicas"), (EPHEMERAL, "size"), (OLDEST, "size")])
def test_kubectl_scale_works_warns_and_keeps_the_minimum(
    kubectl: Requests, base: Manifest, field: str
) -> None:
    stored = kubectl.store(base)
    target = f"{_resource(stored)}/{stored['metadata']['name']}"
    scaled = kubectl("scale", target, "--replicas=2")
    assert scaled.code == 0, scaled.err
    assert "2 members tolerate the failure of none" in scaled.err
    assert kubectl("get", target, "-o", f"jsonpath={{.spec.{field}}}").out == "2"
    refused = kubectl("scale", target, "--replicas=0")
    assert f"spec.{field} in body should be greater than or equal to 1" in refused.err


def test_a_whole_put_needs_no_resource_version(kubectl: Requests) -> None:
    stored = kubectl.store(EPHEMERAL)
    body = changed(stored, {"spec": {"size": 3}})
    answers = []

    def accepted() -> bool:
        answers.append(_put(kubectl, body))
        return answers[-1].code == 0

    eventually(accepted, f"a PUT without a resource version: {answers}")
    assert json.loads(answers[-1].out)["spec"] == {"size": 3}


def test_a_status_put_needs_no_resource_version(kubectl: Requests) -> None:
    body = changed(kubectl.store(EPHEMERAL), {"status": {"phase": "Running"}})
    eventually(lambda: _put(kubectl, body, "/status").code == 0, "a status PUT without a resource version")


def test_a_put_with_a_stale_resource_version_conflicts(kubectl: Requests) -> None:
    body = changed(kubectl.store(EPHEMERAL), {"metadata/resourceVersion": "1"})
    assert "the object has been modified" in _put(kubectl, body).err


def test_a_version_may_be_removed_and_set_again(kubectl: Requests) -> None:
    stored = kubectl.store(changed(EPHEMERAL, {"status/currentVersion": "3.5.35"}))
    without = changed(stored, {"spec/version": ABSENT})
    with_v = changed(stored, {"spec/version": "v3.5.35"})
    for edit in (without, with_v, changed(stored, {"spec/version": "3.5.35"})):
        answer = kubectl.replace(edit)
        assert answer.code == 0, answer.err


MOVES = [
    ("3.6.16", "3.6.99", "3.6.99"),
    ("3.6.16", "3.6.99", "3.6.16"),
    ("3.5.35", "3.6.16", "3.5.35"),
    ("3.5.34", "3.5.35", "3.6.16"),
    ("3.5.32", "3.5.32", "v3.6.0"),
    ("3.6.11", "3.6.11", "3.7.0"),
    ("3.6.16", "3.5.35", "3.5.35"),
    ("", "3.6.99", "3.5.35"),
]
"""The running version, the previous desired version, and an accepted new one."""


@pytest.mark.parametrize(("runs", "before", "desired"), MOVES)
@pytest.mark.parametrize("base", [running_persistent, running_ephemeral])
def test_a_version_change_is_judged_by_the_running_version(
    kubectl: Requests, base: Callable[[str], Manifest], runs: str, before: str, desired: str
) -> None:
    served = base(runs) if runs else changed(base("3.6.16"), {"status": {}})
    stored = kubectl.store(changed(served, {"spec/version": before}))

    answer = kubectl.replace(changed(stored, {"spec/version": desired}))

    assert answer.code == 0, answer.err


def test_storage_may_be_corrected_before_a_cluster_has_served(kubectl: Requests) -> None:
    for status in ({}, {"bootstrap": {"members": ["my-cluster-0"], "token": "t", "version": "3.6.16"}}):
        stored = kubectl.store(changed(PERSISTENT, {"status": status}))
        answer = kubectl.replace(changed(stored, {f"{REQUESTS}/storage": "60Mi"}))
        assert answer.code == 0, answer.err


def test_a_status_may_change_whatever_the_spec_is(kubectl: Requests) -> None:
    stored = kubectl.store(changed(EPHEMERAL, {"status/currentVersion": "3.5.35"}))
    patch = json.dumps({"status": {"currentVersion": "3.6.16", "phase": "Running"}})
    name = stored["metadata"]["name"]
    answer = kubectl("patch", _resource(stored), name, "--subresource=status", "--type=merge", "-p", patch)
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("base", [PERSISTENT, EPHEMERAL])
def test_a_status_may_change_where_an_adoption_lacks_its_spec(kubectl: Requests, base: Manifest) -> None:
    adoption = {"members": [{"id": "c0de", "endpoint": "10.0.0.1:2379", "peerURLs": []}]}
    stored = kubectl.store(changed(base, {"status": {"clusterID": "ada", "adoption": adoption}}))
    patch = json.dumps({"status": {"currentVersion": "3.6.16"}})
    name = stored["metadata"]["name"]
    answer = kubectl("patch", _resource(stored), name, "--subresource=status", "--type=merge", "-p", patch)
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("edit", [{"spec/adopt/endpoints": ["http://10.0.0.2:2379"]}, {"spec/adopt": ABSENT}])
def test_an_adoption_of_which_nothing_is_known_may_be_corrected_or_withdrawn(
    kubectl: Requests, edit: Changes
) -> None:
    status = {"clusterID": "ada", "adoption": {"members": []}}
    asked = {"endpoints": ["http://10.0.0.1:2379"]}
    stored = kubectl.store(changed(PERSISTENT, {"spec/adopt": asked, "status": status}))
    answer = kubectl.replace(changed(stored, edit))
    assert answer.code == 0, answer.err


def test_spec_adopt_may_be_put_back_where_a_cluster_resumed_without_it(kubectl: Requests) -> None:
    status = {"clusterID": "ada", "bootstrap": {"members": [], "token": "token-1"}}
    stored = kubectl.store(changed(PERSISTENT, {"status": status}))
    answer = kubectl.replace(changed(stored, {"spec/adopt": {"endpoints": ["http://10.0.0.1:2379"]}}))
    assert answer.code == 0, answer.err


def test_a_bootstrapping_member_can_get_an_existing_only_start(kubectl: Requests) -> None:
    stored = kubectl.store(changed(PEER, {"spec/bootstrap/initialClusterState": "New"}))
    existing_only = changed(stored, {"spec/bootstrap/initialClusterState": "Existing"})
    assert kubectl.replace(existing_only).code == 0


def test_a_schedule_and_its_template_may_be_edited(kubectl: Requests) -> None:
    stored = kubectl.store(SCHEDULE)
    url = "gs://my-bucket/{{ .UID }}"
    changes: Changes = {"spec/schedule": "@daily", f"{TEMPLATE}/destination/objectURLTemplate": url}
    answer = kubectl.replace(changed(stored, changes))
    assert answer.code == 0, answer.err


def _resource(manifest: Manifest) -> str:
    return f"{manifest['kind']}s.{manifest['apiVersion'].partition('/')[0]}".lower()


def _put(kubectl: Requests, body: Manifest, subresource: str = "") -> Result:
    name = body["metadata"]["name"]
    path = f"/apis/coreos.com/v1/namespaces/{kubectl.namespace}/etcdclusters/{name}{subresource}"
    return kubectl("replace", "--raw", path, "-f", "-", given=body)


NEITHER: Changes = {}
PEER_TLS: Changes = {"peer": {"auto": {}}}
SUITES: Changes = {"cipherSuites": ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]}
CLIENT_TLS: Changes = {"client": {"auto": {}}}


@pytest.mark.parametrize("base", [PERSISTENT, EPHEMERAL])
def test_tls_between_members_of_a_running_cluster_is_added_and_removed(
    kubectl: Requests, base: Manifest
) -> None:
    for client in NEITHER, CLIENT_TLS:
        stored = kubectl.store(changed(base, {"spec/tls": client or ABSENT, "status/clusterID": "ada"}))
        for tls in ({**client, **PEER_TLS}, client):
            answer = kubectl.replace(changed(stored, {"spec/tls": tls or ABSENT}))
            assert answer.code == 0, answer.err


@pytest.mark.parametrize("base", [PERSISTENT, EPHEMERAL])
def test_tls_for_clients_of_a_running_cluster_is_added_and_removed(kubectl: Requests, base: Manifest) -> None:
    for kept in NEITHER, PEER_TLS:
        tls = {"spec/tls": kept or ABSENT}
        stored = kubectl.store(changed(base, {**tls, "status/clusterID": "ada"}))
        for mode in ("Disabled", "Prefer", "Require", "Prefer"):
            answer = kubectl.replace(
                changed(stored, {"spec/tls": {**kept, "client": {"auto": {}, "mode": mode}}})
            )
            assert answer.code == 0, answer.err
        answer = kubectl.replace(changed(stored, tls))
        assert answer.code == 0, answer.err


@pytest.mark.parametrize("base", [PERSISTENT, EPHEMERAL])
def test_settings_for_clients_of_a_running_cluster_are_changed(kubectl: Requests, base: Manifest) -> None:
    stored = kubectl.store(changed(base, {"spec/tls": CLIENT_TLS, "status/clusterID": "ada"}))
    for settings in ({"clientCertAuth": False}, {"clientCertAuth": True}, {"caDuration": "300d"}, SUITES):
        answer = kubectl.replace(changed(stored, {"spec/tls": {"client": {"auto": {}, **settings}}}))
        assert answer.code == 0, answer.err
