"""Metrics of regular backups, as a scrape shows them."""

import pytest

from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics
from etcd_operator.observability.metrics import Metrics

FULL = BackupMetrics(
    cluster="c", last_success=1000.0, last_verified=900.0, took=9.5, size=20512, failures=2, is_healthy=False
)
SCHEDULE, CLUSTER = "EtcdBackupSchedule", "EtcdCluster"


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.leader(True)
    return made


def shown(metrics: Metrics) -> dict[str, float]:
    """The samples of backups in a scrape, by `name{labels}`."""
    lines = metrics.render()[0].decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if line.startswith("etcd_operator_backup_"))
    return {name.removeprefix("etcd_operator_backup_"): float(value) for name, _, value in samples}


def test_each_figure_is_a_series_of_its_object(metrics: Metrics) -> None:
    metrics.set_backup(SCHEDULE, Key("team", "s"), FULL)
    labels = '{etcd_cluster="c",kind="EtcdBackupSchedule",name="s",namespace="team"}'
    assert shown(metrics) == {
        f"last_success_timestamp_seconds{labels}": 1000.0,
        f"last_verified_timestamp_seconds{labels}": 900.0,
        f"last_duration_seconds{labels}": 9.5,
        f"last_size_bytes{labels}": 20512.0,
        f"healthy{labels}": 0.0,
        f"failures_total{labels}": 2.0,
    }


def test_what_is_not_known_has_no_series(metrics: Metrics) -> None:
    metrics.set_backup(CLUSTER, Key("team", "c"), BackupMetrics(cluster="c", is_healthy=True))
    labels = '{etcd_cluster="c",kind="EtcdCluster",name="c",namespace="team"}'
    assert shown(metrics) == {f"healthy{labels}": 1.0}


def test_the_series_of_an_object_go_with_it(metrics: Metrics) -> None:
    metrics.set_backup(SCHEDULE, Key("team", "s"), FULL)
    metrics.set_backup(CLUSTER, Key("team", "s"), FULL)
    metrics.set_backup(SCHEDULE, Key("team", "s"), None)
    metrics.set_backup(SCHEDULE, Key("team", "never"), None)
    assert len(shown(metrics)) == 6
    assert all('kind="EtcdCluster"' in name for name in shown(metrics))
    metrics.set_backup(CLUSTER, Key("team", "s"), BackupMetrics(cluster="other", failures=0))
    (name,) = shown(metrics)
    assert 'etcd_cluster="other"' in name


def test_only_the_process_that_leads_shows_them() -> None:
    metrics = Metrics()
    metrics.set_backup(SCHEDULE, Key("team", "s"), FULL)
    assert shown(metrics) == {}
    metrics.leader(True)
    assert len(shown(metrics)) == 6
    metrics.leader(False)
    assert shown(metrics) == {}
