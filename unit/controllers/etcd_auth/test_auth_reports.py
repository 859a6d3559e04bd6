"""What the passes over users report, for those that write the status of clusters."""

from etcd_operator.api.improbable import ClusterStatus, EtcdCluster
from etcd_operator.api.meta import ObjectMeta, condition, condition_of
from etcd_operator.controllers.shared.auth_reports import ENABLED, AuthReports
from etcd_operator.keys import Key
from etcd_operator.kube import resources

ON = condition(ENABLED, holds=True, reason="Enabled", message="m", generation=1)


def cluster(uid: str = "uid-1") -> EtcdCluster:
    return EtcdCluster(
        metadata=ObjectMeta(name="c", namespace="default", uid=uid), status=ClusterStatus(cluster_id="ada")
    )


def test_a_report_counts_for_one_object_and_until_leadership_is_lost() -> None:
    epoch, woken = 0, list[Key]()
    reports = AuthReports(lambda: epoch, wakes={resources.IMPROBABLE_CLUSTERS: woken.append})
    for _ in range(2):
        reports.hand_over(cluster(), resources.IMPROBABLE_CLUSTERS, ON)
    assert woken == [cluster().metadata.key], "nobody is woken for what is known"
    found = condition_of(reports.merged(cluster(), "now").status.conditions, ENABLED)
    assert found is not None
    assert (found.status, found.last_transition_time) == ("True", "now")
    assert reports.merged(cluster("uid-2"), "now") == cluster("uid-2")
    epoch = 1
    assert reports.merged(cluster(), "now") == cluster()
    epoch = 0
    reports.forget(cluster().metadata.key)
    assert reports.merged(cluster(), "now") == cluster()
