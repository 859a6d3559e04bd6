"""The group of EtcdRestores: without its definition or a right of its own, clusters are served as before."""

from etcd_operator.api.restores import UID_LABEL, EtcdRestore
from etcd_operator.controllers.etcd_restore.metrics import RestoreMetricsReporter
from etcd_operator.controllers.etcd_restore.observe import ProgressReader, RestoreObserver, restore_of
from etcd_operator.controllers.etcd_restore.reconciler import RestoreReconciler
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.groups import Group, Later, Wiring
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.jobs import JobCaches, job_caches
from etcd_operator.kube import resources


def restore_caches(source: CacheSource) -> JobCaches[EtcdRestore]:
    """The informers of EtcdRestores and their Jobs, and of those that restore to an EtcdCluster."""
    return job_caches(source, resources.RESTORES, EtcdRestore, UID_LABEL)


def restore_group(wiring: Wiring, caches: JobCaches[EtcdRestore]) -> Group:
    """The group, wired but not started."""
    answered = Later()
    inquiries = wiring.inquiries(
        "restore-progress",
        on_answer=lambda slot: answered(restore_of(slot)),
        ask=lambda pod: wiring.ask_progress(pod.server.address),
    )
    progress = ProgressReader(inquiries=inquiries)
    jobs = JobReader(caches=caches, waits=wiring.waits(), progress=progress.of)
    reconciler = RestoreReconciler(
        wiring=wiring,
        caches=caches,
        passes=wiring.passes(*caches.all()),
        observer=RestoreObserver(jobs=jobs, progress=progress),
        metrics=RestoreMetricsReporter(
            clock=wiring.clock, on_metrics=wiring.on_metrics, on_end=wiring.on_restore_end
        ),
    )
    controller = wiring.new_controller("improbable-restore", reconciler.reconcile)
    answered.target = controller.enqueue
    caches.wake(controller.enqueue, controller.restart)
    return Group(
        name="restores",
        informers=caches.all(),
        controllers=(controller,),
        others=(),
        closing=(inquiries.stop,),
    )
