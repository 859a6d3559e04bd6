"""How those who read stored backups keep Jobs from removing them.

A Job that removes old backups spares what was being read when it was made, and may run much later. So a
reader that is on record stops the Jobs that exist; and such a Job is made suspended, and goes on only if
nobody else is on record by then. One of the two sees the other, whatever their clocks show.
"""

from etcd_operator.api.backup_schedules import KIND
from etcd_operator.controllers.shared.manifests.job import APP_LABEL, PRUNE_APP
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.errors import Conflict
from etcd_operator.kube import resources
from etcd_operator.kube.views import Job, true_condition


def stop_pruning(objects: Objects) -> None:
    """Delete the Jobs of this namespace that remove old backups; Conflict until they are gone.

    The reader has to be on record before. Raises the errors of `Client`.
    """
    selector = f"{APP_LABEL}={PRUNE_APP}"
    listed = objects.client.list(
        resources.JOBS, Job, namespace=objects.namespace, label_selector=selector
    ).whole()
    left = [job for job in listed if _may_remove(job)]
    for job in left:
        if not job.metadata.is_deleting:
            objects.remove(resources.JOBS, job.metadata, propagation="Foreground")
    if left:
        names = ", ".join(job.metadata.name for job in left)
        raise Conflict(f"waiting until the Job {names}, which removes old backups, is deleted")


def _may_remove(job: Job) -> bool:
    """Also one that has failed: Kubernetes may report that while its pods are still being ended."""
    is_ours = any(owner.controller and owner.kind == KIND for owner in job.metadata.owner_references)
    return is_ours and true_condition(job.status.conditions, "Complete") is None
