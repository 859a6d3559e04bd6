import json
import re
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
)
from unit.api.contract.conftest import Requests
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
NETWORK = {
    "clients": [
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {"team": "web"}}, "podSelector": {}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
    ],
    "metrics": [{"namespaceSelector": {"matchExpressions": [{"key": "monitoring", "operator": "Exists"}]}}],
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
    "a recovery without a person": (PERSISTENT, {"spec/recovery": "Automatic"}),
    "after a time of its own": (
        EPHEMERAL,
        {"spec/recovery": "Automatic", "spec/recoveryAfterSeconds": 10},
    ),
    "no NetworkPolicy": (EPHEMERAL, {"spec/networkPolicy": {"enabled": False}}),
    "clients and readers of metrics that are named": (PERSISTENT, {"spec/networkPolicy": NETWORK}),
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
                "encryption": {"secretName": "backup-keys"},
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
    kubectl: Requests, base: Manifest, changes: Changes
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


def test_a_claim_gets_its_defaults(kubectl: Requests) -> None:
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
    kubectl: Requests, base: Manifest, field: str, size: int, message: str
) -> None:
    answer = kubectl.try_out(changed(base, {f"spec/{field}": size}))
    assert answer.code == 0
    assert message in answer.err


def test_an_annotation_that_the_operator_does_not_read_is_accepted_with_one_warning(
    kubectl: Requests,
) -> None:
    stored = kubectl.store(PERSISTENT)
    target = f"etcdclusters.etcd.improbable.io/{stored['metadata']['name']}"
    answer = kubectl("annotate", target, "etcd.improbable.io/pause=true", "etcd.improbable.io/restore-uid=x")
    assert answer.code == 0
    assert "the operator ignores etcd.improbable.io/pause: it reads etcd.improbable.io/paused" in answer.err
    assert "Warning" not in kubectl("annotate", target, "mine=yes").err


def test_columns_short_name_and_category_show_both_groups(kubectl: Requests) -> None:
    persistent, ephemeral = kubectl.store(PERSISTENT), kubectl.store(EPHEMERAL)
    short = kubectl("get", "etcd", persistent["metadata"]["name"])
    assert short.out.split("\n")[0].split() == ["NAME", "REPLICAS", "READY", "VERSION", "STATUS", "AGE"]
    short_of_coreos = kubectl("get", "etcdclusters.coreos.com", ephemeral["metadata"]["name"])
    assert short_of_coreos.out.split("\n")[0].split() == ["NAME", "SIZE", "READY", "VERSION", "PHASE", "AGE"]
    everything = kubectl("get", "etcd-operator").out
    assert f"etcdcluster.coreos.com/{ephemeral['metadata']['name']}" in everything
    assert f"etcdcluster.etcd.improbable.io/{persistent['metadata']['name']}" in everything


def test_the_columns_of_a_schedule(kubectl: Requests) -> None:
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
