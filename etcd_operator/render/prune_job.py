"""The Job that removes old stored backups of an EtcdBackupSchedule, in a pod like that of a backup.

Unlike a backup it can be stopped and repeated anywhere. Kubernetes repeats it a few times, and ends what
takes too long: a store that is gone must not leave it behind for ever.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from etcd_operator.api.backup_schedules import KIND, PRUNE_ANNOTATION, Retention
from etcd_operator.api.backups import API_VERSION, UID_LABEL, BackupSpec
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.core.backups.schedules.retention import place, series
from etcd_operator.core.backups.spec import url_in_pod
from etcd_operator.render import backup_job
from etcd_operator.render.owner import owned_by

NAME_LABELS = {"app.kubernetes.io/name": "etcd-backup-prune"}
RETRIES = 2
SECONDS = 1800

_LONGEST_NAME = 63


def job_name(schedule: ObjectMeta) -> str:
    """The name of the Job of a schedule: always the same, so that there are never two."""
    end = f"-prune-{hashlib.sha256(schedule.uid.encode()).hexdigest()[:10]}"
    stem = schedule.name.replace(".", "-")[: _LONGEST_NAME - len(end)].rstrip("-")
    return stem + end


def job(
    schedule: ObjectMeta,
    spec: BackupSpec,
    retention: Retention,
    *,
    image: str,
    request: str,
    keep: Sequence[str],
) -> RawObject:
    """The Job. spec: of the EtcdBackups of the schedule. keep: URLs of backups that are not removed.

    request: what the Job is made for, see `PruneState`.
    """
    # Names, sizes and manifests are not encrypted.
    plain = msgspec.structs.replace(spec, encryption=None)
    body = backup_job.job(schedule, plain, image=image, url="", endpoints=())
    labels = {**NAME_LABELS, UID_LABEL: schedule.uid}
    body["metadata"] |= {
        "name": job_name(schedule),
        "labels": labels,
        "annotations": {PRUNE_ANNOTATION: request},
        "ownerReferences": owned_by(API_VERSION, KIND, name=schedule.name, uid=schedule.uid),
    }
    body["spec"] |= {"backoffLimit": RETRIES, "activeDeadlineSeconds": SECONDS}
    template = body["spec"]["template"]
    template["metadata"]["labels"] = labels
    (container,) = template["spec"]["containers"]
    container["args"] = _arguments(schedule, spec, retention, keep)
    return body


def _arguments(
    schedule: ObjectMeta, spec: BackupSpec, retention: Retention, keep: Sequence[str]
) -> list[str]:
    where = place(spec.destination.object_url_template, schedule)
    arguments = ["prune", url_in_pod(where.url), f"--series={series(schedule)}", f"--match={where.match}"]
    if retention.max_count is not None:
        arguments.append(f"--max-count={retention.max_count}")
    if retention.max_age:
        arguments.append(f"--max-age={retention.max_age}")
    arguments += [f"--keep={name}" for name in where.names(keep)]
    arguments += ["--json", f"--report={backup_job.REPORT_PATH}"]
    # Kubernetes replaces $(NAME) by a variable, which may be a credential.
    return [argument.replace("$", "$$") for argument in arguments]
