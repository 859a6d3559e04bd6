"""What `spec.backup` means: the policy, or what is wrong with it."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from etcd_operator.api import coreos_backup as api
from etcd_operator.api.cluster_spec import S3Target
from etcd_operator.api.coreos_backup import BackupPolicy
from etcd_operator.api.definitions import coreos_backup_validations as rules
from etcd_operator.api.meta import RawObject
from etcd_operator.decoding import convert
from etcd_operator.errors import InvalidSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a cluster asks for: no policy and no problem stand for no backups."""

    policy: BackupPolicy | None = None
    problem: str = ""


NO_BACKUPS = Wanted()


def wanted(raw: RawObject | None) -> Wanted:
    """Read `spec.backup`."""
    if raw is None:
        return NO_BACKUPS
    try:
        policy = convert(raw, BackupPolicy)
    except msgspec.ValidationError as error:
        return Wanted(problem=f"spec.backup: {error}")
    if policy.max_backups == 0:
        return NO_BACKUPS
    problem = next(_problems(policy), "")
    return Wanted(problem=problem) if problem else Wanted(policy=policy)


def key_secret(raw: RawObject | None) -> str:
    """The Secret with the keys that `spec.backup` names, also where no backups are taken; empty for none.

    Raises `InvalidSpec` for what cannot be read: whether there are keys is not known.
    """
    if raw is None:
        return ""
    try:
        found = convert(raw, BackupPolicy).encryption
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"spec.backup: {error}") from error
    return found.secret_name if found is not None else ""


def _problems(policy: BackupPolicy) -> Iterator[str]:
    if (policy.s3 is not None) != (policy.storage_type == api.S3):
        yield f"spec.backup: {rules.S3_FITS}"
    if policy.storage_type == api.PERSISTENT_VOLUME and policy.volume_size_in_mb is None:
        yield f"spec.backup: {rules.VOLUME_SIZE}"
    if policy.s3 is not None:
        yield from _s3_problems(policy.s3)


def _s3_problems(target: S3Target) -> Iterator[str]:
    if not rules.BUCKET.fits(target.s3_bucket):
        yield f"spec.backup.s3.s3Bucket: {rules.BUCKET.message}"
    for name, form, value in (
        ("prefix", rules.PREFIX, target.prefix),
        ("region", rules.REGION, target.region),
        ("endpoint", rules.ENDPOINT, target.endpoint),
    ):
        if value and not form.fits(value):
            yield f"spec.backup.s3.{name}: {form.message}"
