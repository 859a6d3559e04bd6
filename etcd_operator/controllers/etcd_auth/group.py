"""The group of EtcdRoles and EtcdUsers: without their definitions, clusters are served as before."""

from etcd_operator.controllers.etcd_auth.access import Reach
from etcd_operator.controllers.etcd_auth.caches import AuthCaches
from etcd_operator.controllers.etcd_auth.reconciler import AuthReconciler
from etcd_operator.controllers.etcd_auth.reporter import Reporter
from etcd_operator.controllers.etcd_auth.turns import Turns
from etcd_operator.controllers.shared.auth_reports import AuthReports
from etcd_operator.controllers.shared.groups import Group, Wiring


def auth_group(wiring: Wiring, caches: AuthCaches, reach: Reach, reports: AuthReports) -> Group:
    """The group, wired but not started."""
    reconciler = AuthReconciler(
        caches=caches,
        writes=wiring.writes(caches.informers()),
        failures=wiring.failures(),
        reporter=Reporter(caches=caches, recorder=wiring.recorder, clock=wiring.clock, reports=reports),
        clock=wiring.clock,
        on_call=wiring.on_call,
        reach=reach,
        turns=Turns(clock=wiring.clock),
    )
    controller = wiring.new_controller("improbable-auth", reconciler.reconcile)
    caches.wake(controller.enqueue)
    others = tuple(each for group in caches.clusters for each in group.all())
    return Group(
        name="auth",
        informers=tuple(caches.informers()),
        controllers=(controller,),
        others=others,
        is_optional=True,
    )
