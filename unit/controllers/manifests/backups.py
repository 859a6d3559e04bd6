"""Jobs of EtcdBackups, and EtcdBackups of schedules, to render."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from etcd_operator.api.backup_schedules import Retention
from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.recoveries import Recovery, StoredBackup
from etcd_operator.controllers.etcd_backup.manifests import backup_job
from etcd_operator.controllers.etcd_backup_schedule.manifests import schedule
from etcd_operator.controllers.etcd_backup_schedule.manifests.schedule import scheduled_backup
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import seed_job
from etcd_operator.controllers.shared.decide.backup_spec import problem, rendered_url

METADATA = ObjectMeta(
    name="one", namespace="team", uid="uid-backup", creation_timestamp="2026-11-22T15:00:00Z"
)
SCHEDULE = ObjectMeta(name="nightly", namespace="team", uid="uid-schedule")
FILE = {"secretKeyRef": {"name": "credentials", "key": "file"}}
ENDPOINTS = ("db-0.db.team.svc:2379", "db-1.db.team.svc:2379")
_DESTINATION = ("credentials", "persistentVolumeClaim")

SIZE = 1_000_000_000
"""Bytes of the snapshot that is verified or restored."""

IMAGE = "localhost/etcd-operator:0.1.0"


def spec_of(url: str, **fields: Any) -> BackupSpec:
    """A valid spec."""
    destination = {name: fields.pop(name) for name in _DESTINATION if name in fields}
    destination["objectURLTemplate"] = url
    document = {"source": {"clusterName": "db"}, "destination": destination, **fields}
    spec = msgspec.convert(document, BackupSpec)
    assert problem(spec) == ""
    return spec


def backup_job_of(
    url: str, metadata: ObjectMeta = METADATA, *, has_secret: bool = False, **fields: Any
) -> RawObject:
    """The Job of an EtcdBackup with a valid spec."""
    spec = spec_of(url, **fields)
    at = rendered_url(url, metadata)
    return backup_job.job(metadata, spec, image=IMAGE, url=at, endpoints=ENDPOINTS, has_secret=has_secret)


def verification_job_of(url: str, *, etcd_image: str = "", **fields: Any) -> RawObject:
    """The Job that verifies an EtcdBackup; with a test restore if there is an image of etcd."""
    spec = spec_of(url, **fields)
    return backup_job.verification_job(
        METADATA, spec, image=IMAGE, url=rendered_url(url, METADATA), etcd_image=etcd_image, size=SIZE
    )


def prune_job_of(url: str, retention: Retention, *keep: str, **fields: Any) -> RawObject:
    """The Job that removes old backups of a schedule."""
    destination = {name: fields.pop(name) for name in _DESTINATION if name in fields}
    destination["objectURLTemplate"] = url
    document = {"source": {"clusterName": "db"}, "destination": destination, **fields}
    spec = msgspec.convert(document, BackupSpec)
    assert problem(spec) == ""
    image, request = "localhost/etcd-operator:0.1.0", f"maxCount 3 after {keep[-1]}"
    return schedule.job(SCHEDULE, spec, retention, image=image, request=request, keep=keep)


def backup_of_schedule(**template: Any) -> RawObject:
    """The EtcdBackup of a schedule for one time."""
    return scheduled_backup(SCHEDULE, template, datetime(2026, 11, 22, 3, 30, tzinfo=UTC))


def seed_job_of(cluster: DesiredCluster, *, is_root_owned: bool, size: int = SIZE) -> RawObject:
    """The Job that restores an encrypted backup on S3 to the claim of a seed of this cluster."""
    url = "s3://my-bucket/one.db?region=eu-west-1"
    key = {"secretKeyRef": {"name": "credentials", "key": "file"}}
    access = spec_of(url, credentials={"aws": key}, encryption={"secretName": "keys"})
    backup = StoredBackup(cluster=cluster.name, name="one", sha256="ab" * 32, url=url, size=size, spec={})
    recovery = Recovery(
        generation=2,
        source=backup,
        authority="Requested",
        revision=9,
        version="3.6.16",
        seed=cluster.member_name(7),
        token="uid-1-2",
        replaces="c0de",
        bump=1_500_000_000,
    )
    return seed_job.job(
        cluster,
        recovery,
        access,
        image=IMAGE,
        etcd_image="quay.io/coreos/etcd:v3.6.16",
        claim_uid="uid-claim",
        is_root_owned=is_root_owned,
    )
