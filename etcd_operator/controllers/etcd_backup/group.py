"""The group of EtcdBackups: without their definition or a right of theirs, clusters are served as before."""

from typing import Any

from etcd_operator.api.backups import UID_LABEL, EtcdBackup
from etcd_operator.controllers.etcd_backup.observe import BackupObserver, Issue, Sources
from etcd_operator.controllers.etcd_backup.reconciler import BackupReconciler
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.groups import Group, Wiring
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.jobs import JobCaches, job_caches
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer


def backup_caches(source: CacheSource) -> JobCaches[EtcdBackup]:
    """The informers of EtcdBackups and their Jobs."""
    return job_caches(source, resources.BACKUPS, EtcdBackup, UID_LABEL)


def backup_group(
    wiring: Wiring, caches: JobCaches[EtcdBackup], clusters: tuple[Informer[Any], ...], issue: Issue
) -> Group:
    """The group, wired but not started. clusters: the caches of EtcdClusters of both groups."""
    jobs = JobReader(caches=caches, waits=wiring.waits())
    observer = BackupObserver(jobs=jobs, sources=Sources(clusters=clusters, issue=issue))
    passes = wiring.passes(*caches.all())
    reconciler = BackupReconciler(wiring=wiring, passes=passes, observer=observer)
    controller = wiring.new_controller("improbable-backup", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(name="backups", informers=caches.all(), controllers=(controller,), others=clusters)
