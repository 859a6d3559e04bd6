"""Members' pods comply with the Pod Security Standard `restricted`, unless the resource overrides it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import ClaimBackup
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect, no_image
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, persistent, persistent_pod, seed
from etcd_operator.controllers.shared.manifests.security import RESTRICTED, USER, as_etcd
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, coreos_cluster, improbable_cluster
from unit.controllers.manifests.backups import FILE, backup_job_of, seed_job_of
from unit.controllers.manifests.cases import (
    BOOTSTRAPPING,
    EPHEMERAL_BOOTSTRAPPING,
    EPHEMERAL_SEEDING,
    IMAGE,
    JOINING,
    PERSISTENT_SEEDING,
    PLAIN_EPHEMERAL,
    PLAIN_PERSISTENT,
    RESUMING,
    peer_of,
)

Spec = dict[str, Any]

NON_ROOT = "etcd.improbable.io/non-root"


def replica_set_spec(cluster: DesiredCluster, start: Any = BOOTSTRAPPING, **options: Any) -> Spec:
    """The spec of a persistent member's pod."""
    body = persistent_pod.replica_set(peer_of(cluster, start=start), IMAGE, **options)
    spec: Spec = body["spec"]["template"]["spec"]
    return spec


def containers(spec: Spec) -> list[Spec]:
    """All containers of a pod, in the order of their start."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def breaches(spec: Spec) -> Iterator[str]:
    """Violations of `restricted` (and `baseline`), as far as our pods could have them."""
    pod = spec.get("securityContext", {})
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    for volume in spec["volumes"]:
        if not {"emptyDir", "persistentVolumeClaim", "secret"} & set(volume):
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
        yield "overrides"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "host port"


PODS = {
    "ephemeral": ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING)["spec"],
    "ephemeral seed": seed.pod(PLAIN_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image)["spec"],
    "persistent": replica_set_spec(PLAIN_PERSISTENT),
    "persistent, joining": replica_set_spec(PLAIN_PERSISTENT, JOINING),
    "persistent, resuming": replica_set_spec(PLAIN_PERSISTENT, RESUMING),
    "persistent seed": replica_set_spec(PLAIN_PERSISTENT, PERSISTENT_SEEDING, is_restored=True),
}
BACKUP = backup_job_of(
    "s3://b/x",
    credentials={"aws": FILE},
    encryption={"secretName": "keys"},
)["spec"]["template"]["spec"]
PODS["backup"] = BACKUP
EACH = pytest.mark.parametrize("spec", PODS.values(), ids=PODS)


@EACH
def test_a_pod_complies_with_restricted(spec: Spec) -> None:
    assert list(breaches(spec)) == []


@EACH
def test_etcd_writes_only_to_its_own_volumes(spec: Spec) -> None:
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
def test_a_context_of_the_user_replaces_the_whole_default(own: RawObject) -> None:
    persistent_cluster = ImprobableDialect(DEFAULTS).desired(
        improbable_cluster({"podTemplate": {"securityContext": own}})
    )
    ephemeral_cluster = CoreosDialect(DEFAULTS).desired(
        coreos_cluster({"size": 3, "pod": {"securityContext": own}})
    )
    specs = (
        replica_set_spec(persistent_cluster),
        replica_set_spec(persistent_cluster, is_root_owned=True),
        ephemeral.pod(ephemeral_cluster, "db-0001", EPHEMERAL_BOOTSTRAPPING)["spec"],
    )
    for spec in specs:
        assert spec["securityContext"] == own
        assert containers(spec)[0]["securityContext"] == RESTRICTED.container
    assert NON_ROOT not in persistent.claim(peer_of(persistent_cluster))["metadata"]["annotations"]


def test_on_a_volume_of_root_etcd_runs_as_root_with_its_capabilities() -> None:
    spec = replica_set_spec(PLAIN_PERSISTENT, is_root_owned=True)

    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}
    assert (
        NON_ROOT
        not in persistent.claim(peer_of(PLAIN_PERSISTENT), is_root_owned=True)["metadata"]["annotations"]
    )


def test_the_check_of_this_file_finds_violations() -> None:
    found = list(
        breaches(replica_set_spec(PLAIN_PERSISTENT, PERSISTENT_SEEDING, is_restored=True, is_root_owned=True))
    )

    assert found == ["root", "fetch: capabilities", "restore: capabilities", "etcd: capabilities"]


@pytest.mark.parametrize(
    ("context", "user"),
    [
        ({}, 0),
        ({"fsGroup": 2000}, 0),
        ({"runAsNonRoot": False}, 0),
        ({"runAsNonRoot": True}, None),
        ({"runAsUser": 1001}, 1001),
    ],
)
def test_the_image_of_the_operator_works_on_data_as_the_user_of_etcd(
    context: RawObject, user: int | None
) -> None:
    """A context that names no user leaves it to the image, and etcd's runs as root."""
    template = PodTemplate(security_context=context)
    assert as_etcd(context).get("runAsUser") == user
    cluster = replace(PLAIN_PERSISTENT, pod_template=template)
    job = seed_job_of(cluster, is_root_owned=False)
    assert job["spec"]["template"]["spec"]["securityContext"].get("runAsUser") == user
    start = Seeding(token="t", source=ClaimBackup(cluster="old"))
    other = replace(PLAIN_EPHEMERAL, pod_template=template)
    pod = seed.pod(other, "db-0003", start, image=lambda: "operator")
    fetch, restore = pod["spec"]["initContainers"]
    named = {**pod["spec"]["securityContext"], **fetch["securityContext"]}
    assert named.get("runAsUser") == user
    assert "runAsUser" not in restore["securityContext"]
