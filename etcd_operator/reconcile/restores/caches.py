"""What the operator keeps of Kubernetes for EtcdRestores, and which changes queue which of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.restores import UID_LABEL, EtcdRestore
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Job, Pod
from etcd_operator.reconcile.caches import Source
from etcd_operator.reconcile.jobs import BY_UID, job_informers, pods_of, uid_of, wake_itself, wake_owner


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

    def pods_of(self, job: ObjectMeta) -> tuple[Pod, ...]:
        """The pods that Kubernetes made for a Job, by its UID, the oldest first."""
        return pods_of(self.pods, job)

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue the EtcdRestore that changed, or whose Job or pod did."""
        wake_itself(self.restores, enqueue, restart)
        wake_owner(self.restores, (self.jobs, self.pods), UID_LABEL, enqueue)


def restore_caches(source: Source) -> RestoreCaches:
    """The informers, not yet started."""
    jobs, pods = job_informers(source, UID_LABEL)
    restores = source.of(resources.RESTORES, EtcdRestore, indexes={BY_UID: uid_of})
    return RestoreCaches(restores=restores, jobs=jobs, pods=pods)
