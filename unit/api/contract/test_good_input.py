import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from unit.api.contract.case import (
    ABSENT,
    CLAIM,
    EPHEMERAL,
    PEER,
    PERSISTENT,
    Changes,
    Manifest,
    changed,
    running_ephemeral,
    running_persistent,
)
from unit.api.contract.conftest import Kubectl, Result, wait_for
from unit.api.contract.coreos_backup_cases import IN_S3, ON_VOLUME
from unit.api.contract.schedule_cases import SCHEDULE, TEMPLATE, VALID_SCHEDULES

pytestmark = pytest.mark.cluster

AFFINITY = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {
                        "matchExpressions": [
                            {
                                "key": "etcd.improbable.io/cluster-name",
                                "operator": "In",
                                "values": ["my-cluster"],
                            }
                        ]
                    },
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}
SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 1001,
    "runAsGroup": 1001,
    "fsGroup": 1001,
    "fsGroupChangePolicy": "Always",
    "supplementalGroups": [7],
    "seccompProfile": {"type": "RuntimeDefault"},
    "seLinuxOptions": {"level": "s0:c123,c456"},
}
POD_TEMPLATE = {
    "metadata": {"annotations": {"prometheus.io/port": "2379"}, "labels": {"team": "storage"}},
    "resources": {"requests": {"cpu": "200m", "memory": "200Mi"}, "limits": {"cpu": 1}},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "priorityClassName": "high",
    "securityContext": SECURITY,
}
OLDEST = {**changed(EPHEMERAL, {"spec": ABSENT}), "size": 1}

GOOD: dict[str, tuple[Manifest, Changes]] = {
    "the persistent cluster of the guide": (PERSISTENT, {"spec/podTemplate": POD_TEMPLATE}),
    "an affinity beside the pod template": (PERSISTENT, {"spec/affinity": AFFINITY}),
    "an affinity in the pod template": (PERSISTENT, {"spec/podTemplate/affinity": AFFINITY}),
    "a leading v": (PERSISTENT, {"spec/version": "v3.6.16"}),
    "a pre-release": (PERSISTENT, {"spec/version": "v3.6.0-rc.1"}),
    "the oldest minor": (PERSISTENT, {"spec/version": "3.4.0"}),
    "a name of 58 characters": (PERSISTENT, {"metadata/name": "n" * 58}),
    "storage in bytes": (PERSISTENT, {f"{CLAIM}/resources/requests/storage": 52428800}),
    "an ephemeral name of 57 characters": (EPHEMERAL, {"metadata/name": "n" * 57}),
    "the size at the top": (OLDEST, {}),
    "both sizes": (EPHEMERAL, {"size": 1}),
    "no version": (EPHEMERAL, {"spec/version": ABSENT}),
    "an explicit null, which counts as absent": (EPHEMERAL, {"spec/version": None}),
    "everything of coreos.com": (
        EPHEMERAL,
        {
            "spec/paused": True,
            "spec/antiAffinity": True,
            "spec/nodeSelector": {"disk": "fast"},
            "spec/pod": {"securityContext": SECURITY},
        },
    ),
    "a backup with all fields": (
        EPHEMERAL,
        {
            "spec/backup": {
                "backupIntervalInSecond": 1800,
                "maxBackups": 3,
                "storageType": "PersistentVolume",
                "volumeSizeInMB": 1024,
                "cleanupBackupsOnClusterDelete": True,
            }
        },
    ),
    "a backup in S3": (
        IN_S3,
        {
            "spec/backup/s3/prefix": "a/b.c/",
            "spec/backup/s3/awsSecret": "aws",
            "spec/backup/s3/region": "eu-west-1",
            "spec/backup/s3/endpoint": "http://[::1]:9000",
        },
    ),
    "no backups": (EPHEMERAL, {"spec/backup": {"maxBackups": 0}}),
    "a name of 51 characters with a backup": (ON_VOLUME, {"metadata/name": "n" * 51}),
    "an empty security context": (PERSISTENT, {"spec/podTemplate": {"securityContext": {}}}),
    "a peer": (PEER, {}),
    "a schedule of backups": (SCHEDULE, {}),
    "everything of a schedule": (
        SCHEDULE,
        {
            "spec/timeZone": "America/Argentina/Buenos_Aires",
            "spec/suspend": True,
            "spec/startingDeadlineSeconds": 1,
            "spec/successfulBackupsHistoryLimit": 0,
            "spec/failedBackupsHistoryLimit": 0,
            f"{TEMPLATE}/compression": "zstd",
            f"{TEMPLATE}/encryption": {"secretName": "keys"},
            f"{TEMPLATE}/verify": "Restore",
        },
    ),
    **{f"the schedule {schedule}": (SCHEDULE, {"spec/schedule": schedule}) for schedule in VALID_SCHEDULES},
    "a schedule in Etc/GMT+12": (SCHEDULE, {"spec/timeZone": "Etc/GMT+12"}),
}


