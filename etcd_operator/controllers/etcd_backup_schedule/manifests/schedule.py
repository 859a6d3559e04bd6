"""What an EtcdBackupSchedule makes: EtcdBackups, and the Job that removes old ones, in a pod like theirs.

Unlike a backup, that Job can be stopped and repeated anywhere. Kubernetes repeats it a few times, and ends
what takes too long: a store that is gone must not leave it behind for ever.
"""

from collections.abc import Sequence
from datetime import datetime

from etcd_operator.api.backup_schedules import (
    KIND,
    PRUNE_ANNOTATION,
    SCHEDULE_LABEL,
    SCHEDULED_ANNOTATION,
    Retention,
)
from etcd_operator.api.backups import API_VERSION, UID_LABEL, BackupSpec
from etcd_operator.api.backups import KIND as BACKUP
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import backup_name, place, series
from etcd_operator.controllers.shared.decide.backup_spec import url_in_pod
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.job_pod import (
    CONTAINER,
    REPORT,
    UNDISTURBED,
    container,
    keys_flag,
    pod,
)
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.formats import timestamp

RETRIES = 2
SECONDS = 1800


def scheduled_backup(schedule: ObjectMeta, template: RawObject, due: datetime) -> RawObject:
    """The EtcdBackup. template: its spec, as stored in the schedule."""
    return {
        "apiVersion": API_VERSION,
        "kind": BACKUP,
        "metadata": {
            "name": backup_name(schedule.name, due),
            "namespace": schedule.namespace,
            "labels": {SCHEDULE_LABEL: schedule.name},
            "annotations": {SCHEDULED_ANNOTATION: timestamp(due)},
            "ownerReferences": owned_by(API_VERSION, KIND, name=schedule.name, uid=schedule.uid),
        },
        "spec": template,
    }


def job_name(schedule: ObjectMeta) -> str:
    """The name of the Job of a schedule: always the same, so that there are never two."""
    return job_of.job_name(schedule, "prune")


def job(
    schedule: ObjectMeta,
    spec: BackupSpec,
    retention: Retention,
    *,
    image: str,
    request: str,
    keep: Sequence[str],
) -> RawObject:
    """The Job, suspended. spec: of the EtcdBackups. keep: URLs of backups that are not removed.

    request: what the Job is made for, see `PruneState`.
    """
    arguments = _arguments(schedule, spec, retention, keep)
    body = job_of.job(
        schedule,
        kind=KIND,
        name=job_name(schedule),
        labels={job_of.APP_LABEL: job_of.PRUNE_APP, UID_LABEL: schedule.uid},
        pod=pod(spec, container(spec, CONTAINER, image, arguments)),
        retries=RETRIES,
        annotations=UNDISTURBED,
    )
    body["metadata"]["annotations"] = {PRUNE_ANNOTATION: request}
    body["spec"]["activeDeadlineSeconds"] = SECONDS
    body["spec"]["suspend"] = True
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
    arguments += keys_flag(spec)
    arguments += [f"--keep={name}" for name in where.names(keep)]
    return [*arguments, *REPORT]
