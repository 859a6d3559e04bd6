"""The group of EtcdRestores: without its definition or a right of its own, clusters are served as before."""

from etcd_operator.api.restores import UID_LABEL, EtcdRestore
from etcd_operator.kube import resources
from etcd_operator.reconcile.caches import CacheSource
from etcd_operator.reconcile.groups import Group, Later, Wiring
from etcd_operator.reconcile.jobs import JobCaches, job_caches
from etcd_operator.reconcile.restores.jobs import JobReader
from etcd_operator.reconcile.restores.metrics import RestoreMetricsReporter
from etcd_operator.reconcile.restores.observe import RestoreObserver
from etcd_operator.reconcile.restores.progress import ProgressReader, restore_of
from etcd_operator.reconcile.restores.reconciler import RestoreReconciler
from etcd_operator.reconcile.unreadable import Unreadables


def restore_caches(source: CacheSource) -> JobCaches[EtcdRestore]:
    """The informers of EtcdRestores and their Jobs, and of those that restore to an EtcdCluster."""
    return job_caches(source, resources.RESTORES, EtcdRestore, UID_LABEL)


def restore_group(wiring: Wiring, caches: JobCaches[EtcdRestore]) -> Group:
    """The group, wired but not started."""
    waits = wiring.waits()
    answered = Later()
    inquiries = wiring.inquiries(
        "restore-progress",
        on_answer=lambda slot: answered(restore_of(slot)),
        ask=lambda pod: wiring.ask_progress(pod.address),
    )
    jobs = JobReader(caches=caches, waits=waits, progress=ProgressReader(inquiries=inquiries))
    reconciler = RestoreReconciler(
        caches=caches,
        writes=wiring.writes(caches),
        observer=RestoreObserver(jobs=jobs, waits=waits),
        recorder=wiring.recorder,
        clock=wiring.clock,
        image=wiring.own_image,
        repository=wiring.defaults.repository,
        failures=wiring.failures(),
        unreadables=Unreadables(objects=caches.owners, recorder=wiring.recorder),
        metrics=RestoreMetricsReporter(
            clock=wiring.clock, on_metrics=wiring.on_restore_metrics, on_end=wiring.on_restore_end
        ),
        may_act=wiring.may_act,
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
