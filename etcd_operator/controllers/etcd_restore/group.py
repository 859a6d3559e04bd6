"""The group of EtcdRestores: without its definition or a right of its own, clusters are served as before."""

from etcd_operator.api.restores import UID_LABEL, EtcdRestore
from etcd_operator.controllers.etcd_restore.jobs import JobReader
from etcd_operator.controllers.etcd_restore.metrics import RestoreMetricsReporter
from etcd_operator.controllers.etcd_restore.observe import RestoreObserver
from etcd_operator.controllers.etcd_restore.progress import ProgressReader, restore_of
from etcd_operator.controllers.etcd_restore.reconciler import RestoreReconciler
from etcd_operator.controllers.shared.caches import CacheSource
from etcd_operator.controllers.shared.groups import Group, Later, Wiring
from etcd_operator.controllers.shared.jobs import JobCaches, job_caches
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.kube import resources


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
            clock=wiring.clock, on_metrics=wiring.on_metrics, on_end=wiring.on_restore_end
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
