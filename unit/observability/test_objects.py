"""Metrics of objects, as a scrape shows them."""

import pytest

from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics, ClusterMetrics, RestoreMetrics
from etcd_operator.observability.metrics import Metrics

KEY = Key("team", "c")
GROUPS = ("coreos.com", "etcd.improbable.io")


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.leader(True)
    return made


def shown(metrics: Metrics) -> dict[str, float]:
    """The samples of clusters, backups and restores in a scrape, by `name{labels}`."""
    prefixes = ("etcd_operator_cluster_", "etcd_operator_backup_", "etcd_operator_restore_")
    found = metrics.render()[0].decode().splitlines()
    lines = [line for line in found if line.startswith(prefixes) and "_created{" not in line]
    samples = (line.rpartition(" ") for line in lines)
    return {name.removeprefix("etcd_operator_"): float(value) for name, _, value in samples}


ENDS = {'restore_ends_total{phase="Completed"}': 0.0, 'restore_ends_total{phase="Failed"}': 0.0}
CLUSTER = 'group="etcd.improbable.io",name="c",namespace="team"'
FULL = BackupMetrics(
    cluster="c", last_success=1000.0, last_verified=900.0, took=9.5, size=20512, failures=2, is_healthy=False
)
SCHEDULE, BACKED_UP = "EtcdBackupSchedule", "EtcdCluster"
RESTORE = 'etcd_cluster="c",name="r",namespace="team"'


def test_a_cluster_that_serves_has_one_series(metrics: Metrics) -> None:
    metrics.objects.set(GROUPS[1], KEY, ClusterMetrics(is_available=True))
    assert shown(metrics) == {f"cluster_available{{{CLUSTER}}}": 1.0, **ENDS}


def test_one_that_is_held_has_another_with_the_reason(metrics: Metrics) -> None:
    metrics.objects.set(GROUPS[1], KEY, ClusterMetrics(is_available=True, held="OutOfSpace"))
    metrics.objects.set(GROUPS[1], KEY, ClusterMetrics(is_available=False, held="NoBackup"))
    assert shown(metrics) == {
        f"cluster_available{{{CLUSTER}}}": 0.0,
        f'cluster_held{{{CLUSTER},reason="NoBackup"}}': 1.0,
        **ENDS,
    }


def test_one_that_is_changed_has_another_with_what_is_done(metrics: Metrics) -> None:
    metrics.objects.set(GROUPS[1], KEY, ClusterMetrics(is_available=None, working="Creating"))
    assert shown(metrics) == {f'cluster_working{{{CLUSTER},reason="Creating"}}': 1.0, **ENDS}


def test_one_that_has_never_served_has_none(metrics: Metrics) -> None:
    metrics.objects.set(GROUPS[1], KEY, ClusterMetrics(is_available=None))
    assert shown(metrics) == ENDS


def test_clusters_of_both_groups_may_have_one_name(metrics: Metrics) -> None:
    for group in GROUPS:
        metrics.objects.set(group, KEY, ClusterMetrics(is_available=True))
    metrics.objects.set(GROUPS[0], KEY, None)
    metrics.objects.set(GROUPS[0], KEY, None)
    assert shown(metrics) == {f"cluster_available{{{CLUSTER}}}": 1.0, **ENDS}


def test_a_restore_has_the_series_of_its_phase(metrics: Metrics) -> None:
    key = Key("team", "r")
    metrics.objects.set(
        "EtcdRestore", key, RestoreMetrics(cluster="c", phase="Pending", last_progress=1000.0)
    )
    assert shown(metrics) == {
        f'restore_phase{{{RESTORE},phase="Pending"}}': 1.0,
        f"restore_last_progress_timestamp_seconds{{{RESTORE}}}": 1000.0,
        **ENDS,
    }
    metrics.objects.set("EtcdRestore", key, RestoreMetrics(cluster="c", phase="Failed"))
    metrics.restore_ended("Failed")
    ended = {**ENDS, 'restore_ends_total{phase="Failed"}': 1.0}
    assert shown(metrics) == {f'restore_phase{{{RESTORE},phase="Failed"}}': 1.0, **ended}
    metrics.objects.set("EtcdRestore", key, None)
    assert shown(metrics) == ended


def test_each_figure_is_a_series_of_its_object(metrics: Metrics) -> None:
    metrics.objects.set(SCHEDULE, Key("team", "s"), FULL)
    labels = '{etcd_cluster="c",kind="EtcdBackupSchedule",name="s",namespace="team"}'
    assert shown(metrics) == {
        f"backup_last_success_timestamp_seconds{labels}": 1000.0,
        f"backup_last_verified_timestamp_seconds{labels}": 900.0,
        f"backup_last_duration_seconds{labels}": 9.5,
        f"backup_last_size_bytes{labels}": 20512.0,
        f"backup_healthy{labels}": 0.0,
        f"backup_failures_total{labels}": 2.0,
        **ENDS,
    }


def test_what_is_not_known_has_no_series(metrics: Metrics) -> None:
    metrics.objects.set(BACKED_UP, Key("team", "c"), BackupMetrics(cluster="c", is_healthy=True))
    labels = '{etcd_cluster="c",kind="EtcdCluster",name="c",namespace="team"}'
    assert shown(metrics) == {f"backup_healthy{labels}": 1.0, **ENDS}


def test_the_series_of_an_object_go_with_it(metrics: Metrics) -> None:
    metrics.objects.set(SCHEDULE, Key("team", "s"), FULL)
    metrics.objects.set(BACKED_UP, Key("team", "s"), FULL)
    metrics.objects.set(SCHEDULE, Key("team", "s"), None)
    metrics.objects.set(SCHEDULE, Key("team", "never"), None)
    found = shown(metrics).keys() - ENDS.keys()
    assert len(found) == 6
    assert all('kind="EtcdCluster"' in name for name in found)
    metrics.objects.set(BACKED_UP, Key("team", "s"), BackupMetrics(cluster="other", failures=0))
    (name,) = shown(metrics).keys() - ENDS.keys()
    assert 'etcd_cluster="other"' in name


def test_only_the_process_that_leads_shows_them() -> None:
    metrics = Metrics()
    metrics.objects.set(GROUPS[0], KEY, ClusterMetrics(is_available=False, held="QuorumLost"))
    metrics.objects.set("EtcdRestore", KEY, RestoreMetrics(cluster="c", phase="Completed"))
    metrics.objects.set(SCHEDULE, Key("team", "s"), FULL)
    assert shown(metrics) == ENDS
    metrics.leader(True)
    assert len(shown(metrics)) == len(ENDS) + 9
    metrics.leader(False)
    assert shown(metrics) == ENDS
