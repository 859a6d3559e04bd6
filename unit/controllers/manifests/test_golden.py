"""Every manifest of both groups, compared with a golden file."""

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.backup_schedules import Retention
from etcd_operator.api.recoveries import BucketBackup, ClaimBackup, Source, ToolBackup
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.backup_tool.decide.policy import wanted
from etcd_operator.controllers.backup_tool.manifests import backup_tool
from etcd_operator.controllers.etcd_cluster.decide.desired import RestoreFrom
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.dialects.coreos import no_image
from etcd_operator.controllers.etcd_cluster.manifests import (
    ephemeral,
    network_policy,
    persistent,
    persistent_pod,
    persistent_services,
    seed,
    survivor_reader,
)
from etcd_operator.controllers.etcd_cluster.manifests.options import ALL_ADDRESSES
from etcd_operator.controllers.shared.manifests.security import RESTRICTED
from etcd_operator.controllers.shared.storage_class import storage_class
from etcd_operator.errors import InvalidSpec
from unit.controllers.manifests.backups import (
    FILE,
    backup_job_of,
    backup_of_schedule,
    prune_job_of,
    seed_job_of,
    verification_job_of,
)
from unit.controllers.manifests.cases import (
    BOOTSTRAPPING,
    EPHEMERAL_BOOTSTRAPPING,
    EPHEMERAL_OFFLINE,
    EPHEMERAL_SEEDING,
    FULL_EPHEMERAL,
    FULL_PERSISTENT,
    IMAGE,
    JOINING,
    OWN_PEERS_EPHEMERAL,
    OWN_PEERS_PERSISTENT,
    PERSISTENT_OFFLINE,
    PERSISTENT_SEEDING,
    PLAIN_EPHEMERAL,
    PLAIN_PERSISTENT,
    RESUMING,
    SECURED_EPHEMERAL,
    SECURED_PERSISTENT,
    SUPPLIED_EPHEMERAL,
    peer_of,
)
from unit.controllers.manifests.conftest import GOLDEN, Compare
from unit.controllers.manifests.tools import IN_S3, ON_VOLUME, tool_of

POLICY = wanted(IN_S3).policy
TARGET = POLICY.s3 if POLICY is not None else None
SOURCES: dict[str, Source] = {
    "tool": ToolBackup(cluster="old"),
    "claim": ClaimBackup(cluster="old"),
    "bucket": BucketBackup(cluster="old"),
}

OPERATOR = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "etcd-operator"}},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "etcd-operator"}},
}

