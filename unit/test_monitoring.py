"""The alerts and the dashboard: they ask for metrics that there are, and documents explain them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics, CertificateMetrics, ClusterMetrics, RestoreMetrics
from etcd_operator.observability.metrics import Metrics
from unit.promql import Scrape

ROOT = Path(__file__).resolve().parents[1]
MONITORING = ROOT / "manifests/monitoring"
OPERATIONS = (ROOT / "docs/operations.md").read_text()
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
QUERIES = [alert["expr"] for alert in ALERTS] + [
    target["expr"] for panel in PANELS for target in panel["targets"]
]

EACH_ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])


def samples() -> dict[str, set[str]]:
    """The labels of each metric that the operator exports, by the name of its samples."""
    metrics = Metrics()
    metrics.leader(True)
    full = BackupMetrics(
        cluster="c", last_success=1.0, last_verified=1.0, took=1.0, size=1, failures=1, is_healthy=True
    )
    metrics.objects.set("EtcdBackupSchedule", Key("team", "s"), full)
    lost = ClusterMetrics(is_available=False, held="QuorumLost")
    metrics.objects.set("etcd.improbable.io", Key("team", "c"), lost)
    certificate = CertificateMetrics(kind="client", renewal=1.0, expiry=2.0)
    new = ClusterMetrics(is_available=None, working="Creating", certificates=(certificate,))
    metrics.objects.set("etcd.improbable.io", Key("team", "new"), new)
    pending = RestoreMetrics(cluster="c", phase="Pending", last_progress=1.0)
    metrics.objects.set("EtcdRestore", Key("team", "r"), pending)
    found: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def selectors(query: str) -> Iterator[tuple[str, set[str]]]:
    """Name and labels of each metric that a query asks for. Raises ValueError for an invalid query."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(query), visit)
    for each in found:
        yield each.name or "", {matcher.name for matcher in each.matchers.matchers}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_metrics_and_labels_that_there_are(query: str) -> None:
    exported = samples()
    asked = list(selectors(query))
    assert asked
    for name, labels in asked:
        assert name in exported
        assert labels <= exported[name]


