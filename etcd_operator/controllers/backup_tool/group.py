"""The group of backup tools of `coreos.com` clusters.

A group of its own: what its controller waits for, or cannot do, stops no pass over members.
"""

from collections.abc import Callable

from etcd_operator.api import coreos
from etcd_operator.controllers.backup_tool.caches import tool_caches
from etcd_operator.controllers.backup_tool.certificates import ToolCertificates
from etcd_operator.controllers.backup_tool.manifests.backup_tool import tool_name
from etcd_operator.controllers.backup_tool.observe import ToolObserver
from etcd_operator.controllers.backup_tool.reconciler import ToolReconciler
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import Caches, CacheSource
from etcd_operator.controllers.shared.groups import Group, Later, Wiring
from etcd_operator.controllers.shared.inquiries import Ask, PodServer
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.pods.reports import ToolReport


def tool_group(
    wiring: Wiring,
    source: CacheSource,
    of_clusters: Caches[coreos.EtcdCluster],
    reports: BackupReports,
    certificates: ToolCertificates,
) -> Group:
    """The group, wired but not started."""
    caches, answered = tool_caches(source, of_clusters), Later()
    inquiries, cleanups = (
        wiring.inquiries(name, on_answer=answered, ask=_asking(ask))
        for name, ask in (("backup-tools", wiring.ask_tool), ("backup-cleanups", wiring.clean_up_tool))
    )
    reconciler = ToolReconciler(
        wiring=wiring,
        passes=wiring.passes(*caches.others(), *caches.own(), reports_unreadable=False),
        caches=caches,
        observer=ToolObserver(
            caches=caches,
            dialect=CoreosDialect(wiring.defaults),
            tokens=Tokens(clock=wiring.clock, name_of=tool_name),
            certificates=certificates,
            image=wiring.own_image,
        ),
        inquiries=inquiries,
        cleanups=cleanups,
        waits=wiring.waits(),
        reports=reports,
    )
    controller = wiring.new_controller("coreos-backup", reconciler.reconcile)
    answered.target = controller.enqueue
    caches.wake(controller.enqueue, controller.restart)
    return Group(
        name="backup-tools",
        informers=caches.own(),
        controllers=(controller,),
        others=caches.others(),
        closing=(inquiries.stop, cleanups.stop),
    )


def _asking(ask: Ask) -> Callable[[PodServer], ToolReport]:
    return lambda tool: ask(tool.server)