MANIFESTS = {
    "backup-job-s3": backup_job_of("s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db?region=eu-west-1"),
    "backup-job-s3-full": backup_job_of(
        "s3://my-bucket/one.db?endpoint=http://s3:7070&s3ForcePathStyle=true",
        credentials={"aws": FILE, "environment": {"secretName": "s3"}},
        compression="zstd",
        encryption={"secretName": "backup-keys"},
        serviceAccountName="backups",
    ),
    "backup-job-tls": backup_job_of("s3://my-bucket/one.db", has_secret=True),
    "backup-job-of-another-etcd": backup_job_of(
        "s3://my-bucket/one.db",
        source={"clusterURL": "https://etcd:2379", "tlsSecret": "tls", "auth": {"secretName": "user"}},
    ),
    "backup-job-gs": backup_job_of("gs://my-bucket/one.db", credentials={"googleCloud": FILE}),
    "backup-job-claim": backup_job_of(
        "file:///{{ .Name }}.db", persistentVolumeClaim={"claimName": "backups"}
    ),
    "backup-verification-job": verification_job_of(
        "s3://my-bucket/one.db?region=eu-west-1", credentials={"aws": FILE}, verify="Hash"
    ),
    "backup-verification-job-restore": verification_job_of(
        "file:///{{ .Name }}.db",
        etcd_image="quay.io/coreos/etcd:v3.6.16",
        persistentVolumeClaim={"claimName": "backups"},
        encryption={"secretName": "backup-keys"},
        verify="Restore",
    ),
    "prune-job-s3": prune_job_of(
        "s3://my-bucket/{{ .Namespace }}/{{ .Name }}.db?region=eu-west-1",
        Retention(max_count=3, max_age="30d"),
        "s3://my-bucket/team/nightly-20261121-0330.db",
        "s3://my-bucket/team/nightly-20261122-0330.db",
        credentials={"aws": FILE},
        encryption={"secretName": "backup-keys"},
        serviceAccountName="backups",
    ),
    "prune-job-claim": prune_job_of(
        "file:///{{ .Name }}.db",
        Retention(max_count=3),
        "file:///nightly-20261122-0330.db",
        persistentVolumeClaim={"claimName": "backups"},
    ),
    **{
        f"ephemeral-seed-from-{via}": seed.pod(
            replace(PLAIN_EPHEMERAL, restore=RestoreFrom(cluster="old", s3=TARGET)),
            "db-0003",
            Seeding(token="t", source=source),
            image=lambda: "localhost/etcd-operator:test",
        )
        for via, source in SOURCES.items()
    },
    "ephemeral-seed-from-bucket-encrypted": seed.pod(
        replace(PLAIN_EPHEMERAL, restore=RestoreFrom(cluster="old", s3=TARGET, key_secret="backup-keys")),
        "db-0003",
        Seeding(token="t", source=BucketBackup(cluster="old")),
        image=lambda: "localhost/etcd-operator:test",
    ),
    "backup-of-schedule": backup_of_schedule(
        source={"clusterName": "db"},
        destination={"objectURLTemplate": "s3://my-bucket/{{ .Name }}.db"},
        compression="zstd",
    ),
    "backup-tool-secret": backup_tool.secret(PLAIN_EPHEMERAL, "not-a-real-token"),
    "backup-tool-service": backup_tool.tool_service(PLAIN_EPHEMERAL),
    "backup-tool-claim": backup_tool.claim(PLAIN_EPHEMERAL, tool_of(ON_VOLUME).policy, "fast"),
    "backup-tool-replica-set": backup_tool.replica_set(tool_of(ON_VOLUME)),
    "backup-tool-replica-set-tls": backup_tool.replica_set(tool_of(ON_VOLUME, SECURED_EPHEMERAL)),
    "backup-tool-replica-set-encrypted": backup_tool.replica_set(
        tool_of({**ON_VOLUME, "encryption": {"secretName": "backup-keys"}})
    ),
    "backup-tool-replica-set-s3": backup_tool.replica_set(tool_of(IN_S3, FULL_EPHEMERAL)),
    "storage-class": storage_class("kubernetes.io/gce-pd"),
    "ephemeral-client-service": ephemeral.services(PLAIN_EPHEMERAL)[-1],
    "ephemeral-member-service": ephemeral.member_service(PLAIN_EPHEMERAL, "db-0001"),
    "ephemeral-budget": ephemeral.budget(PLAIN_EPHEMERAL, 2),
    "ephemeral-network-policy": network_policy.network_policy(
        PLAIN_EPHEMERAL, OPERATOR, has_outside_peers=False
    ),
    "ephemeral-network-policy-adopting": network_policy.network_policy(
        PLAIN_EPHEMERAL, OPERATOR, has_outside_peers=True
    ),
    "persistent-network-policy-full": network_policy.network_policy(
        FULL_PERSISTENT, OPERATOR, has_outside_peers=False
    ),
    "ephemeral-pod": ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "ephemeral-pod-full": ephemeral.pod(FULL_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "ephemeral-seed": seed.pod(PLAIN_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image),
    "ephemeral-seed-full": seed.pod(FULL_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image),
    "ephemeral-pod-tls": ephemeral.pod(SECURED_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "ephemeral-seed-tls": seed.pod(SECURED_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image),
    "ephemeral-seed-tls-own": seed.pod(SUPPLIED_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image),
    "ephemeral-pod-tls-own-peers": ephemeral.pod(OWN_PEERS_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "ephemeral-seed-tls-own-peers": seed.pod(
        OWN_PEERS_EPHEMERAL, "db-0003", EPHEMERAL_SEEDING, image=no_image
    ),
    "persistent-replica-set-tls-own-peers": persistent_pod.replica_set(peer_of(OWN_PEERS_PERSISTENT), IMAGE),
    "persistent-peer-tls": persistent.peer(SECURED_PERSISTENT, "db-1", BOOTSTRAPPING),
    "persistent-claim-tls": persistent.claim(peer_of(SECURED_PERSISTENT)),
    "persistent-replica-set-tls": persistent_pod.replica_set(peer_of(SECURED_PERSISTENT), IMAGE),
    "persistent-replica-set-seed-tls": persistent_pod.replica_set(
        peer_of(SECURED_PERSISTENT, "db-3", PERSISTENT_SEEDING), IMAGE, is_restored=True
    ),
    "persistent-peer-service": persistent_services.services(PLAIN_PERSISTENT)[0],
    "persistent-client-service": persistent_services.services(PLAIN_PERSISTENT)[-1],
    "persistent-budget": persistent.budget(PLAIN_PERSISTENT, 2),
    "persistent-peer": persistent.peer(PLAIN_PERSISTENT, "db-1", BOOTSTRAPPING),
    "persistent-peer-full": persistent.peer(FULL_PERSISTENT, "db-1", BOOTSTRAPPING),
    "persistent-peer-existing-only": persistent.peer(PLAIN_PERSISTENT, "db-1", RESUMING),
    "persistent-peer-joining": persistent.peer(PLAIN_PERSISTENT, "db-3", JOINING),
    "ephemeral-seed-offline": seed.pod(
        PLAIN_EPHEMERAL, "db-0003", EPHEMERAL_OFFLINE, image=lambda: "etcd-operator:1"
    ),
    "ephemeral-seed-offline-tls": seed.pod(
        SECURED_EPHEMERAL, "db-0003", EPHEMERAL_OFFLINE, image=lambda: "etcd-operator:1"
    ),
    **{
        f"ephemeral-seed-tls-from-{whose}-tool": seed.pod(
            SECURED_EPHEMERAL,
            "db-0003",
            Seeding(token="t", source=ToolBackup(cluster=cluster, has_tls=True)),
            image=lambda: "localhost/etcd-operator:test",
        )
        for whose, cluster in (("own", SECURED_EPHEMERAL.name), ("other", "old"))
    },
    "persistent-replica-set-seed-offline-tls": persistent_pod.replica_set(
        peer_of(SECURED_PERSISTENT, "db-3", PERSISTENT_OFFLINE),
        IMAGE,
        is_restored=True,
        own_image="etcd-operator:1",
    ),
    "persistent-peer-seed-offline": persistent.peer(PLAIN_PERSISTENT, "db-3", PERSISTENT_OFFLINE),
    "persistent-replica-set-seed-offline": persistent_pod.replica_set(
        peer_of(PLAIN_PERSISTENT, "db-3", PERSISTENT_OFFLINE),
        IMAGE,
        is_restored=True,
        own_image="etcd-operator:1",
    ),
    "survivor-reader-secret": survivor_reader.secret(PLAIN_EPHEMERAL, "secret"),
    **{
        f"survivor-reader{suffix}": survivor_reader.reader(
            number=2,
            image="etcd-operator:1",
            folder="restored",
            cluster="db",
            security=RESTRICTED.container,
            secured=secured,
        )
        for suffix, secured in (("", PLAIN), ("-tls", SECURED_EPHEMERAL.secured))
    },
    "persistent-peer-seed": persistent.peer(PLAIN_PERSISTENT, "db-3", PERSISTENT_SEEDING),
    "persistent-claim-seed": persistent.claim(peer_of(PLAIN_PERSISTENT, "db-3", PERSISTENT_SEEDING)),
    "persistent-claim-restored": persistent.seed_claim(
        PLAIN_PERSISTENT, "db-3", "uid-1-1", is_root_owned=False
    ),
    "restore-seed-job": seed_job_of(FULL_PERSISTENT, is_root_owned=False),
    "restore-seed-job-root": seed_job_of(PLAIN_PERSISTENT, is_root_owned=True),
    "persistent-replica-set-seed": persistent_pod.replica_set(
        peer_of(PLAIN_PERSISTENT, "db-3", PERSISTENT_SEEDING), IMAGE, is_restored=True
    ),
    "persistent-replica-set-seed-full": persistent_pod.replica_set(
        peer_of(FULL_PERSISTENT, "db-5", PERSISTENT_SEEDING), IMAGE, is_restored=True
    ),
    "persistent-replica-set-seed-existing-only": persistent_pod.replica_set(
        peer_of(PLAIN_PERSISTENT, "db-3", RESUMING), IMAGE, is_restored=True
    ),
    "persistent-claim-root": persistent.claim(peer_of(PLAIN_PERSISTENT), is_root_owned=True),
    "persistent-replica-set-root": persistent_pod.replica_set(
        peer_of(PLAIN_PERSISTENT), IMAGE, is_root_owned=True
    ),
    "persistent-claim": persistent.claim(peer_of(PLAIN_PERSISTENT)),
    "persistent-claim-full": persistent.claim(peer_of(FULL_PERSISTENT)),
    "persistent-replica-set": persistent_pod.replica_set(peer_of(PLAIN_PERSISTENT), IMAGE),
    "persistent-replica-set-full": persistent_pod.replica_set(peer_of(FULL_PERSISTENT), IMAGE),
    "persistent-replica-set-existing-only": persistent_pod.replica_set(
        peer_of(PLAIN_PERSISTENT, start=RESUMING), IMAGE
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_equals_its_golden_file(name: str, golden: Compare) -> None:
    manifest: Any = msgspec.json.decode(msgspec.json.encode(MANIFESTS[name]))

    golden(name, manifest)


def test_no_manifest_has_an_address_of_only_one_family() -> None:
    """The address families of pods are not known when they are rendered; 127.0.0.1 is in every pod."""
    found = {
        name: set(re.findall(r"(?<![\w.:])(?:\d+\.\d+\.\d+\.\d+|[0-9a-f]*::[0-9a-f:]*)(?![\w.])", text))
        for name, text in ((path.stem, path.read_text()) for path in GOLDEN.glob("*.yaml"))
    }
    for name, addresses in found.items():
        idle = {"127.0.0.1"} if "job" in name else set()  # see `job_pod.IDLE`
        assert addresses - {ALL_ADDRESSES} - idle in (set(), set(persistent_pod.LOOPBACKS)), name
    assert found["persistent-replica-set"] == {ALL_ADDRESSES, *persistent_pod.LOOPBACKS}
    assert found["ephemeral-pod"] == {ALL_ADDRESSES}


def test_no_golden_file_is_unused() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(MANIFESTS)


def test_a_seed_from_a_bucket_needs_the_bucket() -> None:
    start = Seeding(token="t", source=BucketBackup(cluster="old"))
    with pytest.raises(InvalidSpec, match=r"needs spec\.backup with storageType S3"):
        seed.pod(PLAIN_EPHEMERAL, "db-0003", start, image=lambda: "operator")