@EACH_ALERT
def test_an_alert_reports_what_is_wrong_and_documents_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(alert["annotations"]) == {"summary", "description"}
    exported = samples()
    known = set[str]().union(*(exported[name] for name, _ in selectors(alert["expr"])))
    for text in alert["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= known
        assert text.count("{{") == text.count("}}")
    assert f"| `{alert['alert']}` |" in OPERATIONS


NOW = 1_800_000_000.0
HOUR = 3600.0


def certificates(renewal: float) -> tuple[CertificateMetrics, ...]:
    """Of clients, which end four hours after their renewal is due, and their CA."""
    ca = CertificateMetrics(kind="client-ca", renewal=NOW + 100 * HOUR, expiry=NOW + 200 * HOUR)
    return CertificateMetrics(kind="client", renewal=renewal, expiry=renewal + 4 * HOUR), ca


def scraped() -> Metrics:
    """A process that leads, with one object for each situation, named after it."""
    metrics = Metrics()
    metrics.leader(True)
    clusters = {
        "serving": ClusterMetrics(is_available=True),
        "recovering": ClusterMetrics(is_available=False, working="Recovering"),
        "waiting": ClusterMetrics(is_available=False, held="NoBackup"),
        "waiting-paused": ClusterMetrics(is_available=False, held="Paused"),
        "paused": ClusterMetrics(is_available=True, held="Paused"),
        "full": ClusterMetrics(is_available=True, held="OutOfSpace"),
        "creating": ClusterMetrics(is_available=None, working="Creating"),
        "joined": ClusterMetrics(is_available=True, working="Joined"),
        "unschedulable": ClusterMetrics(is_available=None, held="Unschedulable"),
        "rotating": ClusterMetrics(
            is_available=True, working="TLSRotating", certificates=certificates(renewal=NOW + HOUR)
        ),
        "renewing": ClusterMetrics(is_available=True, certificates=certificates(renewal=NOW - HOUR)),
        "expiring": ClusterMetrics(is_available=True, certificates=certificates(renewal=NOW - 3 * HOUR)),
        "expired": ClusterMetrics(is_available=True, certificates=certificates(renewal=NOW - 9 * HOUR)),
    }
    for name, cluster in clusters.items():
        metrics.objects.set("coreos.com", Key("team", name), cluster)
    # Clusters of both groups may have one name, and each has its own alerts.
    metrics.objects.set("etcd.improbable.io", Key("team", "waiting"), clusters["serving"])
    metrics.objects.set("etcd.improbable.io", Key("team", "recovering"), clusters["full"])
    restores = {
        "completed": RestoreMetrics(cluster="c", phase="Completed"),
        "failed": RestoreMetrics(cluster="c", phase="Failed"),
        "moving": RestoreMetrics(cluster="c", phase="Pending", last_progress=NOW - HOUR / 4),
        "stalled": RestoreMetrics(cluster="c", phase="Pending", last_progress=NOW - HOUR),
    }
    for name, restore in restores.items():
        metrics.objects.set("EtcdRestore", Key("team", name), restore)
    backups = {
        "healthy": BackupMetrics(cluster="c", last_success=NOW, last_verified=NOW - HOUR, is_healthy=True),
        "overdue": BackupMetrics(cluster="c", last_success=NOW - 24 * HOUR, is_healthy=False),
        "unverified": BackupMetrics(cluster="c", last_success=NOW, last_verified=0.0, is_healthy=True),
        "unknown": BackupMetrics(cluster="c"),
    }
    for name, backup in backups.items():
        metrics.objects.set("EtcdBackupSchedule", Key("team", name), backup)
    return metrics


def found_by(alert: str, metrics: Metrics) -> list[str]:
    """The names of the objects for which the expression of an alert is true."""
    expression = next(each["expr"] for each in ALERTS if each["alert"] == alert)
    found = Scrape(registry=metrics.registry, now=NOW).evaluate(expression)
    return sorted(dict(labels).get("name", "") for labels in found)


@pytest.mark.parametrize(
    ("alert", "names"),
    [
        ("EtcdQuorumLost", ["recovering", "waiting", "waiting-paused"]),
        ("EtcdRecoveryWaits", ["waiting", "waiting-paused"]),
        ("EtcdClusterHeld", ["full", "recovering", "unschedulable"]),
        ("EtcdClusterStalled", ["creating", "recovering"]),
        ("EtcdRotationStalled", ["rotating"]),
        ("EtcdCertificateExpiring", ["expired", "expiring"]),
        ("EtcdRestoreFailed", ["failed"]),
        ("EtcdRestoreStalled", ["stalled"]),
        ("EtcdBackupUnhealthy", ["overdue"]),
        ("EtcdBackupNotVerified", ["unverified"]),
        ("EtcdOperatorNotLeading", []),
    ],
)
def test_an_alert_is_about_the_objects_that_it_should_be(alert: str, names: list[str]) -> None:
    assert found_by(alert, scraped()) == names


def test_an_alert_goes_on_while_the_reason_alternates() -> None:
    """Prometheus counts the time of each set of labels alone."""
    held = next(each["expr"] for each in ALERTS if each["alert"] == "EtcdClusterHeld")
    found = []
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        metrics = Metrics()
        metrics.leader(True)
        cluster = ClusterMetrics(is_available=None, held=reason)
        metrics.objects.set("coreos.com", Key("team", "c"), cluster)
        found.append(Scrape(registry=metrics.registry, now=NOW).evaluate(held))
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_while_no_process_leads_that_is_the_only_alert() -> None:
    metrics = scraped()
    metrics.leader(False)
    evaluated = [each["alert"] for each in ALERTS if "increase" not in each["expr"]]
    assert [alert for alert in evaluated if found_by(alert, metrics)] == ["EtcdOperatorNotLeading"]


def test_no_alert_is_explained_that_there_is_not() -> None:
    explained = set(re.findall(r"^\| `(Etcd\w+)` \|", OPERATIONS, flags=re.MULTILINE))
    assert explained == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize(("of", "count"), [("backup", 6), ("cluster", 3), ("restore", 3)])
def test_each_metric_of_objects_has_a_panel_and_is_explained(of: str, count: int) -> None:
    prefix = f"etcd_operator_{of}_"
    ours = {n for n in samples() if n.startswith(prefix) and not n.endswith("_created")}
    assert len(ours) == count
    shown = {name for panel in PANELS for target in panel["targets"] for name, _ in selectors(target["expr"])}
    assert ours <= shown
    assert ours == set(re.findall(rf"^\| `({prefix}\w+)` \|", OPERATIONS, flags=re.MULTILINE))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
