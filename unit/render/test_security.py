"""Members' pods are what the Pod Security Standard `restricted` admits, unless somebody says otherwise."""

from collections.abc import Iterator
from typing import Any

import pytest

from etcd_operator.api.meta import RawObject
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from etcd_operator.render import ephemeral, persistent, seed
from etcd_operator.render.security import RESTRICTED, USER
from unit.dialects.builders import DEFAULTS, bare, durable
from unit.render.cases import (
    ASKED_SEEDING,
    BARE_FOUNDING,
    FOUNDING,
    IMAGE,
    JOINING,
    PLAIN,
    PLAIN_BARE,
    RESUMING,
    SEEDING,
    peer_of,
)

Spec = dict[str, Any]

MARK = "etcd.improbable.io/non-root"


def replica_set_spec(cluster: DesiredCluster, start: Any = FOUNDING, **options: bool) -> Spec:
    """The spec of a persistent member's pod."""
    body = persistent.replica_set(peer_of(cluster, start=start), IMAGE, **options)
    spec: Spec = body["spec"]["template"]["spec"]
    return spec


def containers(spec: Spec) -> list[Spec]:
    """All of a pod, in the order of their start."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def breaches(spec: Spec) -> Iterator[str]:
    """What `restricted` (and `baseline` under it) does not admit, as far as our pods could have it."""
    pod = spec.get("securityContext", {})
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    for volume in spec["volumes"]:
        if not {"emptyDir", "persistentVolumeClaim"} & set(volume):
            yield f"volume {volume['name']}"
    if pod.get("runAsUser") == 0 or pod.get("runAsNonRoot") is not True:
        yield "root"
    if pod.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "seccomp"
    for container in containers(spec):
        yield from (f"{container['name']}: {what}" for what in _breaches_of(container))


def _breaches_of(container: Spec) -> Iterator[str]:
    own = container.get("securityContext", {})
    if own.get("allowPrivilegeEscalation") is not False:
        yield "escalation"
    if own.get("capabilities") != {"drop": ["ALL"]}:
        yield "capabilities"
    if {"runAsUser", "runAsNonRoot", "seccompProfile", "privileged"} & set(own):
        yield "something of its own"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "host port"


PODS = {
    "ephemeral": ephemeral.pod(PLAIN_BARE, "db-0001", BARE_FOUNDING)["spec"],
    "ephemeral seed": seed.pod(PLAIN_BARE, "db-0003", SEEDING)["spec"],
    "persistent": replica_set_spec(PLAIN),
    "persistent, joining": replica_set_spec(PLAIN, JOINING),
    "persistent, resuming": replica_set_spec(PLAIN, RESUMING),
    "persistent seed": replica_set_spec(PLAIN, ASKED_SEEDING, is_restored=True),
}
EACH = pytest.mark.parametrize("spec", PODS.values(), ids=PODS)


@EACH
def test_a_pod_is_admitted_where_restricted_is_enforced(spec: Spec) -> None:
    assert list(breaches(spec)) == []


@EACH
def test_etcd_writes_to_volumes_alone_and_they_are_its_own(spec: Spec) -> None:
    for container in containers(spec):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    context = spec["securityContext"]
    assert {context[field] for field in ("runAsUser", "runAsGroup", "fsGroup")} == {USER}
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"


OWN: dict[str, RawObject] = {
    "another user": {"runAsUser": 0},
    "nothing at all": {},
    "what OpenShift fills in": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_the_users_context_stands_in_place_of_the_whole_default(own: RawObject) -> None:
    durably = ImprobableDialect(DEFAULTS).desired(durable({"podTemplate": {"securityContext": own}}))
    barely = CoreosDialect(DEFAULTS).desired(bare({"size": 3, "pod": {"securityContext": own}}))
    specs = (
        replica_set_spec(durably),
        replica_set_spec(durably, is_root_owned=True),
        ephemeral.pod(barely, "db-0001", BARE_FOUNDING)["spec"],
    )
    for spec in specs:
        assert spec["securityContext"] == own
        assert containers(spec)[0]["securityContext"] == RESTRICTED.container
    assert MARK not in persistent.claim(peer_of(durably))["metadata"]["annotations"]


def test_on_a_volume_of_root_etcd_stays_root_with_what_root_needs_to_read_it() -> None:
    spec = replica_set_spec(PLAIN, is_root_owned=True)

    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}
    assert MARK not in persistent.claim(peer_of(PLAIN), is_root_owned=True)["metadata"]["annotations"]


def test_the_checker_of_this_file_sees_what_is_wrong() -> None:
    found = list(breaches(replica_set_spec(PLAIN, ASKED_SEEDING, is_restored=True, is_root_owned=True)))

    assert found == ["root", "fetch: capabilities", "restore: capabilities", "etcd: capabilities"]
