"""The Jobs that objects of ours own, and their pods: how they are watched and found.

A label with the UID of the owner selects what is watched. It only shows which owner is to be processed:
an owner reference proves to whom a Job, or a pod, belongs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

from etcd_operator.api.meta import HasMetadata, ObjectMeta
from etcd_operator.controllers.shared.caches import CacheSource, Object
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Job

BY_UID = "uid"
BY_OWNER = "owner"


@dataclass(frozen=True, kw_only=True)
class JobCaches(Generic[Object]):
    """Objects that own Jobs, and the Jobs and pods with the label of one."""

    owners: Informer[Object]
    jobs: Informer[Job]
    pods: Informer[Pod]
    label: str

    def all(self) -> tuple[Informer[Any], ...]:
        """Every informer."""
        return self.owners, self.jobs, self.pods

    def pods_of(self, job: ObjectMeta) -> tuple[Pod, ...]:
        """The pods that Kubernetes made for a Job, by its UID, the oldest first."""
        return in_order(self.pods.store.by_index(BY_OWNER, job.uid))

    def jobs_of(self, owner: ObjectMeta) -> tuple[Job, ...]:
        """The Jobs of an owner, by its UID."""
        return tuple(self.jobs.store.by_index(BY_OWNER, owner.uid))

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue the owner that changed, or whose Job or pod did."""
        wake_itself(self.owners, enqueue, restart)
        wake_owner(self.owners, (self.jobs, self.pods), self.label, enqueue)


def job_caches(source: CacheSource, resource: Resource, kind: type[Object], label: str) -> JobCaches[Object]:
    """The informers, not yet started."""
    return JobCaches(
        owners=source.of(resource, kind, indexes={BY_UID: uid_of, BY_OWNER: _owner_of}),
        jobs=source.of(resources.JOBS, Job, selector=label, indexes={BY_OWNER: _owner_of}),
        pods=source.of(resources.PODS, Pod, selector=label, indexes={BY_OWNER: _owner_of}),
        label=label,
    )


def _owner_of(part: HasMetadata) -> tuple[str, ...]:
    """What the index `BY_OWNER` contains."""
    return (part.metadata.controller_uid,)


def uid_of(owner: HasMetadata) -> tuple[str, ...]:
    """What the index `BY_UID` of owners contains."""
    return (owner.metadata.uid,)


def wake_itself(
    owners: Informer[Any], enqueue: Callable[[Key], None], restart: Callable[[Key], None]
) -> None:
    """Queue an owner that changed; one that appeared or went without the back-off of the one before."""

    def on_owner(old: HasMetadata | None, new: HasMetadata | None) -> None:
        value = new or old
        if value is not None:
            again = restart if old is None or new is None else enqueue
            again(value.metadata.key)

    owners.add_handler(on_owner)
    owners.add_unreadable_handler(enqueue)


def wake_owner(
    owners: Informer[Any], parts: Iterable[Informer[Any]], label: str, enqueue: Callable[[Key], None]
) -> None:
    """Queue the owner that the label of a changed part names; owners have the index `BY_UID`."""

    def on_part(old: HasMetadata | None, new: HasMetadata | None) -> None:
        for value in filter(None, (old, new)):
            uid = value.metadata.labels.get(label, "")
            for owner in owners.store.by_index(BY_UID, uid) if uid else ():
                enqueue(owner.metadata.key)

    for part in parts:
        part.add_handler(on_part)


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The oldest first."""
    return tuple(sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name)))