@pytest.mark.parametrize(("base", "changes"), GOOD.values(), ids=GOOD)
def test_valid_input_is_stored_unchanged_without_a_warning(
    kubectl: Kubectl, base: Manifest, changes: Changes
) -> None:
    answer = kubectl.try_out(changed(base, changes))
    assert answer.code == 0, answer.err
    assert "Warning" not in answer.err
    stored = json.loads(answer.out)
    for path, value in changes.items():
        if value not in (ABSENT, None):
            assert _at(stored, path) == value


def _at(manifest: Manifest, path: str) -> Any:
    for step in path.split("/"):
        manifest = manifest[step]
    return manifest


def test_a_claim_gets_its_defaults(kubectl: Kubectl) -> None:
    stored = json.loads(kubectl.try_out(PERSISTENT).out)
    claim = _at(stored, CLAIM)
    assert claim["accessModes"] == ["ReadWriteOnce"]
    assert claim["volumeMode"] == "Filesystem"


@pytest.mark.parametrize(("base", "field"), [(PERSISTENT, "replicas"), (EPHEMERAL, "size")])
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (2, "2 members tolerate the failure of none, the same as 1, and writes are slower: use 1 or 3"),
        (4, "4 members tolerate the failure of 1, the same as 3, and writes are slower: use 3 or 5"),
        (6, "6 members tolerate the failure of 2, the same as 5, and writes are slower: use 5 or 7"),
        (9, "with 9 members every write waits for 5 of them: use at most 7"),
    ],
)
def test_unsuitable_sizes_are_accepted_with_a_warning(
    kubectl: Kubectl, base: Manifest, field: str, size: int, message: str
) -> None:
    answer = kubectl.try_out(changed(base, {f"spec/{field}": size}))
    assert answer.code == 0
    assert message in answer.err


@pytest.mark.parametrize(("base", "field"), [(PERSISTENT, "replicas"), (EPHEMERAL, "size"), (OLDEST, "size")])
def test_kubectl_scale_works_warns_and_keeps_the_minimum(
    kubectl: Kubectl, base: Manifest, field: str
) -> None:
    stored = kubectl.store(base)
    target = f"{_resource(stored)}/{stored['metadata']['name']}"
    scaled = kubectl("scale", target, "--replicas=2")
    assert scaled.code == 0, scaled.err
    assert "2 members tolerate the failure of none" in scaled.err
    assert kubectl("get", target, "-o", f"jsonpath={{.spec.{field}}}").out == "2"
    refused = kubectl("scale", target, "--replicas=0")
    assert f"spec.{field} in body should be greater than or equal to 1" in refused.err


def test_a_whole_put_needs_no_resource_version(kubectl: Kubectl) -> None:
    stored = kubectl.store(EPHEMERAL)
    body = changed(stored, {"spec": {"size": 3}})
    answers = []

    def accepted() -> bool:
        answers.append(_put(kubectl, body))
        return answers[-1].code == 0

    wait_for(accepted, f"a PUT without a resource version: {answers}")
    assert json.loads(answers[-1].out)["spec"] == {"size": 3}


