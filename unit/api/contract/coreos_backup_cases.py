"""`spec.backup` and `spec.restore` of EtcdClusters of coreos.com that is refused."""

from typing import Any

from unit.api.contract.case import ABSENT, EPHEMERAL, Case, Changes, changed

BACKUP = "spec/backup"
ON_VOLUME = changed(EPHEMERAL, {BACKUP: {"maxBackups": 3, "volumeSizeInMB": 1024}})
IN_S3 = changed(EPHEMERAL, {BACKUP: {"maxBackups": 3, "storageType": "S3", "s3": {"s3Bucket": "my-bucket"}}})
RESTORED = changed(EPHEMERAL, {"spec/restore": {"backupClusterName": "other"}})
_FITS = "spec.backup: Invalid value: s3 belongs to storageType S3: set it for that type, and only for it"
_PREFIX = "must consist of folders like backups/etcd, without '.' or '/' at the beginning"
_ENDPOINT = "must be the URL of an S3 service without credentials, like https://s3.example.com:9000"


def _number(field: str, value: Any, sees: str) -> Case:
    return Case(
        typed=f"backup.{field}: {value}", base=ON_VOLUME, changes={f"{BACKUP}/{field}": value}, sees=sees
    )


def _limit(field: str, value: int, than: str) -> Case:
    path = f"spec.backup.{field}"
    return _number(field, value, f"{path}: Invalid value: {value}: {path} in body should be {than}")


def _s3(field: str, value: str, message: str) -> Case:
    return Case(
        typed=f"backup.s3.{field}: {value}",
        base=IN_S3,
        changes={f"{BACKUP}/s3/{field}": value},
        sees=f'spec.backup.s3.{field}: Invalid value: "{value}": {message}',
    )


def _whole(typed: str, changes: Changes, *, sees: str) -> Case:
    return Case(typed=typed, base=ON_VOLUME, changes=changes, sees=sees)


COREOS_BACKUP_CASES = (
    _whole(
        "a backup without maxBackups",
        {f"{BACKUP}/maxBackups": ABSENT},
        sees="spec.backup.maxBackups: Required value",
    ),
    _limit("maxBackups", -1, "greater than or equal to 0"),
    _limit("maxBackups", 10001, "less than or equal to 10000"),
    _limit("backupIntervalInSecond", 0, "greater than or equal to 1"),
    _limit("volumeSizeInMB", 0, "greater than or equal to 1"),
    _number(
        "storageType",
        "GCS",
        'spec.backup.storageType: Unsupported value: "GCS": supported values: "PersistentVolume", "S3"',
    ),
    _whole(
        "a backup without volumeSizeInMB",
        {f"{BACKUP}/volumeSizeInMB": ABSENT},
        sees="spec.backup: Invalid value: volumeSizeInMB is missing: set the size of the volume for backups, "
        "like 1024",
    ),
    _whole("a backup with s3 on a volume", {f"{BACKUP}/s3": {"s3Bucket": "my-bucket"}}, sees=_FITS),
    Case(typed="a backup in S3 without s3", base=IN_S3, changes={f"{BACKUP}/s3": ABSENT}, sees=_FITS),
    Case(
        typed="a backup in S3 without a bucket",
        base=IN_S3,
        changes={f"{BACKUP}/s3": {}},
        sees="spec.backup.s3.s3Bucket: Required value",
    ),
    _whole(
        "a backup with encryption without a Secret",
        {f"{BACKUP}/encryption": {}},
        sees="spec.backup.encryption.secretName: Required value",
    ),
    _s3("s3Bucket", "my/bucket", "must be the name of a bucket: letters, digits, '-', '.' and '_'"),
    _s3("prefix", "/etcd", _PREFIX),
    _s3("prefix", "etcd/../other", _PREFIX),
    _s3("region", "eu west", "must be the name of a region, like eu-west-1"),
    _s3("endpoint", "s3.example.com:9000", _ENDPOINT),
    _s3("endpoint", "http://key:secret@s3.example.com", _ENDPOINT),
    Case(
        typed="a name of 52 characters with a backup",
        base=ON_VOLUME,
        changes={"metadata/name": "n" * 52},
        sees="metadata.name: Invalid value: must have at most 51 characters in a cluster with backups, "
        "because the name of the backup tool is derived from it: choose a shorter name, or remove "
        "spec.backup",
    ),
    Case(
        typed="an unknown field of a backup",
        base=ON_VOLUME,
        changes={f"{BACKUP}/schedule": "hourly"},
        sees='unknown field "spec.backup.schedule"',
    ),
    Case(
        typed="a smaller backup.volumeSizeInMB",
        base=ON_VOLUME,
        changes={f"{BACKUP}/volumeSizeInMB": 1023},
        edits=True,
        sees="spec.backup.volumeSizeInMB: Invalid value: the volume cannot become smaller: keep the earlier "
        "value",
    ),
)

COREOS_RESTORE_CASES = (
    Case(
        typed="restore.backupClusterName: ../other",
        base=RESTORED,
        changes={"spec/restore/backupClusterName": "../other"},
        sees='spec.restore.backupClusterName: Invalid value: "../other": must be the name of an EtcdCluster: '
        "lower-case letters, digits and '-'",
    ),
    Case(
        typed="restore.storageType: S3 without backup.s3",
        base=RESTORED,
        changes={"spec/restore/storageType": "S3"},
        sees="spec.restore: Invalid value: storageType S3 needs spec.backup with storageType S3: backups are "
        "restored from the bucket that it names",
    ),
    Case(
        typed="restore.storageType: GCS",
        base=RESTORED,
        changes={"spec/restore/storageType": "GCS"},
        sees='spec.restore.storageType: Unsupported value: "GCS": supported values: "PersistentVolume", "S3"',
    ),
    Case(
        typed="restore of a cluster that exists",
        base=EPHEMERAL,
        changes={"spec/restore": {"backupClusterName": "other"}},
        edits=True,
        sees="spec.restore: Invalid value: a backup is restored only when the cluster is created: keep the "
        "field unchanged, remove it, or create another cluster with it",
    ),
    Case(
        typed="another restore.backupClusterName",
        base=RESTORED,
        changes={"spec/restore/backupClusterName": "third"},
        edits=True,
        sees="spec.restore: Invalid value: a backup is restored only when the cluster is created: keep the "
        "field unchanged, remove it, or create another cluster with it",
    ),
)
