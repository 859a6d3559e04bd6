"""The EtcdBackup that a schedule creates for one of its times."""

from datetime import datetime

from etcd_operator.api.backup_schedules import KIND, SCHEDULE_LABEL, SCHEDULED_ANNOTATION
from etcd_operator.api.backups import API_VERSION
from etcd_operator.api.backups import KIND as BACKUP
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import backup_name
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.formats import timestamp


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
