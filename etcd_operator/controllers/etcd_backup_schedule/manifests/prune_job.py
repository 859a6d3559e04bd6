"""The Job that removes old stored backups of an EtcdBackupSchedule, in a pod like that of a backup.

Unlike a backup it can be stopped and repeated anywhere. Kubernetes repeats it a few times, and ends what
takes too long: a store that is gone must not leave it behind for ever.
"""

from collections.abc import Sequence

import msgspec

from etcd_operator.api.backup_schedules import KIND, PRUNE_ANNOTATION, Retention
from etcd_operator.api.backups import UID_LABEL, BackupSpec
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import place, series
from etcd_operator.controllers.shared.decide.backup_spec import url_in_pod
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.job_pod import CONTAINER, REPORT, UNDISTURBED, container, pod

RETRIES = 2
SECONDS = 1800


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
    """The Job. spec: of the EtcdBackups of the schedule. keep: URLs of backups that are not removed.

    request: what the Job is made for, see `PruneState`.
    """
    # Names, sizes and manifests are not encrypted.
    plain = msgspec.structs.replace(spec, encryption=None)
    arguments = _arguments(schedule, spec, retention, keep)
    body = job_of.job(
        schedule,
        kind=KIND,
        name=job_name(schedule),
        labels={job_of.APP_LABEL: "etcd-backup-prune", UID_LABEL: schedule.uid},
        pod=pod(plain, container(plain, CONTAINER, image, arguments)),
        retries=RETRIES,
        annotations=UNDISTURBED,
    )
    body["metadata"]["annotations"] = {PRUNE_ANNOTATION: request}
    body["spec"]["activeDeadlineSeconds"] = SECONDS
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
    return [*arguments, *REPORT]
