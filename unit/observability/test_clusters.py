"""Metrics of clusters and of EtcdRestores, as a scrape shows them."""

import pytest

from etcd_operator.keys import Key
from etcd_operator.object_metrics import ClusterMetrics, RestoreMetrics
from etcd_operator.observability.metrics import Metrics

KEY = Key("team", "c")
GROUPS = ("coreos.com", "etcd.improbable.io")


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.leader(True)
    return made


def shown(metrics: Metrics) -> dict[str, float]:
    """The samples of clusters and restores in a scrape, by `name{labels}`."""
    prefixes = ("etcd_operator_cluster_", "etcd_operator_restore_")
    found = metrics.render()[0].decode().splitlines()
    lines = [line for line in found if line.startswith(prefixes) and "_created{" not in line]
    samples = (line.rpartition(" ") for line in lines)
    return {name.removeprefix("etcd_operator_"): float(value) for name, _, value in samples}


ENDS = {'restore_ends_total{phase="Completed"}': 0.0, 'restore_ends_total{phase="Failed"}': 0.0}
CLUSTER = 'group="etcd.improbable.io",name="c",namespace="team"'
RESTORE = 'etcd_cluster="c",name="r",namespace="team"'


def test_a_cluster_that_serves_has_one_series(metrics: Metrics) -> None:
    metrics.set_cluster(GROUPS[1], KEY, ClusterMetrics(is_available=True))
    assert shown(metrics) == {f"cluster_available{{{CLUSTER}}}": 1.0, **ENDS}


def test_one_that_is_held_has_another_with_the_reason(metrics: Metrics) -> None:
    metrics.set_cluster(GROUPS[1], KEY, ClusterMetrics(is_available=True, held="OutOfSpace"))
    metrics.set_cluster(GROUPS[1], KEY, ClusterMetrics(is_available=False, held="NoBackup"))
    assert shown(metrics) == {
        f"cluster_available{{{CLUSTER}}}": 0.0,
        f'cluster_held{{{CLUSTER},reason="NoBackup"}}': 1.0,
        **ENDS,
    }


def test_one_that_is_changed_has_another_with_what_is_done(metrics: Metrics) -> None:
    metrics.set_cluster(GROUPS[1], KEY, ClusterMetrics(is_available=None, working="Creating"))
    assert shown(metrics) == {f'cluster_working{{{CLUSTER},reason="Creating"}}': 1.0, **ENDS}


def test_one_that_has_never_served_has_none(metrics: Metrics) -> None:
    metrics.set_cluster(GROUPS[1], KEY, ClusterMetrics(is_available=None))
    assert shown(metrics) == ENDS


def test_clusters_of_both_groups_may_have_one_name(metrics: Metrics) -> None:
    for group in GROUPS:
        metrics.set_cluster(group, KEY, ClusterMetrics(is_available=True))
    metrics.set_cluster(GROUPS[0], KEY, None)
    metrics.set_cluster(GROUPS[0], KEY, None)
    assert shown(metrics) == {f"cluster_available{{{CLUSTER}}}": 1.0, **ENDS}


def test_a_restore_has_the_series_of_its_phase(metrics: Metrics) -> None:
    key = Key("team", "r")
    metrics.set_restore(key, RestoreMetrics(cluster="c", phase="Pending", last_progress=1000.0))
    assert shown(metrics) == {
        f'restore_phase{{{RESTORE},phase="Pending"}}': 1.0,
        f"restore_last_progress_timestamp_seconds{{{RESTORE}}}": 1000.0,
        **ENDS,
    }
    metrics.set_restore(key, RestoreMetrics(cluster="c", phase="Failed"))
    metrics.restore_ended("Failed")
    ended = {**ENDS, 'restore_ends_total{phase="Failed"}': 1.0}
    assert shown(metrics) == {f'restore_phase{{{RESTORE},phase="Failed"}}': 1.0, **ended}
    metrics.set_restore(key, None)
    assert shown(metrics) == ended


def test_only_the_process_that_leads_shows_them() -> None:
    metrics = Metrics()
    metrics.set_cluster(GROUPS[0], KEY, ClusterMetrics(is_available=False, held="QuorumLost"))
    metrics.set_restore(KEY, RestoreMetrics(cluster="c", phase="Completed"))
    assert shown(metrics) == ENDS
    metrics.leader(True)
    assert len(shown(metrics)) == len(ENDS) + 3
    metrics.leader(False)
    assert shown(metrics) == ENDS
