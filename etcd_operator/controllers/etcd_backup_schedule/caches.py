"""What the operator keeps of Kubernetes for EtcdBackupSchedules, and which changes queue which of them."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from etcd_operator.api.backup_schedules import KIND, EtcdBackupSchedule, ScheduleSpec
from etcd_operator.api.backups import UID_LABEL, EtcdBackup
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.decide.backup_spec import named_cluster
from etcd_operator.controllers.shared.jobs import BY_OWNER, BY_UID, JobCaches, uid_of, wake_itself, wake_owner
from etcd_operator.decoding import convert
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer

BY_CLUSTER = "cluster"


def cluster_of(schedule: EtcdBackupSchedule) -> Key | None:
    """The EtcdCluster that a schedule names, if its spec can be read."""
    try:
        spec = convert(schedule.spec, ScheduleSpec)
    except msgspec.ValidationError:
        return None
    namespace = schedule.metadata.namespace
    name = named_cluster(spec.backup_template.source, namespace)
    return Key(namespace, name) if name else None


@dataclass(frozen=True, kw_only=True)
class ScheduleCaches:
    """EtcdBackupSchedules; and all EtcdBackups, their Jobs and pods, which are another group's informers."""

    schedules: Informer[EtcdBackupSchedule]
    of_backups: JobCaches[EtcdBackup]

    def backups_of(self, uid: str) -> tuple[EtcdBackup, ...]:
        """The EtcdBackups that the schedule of this UID owns, by name."""
        found = self.of_backups.owners.store.by_index(BY_OWNER, uid)
        return tuple(sorted(found, key=lambda backup: backup.metadata.name))

    def naming(self, cluster: Key) -> tuple[EtcdBackupSchedule, ...]:
        """The schedules that name a cluster, by name; not those that are being deleted."""
        found = self.schedules.store.by_index(BY_CLUSTER, str(cluster))
        kept = (each for each in found if not each.metadata.is_deleting)
        return tuple(sorted(kept, key=lambda each: each.metadata.name))

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue the EtcdBackupSchedule that changed, or whose EtcdBackup, Job or pod did."""

        def on_backup(old: EtcdBackup | None, new: EtcdBackup | None) -> None:
            for value in filter(None, (old, new)):
                for owner in value.metadata.owner_references:
                    if owner.controller and owner.kind == KIND:
                        enqueue(Key(value.metadata.namespace, owner.name))

        wake_itself(self.schedules, enqueue, restart)
        self.of_backups.owners.add_handler(on_backup)
        wake_owner(self.schedules, (self.of_backups.jobs, self.of_backups.pods), UID_LABEL, enqueue)


def schedule_caches(source: CacheSource, backups: JobCaches[EtcdBackup]) -> ScheduleCaches:
    """The informer of schedules, not yet started, beside those of EtcdBackups."""

    def by_cluster(schedule: EtcdBackupSchedule) -> tuple[str, ...]:
        cluster = cluster_of(schedule)
        return (str(cluster),) if cluster is not None else ()

    schedules = source.of(
        resources.SCHEDULES,
        EtcdBackupSchedule,
        indexes={BY_CLUSTER: by_cluster, BY_UID: uid_of},
    )
    return ScheduleCaches(schedules=schedules, of_backups=backups)
