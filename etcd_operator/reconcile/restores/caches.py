"""What the operator keeps of Kubernetes for EtcdRestores, and which changes queue which of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.meta import HasMetadata
from etcd_operator.api.restores import UID_LABEL, EtcdRestore
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Job, Pod
from etcd_operator.reconcile.backups.caches import in_order
from etcd_operator.reconcile.caches import Source

BY_UID = "uid"
BY_JOB = "job"


@dataclass(frozen=True, kw_only=True)
class RestoreCaches:
    """EtcdRestores, and the Jobs and pods with the label of one."""

    restores: Informer[EtcdRestore]
    jobs: Informer[Job]
    pods: Informer[Pod]

    def all(self) -> tuple[Informer[Any], ...]:
        """Every informer."""
        return self.restores, self.jobs, self.pods

    def of_resource(self, resource: Resource) -> Informer[Any] | None:
        """The informer of a resource that is written."""
        by_resource: dict[Resource, Informer[Any]] = {
            resources.RESTORES: self.restores,
            resources.JOBS: self.jobs,
        }
        return by_resource.get(resource)

    def pods_of(self, job: HasMetadata) -> tuple[Pod, ...]:
        """The pods that Kubernetes made for a Job, the oldest first."""
        return in_order(self.pods.store.by_index(BY_JOB, job.metadata.uid))

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue the EtcdRestore that changed, or whose Job or pod did."""

        def on_restore(old: EtcdRestore | None, new: EtcdRestore | None) -> None:
            value = new or old
            if value is not None:
                again = restart if old is None or new is None else enqueue
                again(value.metadata.key)

        def on_part(old: HasMetadata | None, new: HasMetadata | None) -> None:
            for value in (old, new):
                uid = value.metadata.labels.get(UID_LABEL, "") if value is not None else ""
                for restore in self.restores.store.by_index(BY_UID, uid) if uid else ():
                    enqueue(restore.metadata.key)

        self.restores.add_handler(on_restore)
        self.jobs.add_handler(on_part)
        self.pods.add_handler(on_part)


def restore_caches(source: Source) -> RestoreCaches:
    """The informers, not yet started."""
    return RestoreCaches(
        restores=source.of(
            resources.RESTORES, EtcdRestore, indexes={BY_UID: lambda restore: (restore.metadata.uid,)}
        ),
        jobs=source.of(resources.JOBS, Job, selector=UID_LABEL),
        pods=source.of(
            resources.PODS,
            Pod,
            selector=UID_LABEL,
            indexes={BY_JOB: lambda pod: (pod.metadata.controller_uid,)},
        ),
    )