def test_a_status_put_needs_no_resource_version(kubectl: Kubectl) -> None:
    body = changed(kubectl.store(EPHEMERAL), {"status": {"phase": "Running"}})
    wait_for(lambda: _put(kubectl, body, "/status").code == 0, "a status PUT without a resource version")


def test_a_put_with_a_stale_resource_version_conflicts(kubectl: Kubectl) -> None:
    body = changed(kubectl.store(EPHEMERAL), {"metadata/resourceVersion": "1"})
    assert "the object has been modified" in _put(kubectl, body).err


def test_a_version_may_be_removed_and_set_again(kubectl: Kubectl) -> None:
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
    kubectl: Kubectl, base: Callable[[str], Manifest], runs: str, before: str, desired: str
) -> None:
    served = base(runs) if runs else changed(base("3.6.16"), {"status": {}})
    stored = kubectl.store(changed(served, {"spec/version": before}))

    answer = kubectl.replace(changed(stored, {"spec/version": desired}))

    assert answer.code == 0, answer.err


def test_a_status_may_change_whatever_the_spec_is(kubectl: Kubectl) -> None:
    stored = kubectl.store(changed(EPHEMERAL, {"status/currentVersion": "3.5.35"}))
    patch = json.dumps({"status": {"currentVersion": "3.6.16", "phase": "Running"}})
    name = stored["metadata"]["name"]
    answer = kubectl("patch", _resource(stored), name, "--subresource=status", "--type=merge", "-p", patch)
    assert answer.code == 0, answer.err


def test_a_bootstrapping_member_can_get_an_existing_only_start(kubectl: Kubectl) -> None:
    stored = kubectl.store(changed(PEER, {"spec/bootstrap/initialClusterState": "New"}))
    existing_only = changed(stored, {"spec/bootstrap/initialClusterState": "Existing"})
    assert kubectl.replace(existing_only).code == 0


def test_columns_short_name_and_category_show_both_groups(kubectl: Kubectl) -> None:
    persistent, ephemeral = kubectl.store(PERSISTENT), kubectl.store(EPHEMERAL)
    short = kubectl("get", "etcd", persistent["metadata"]["name"])
    assert short.out.split("\n")[0].split() == ["NAME", "REPLICAS", "READY", "VERSION", "STATUS", "AGE"]
    short_of_coreos = kubectl("get", "etcdclusters.coreos.com", ephemeral["metadata"]["name"])
    assert short_of_coreos.out.split("\n")[0].split() == ["NAME", "SIZE", "READY", "VERSION", "PHASE", "AGE"]
    everything = kubectl("get", "etcd-operator").out
    assert f"etcdcluster.coreos.com/{ephemeral['metadata']['name']}" in everything
    assert f"etcdcluster.etcd.improbable.io/{persistent['metadata']['name']}" in everything


def test_a_schedule_and_its_template_may_be_edited(kubectl: Kubectl) -> None:
    stored = kubectl.store(SCHEDULE)
    url = "gs://my-bucket/{{ .UID }}"
    changes: Changes = {"spec/schedule": "@daily", f"{TEMPLATE}/destination/objectURLTemplate": url}
    answer = kubectl.replace(changed(stored, changes))
    assert answer.code == 0, answer.err


def test_the_columns_of_a_schedule(kubectl: Kubectl) -> None:
    stored = kubectl.store(SCHEDULE)
    shown = kubectl("get", "etcdbackupschedule", stored["metadata"]["name"]).out.split("\n")[0]
    assert re.split(" {2,}", shown) == [
        "NAME",
        "SCHEDULE",
        "STATUS",
        "LAST BACKUP",
        "LAST SUCCESS",
        "LAST VERIFIED",
        "AGE",
    ]


def _resource(manifest: Manifest) -> str:
    return f"{manifest['kind']}s.{manifest['apiVersion'].partition('/')[0]}".lower()


def _put(kubectl: Kubectl, body: Manifest, subresource: str = "") -> Result:
    name = body["metadata"]["name"]
    path = f"/apis/coreos.com/v1/namespaces/{kubectl.namespace}/etcdclusters/{name}{subresource}"
    return kubectl("replace", "--raw", path, "-f", "-", given=body)
