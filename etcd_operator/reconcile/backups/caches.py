"""What the operator keeps of Kubernetes for EtcdBackups, and which changes queue which of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.backups import UID_LABEL, EtcdBackup
from etcd_operator.api.meta import HasMetadata, ObjectMeta
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Job, Pod
from etcd_operator.reconcile.caches import Source

BY_UID = "uid"
BY_JOB = "job"
BY_OWNER = "owner"


@dataclass(frozen=True, kw_only=True)
class BackupCaches:
    """EtcdBackups, and the Jobs and pods with the label of one."""

    backups: Informer[EtcdBackup]
    jobs: Informer[Job]
    pods: Informer[Pod]

    def all(self) -> tuple[Informer[Any], ...]:
        """Every informer."""
        return self.backups, self.jobs, self.pods

    def of_resource(self, resource: Resource) -> Informer[Any] | None:
        """The informer of a resource that is written."""
        by_resource: dict[Resource, Informer[Any]] = {
            resources.BACKUPS: self.backups,
            resources.JOBS: self.jobs,
        }
        return by_resource.get(resource)

    def pods_of(self, job: ObjectMeta) -> tuple[Pod, ...]:
        """The pods that Kubernetes made for a Job, by its UID, the oldest first."""
        return in_order(self.pods.store.by_index(BY_JOB, job.uid))

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue the EtcdBackup that changed, or whose Job or pod did; labels say only whom to look at."""

        def on_backup(old: EtcdBackup | None, new: EtcdBackup | None) -> None:
            value = new or old
            if value is not None:
                again = restart if old is None or new is None else enqueue
                again(Key(value.metadata.namespace, value.metadata.name))

        def on_part(old: HasMetadata | None, new: HasMetadata | None) -> None:
            for value in (old, new):
                uid = value.metadata.labels.get(UID_LABEL, "") if value is not None else ""
                for backup in self.backups.store.by_index(BY_UID, uid) if uid else ():
                    enqueue(Key(backup.metadata.namespace, backup.metadata.name))

        self.backups.add_handler(on_backup)
        self.jobs.add_handler(on_part)
        self.pods.add_handler(on_part)


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The oldest first."""
    return tuple(sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name)))


def backup_caches(source: Source) -> BackupCaches:
    """The informers, not yet started."""
    return BackupCaches(
        backups=source.of(
            resources.BACKUPS,
            EtcdBackup,
            indexes={
                BY_UID: lambda backup: (backup.metadata.uid,),
                BY_OWNER: lambda backup: (backup.metadata.controller_uid,),
            },
        ),
        jobs=source.of(resources.JOBS, Job, selector=UID_LABEL),
        pods=source.of(
            resources.PODS,
            Pod,
            selector=UID_LABEL,
            indexes={BY_JOB: lambda pod: (pod.metadata.controller_uid,)},
        ),
    )
