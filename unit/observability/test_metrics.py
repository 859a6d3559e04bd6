import resource
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from etcd_operator.clock import Clock
from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import Controller, ControllerMetrics, Result
from etcd_operator.engine.workqueue import WorkQueue
from etcd_operator.errors import Conflict, InvalidSpec
from etcd_operator.keys import Key
from etcd_operator.observability.metrics import Metrics
from unit.engine.support import Crashes
from unit.fakes.clock import FakeClock
from unit.waiting import eventually


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, sample: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(sample, labels)


def test_a_controllers_metrics_fulfil_the_engines_protocol(metrics: Metrics) -> None:
    fulfilled: ControllerMetrics = metrics.controller("clusters", workers=4)  # mypy checks this line
    assert fulfilled is not None
    assert value(metrics, "controller_runtime_max_concurrent_reconciles", controller="clusters") == 4


def test_a_queue_is_measured_as_it_works_and_when_it_is_scraped(metrics: Metrics) -> None:
    clock = FakeClock()
    mine = metrics.controller("clusters", workers=1)
    queue: WorkQueue[str] = WorkQueue(clock, mine)
    mine.observe(queue)
    for item in "abca":
        queue.add(item)
    clock.advance(2)
    queue.get()
    clock.advance(3)
    queue.get()
    clock.advance(4)
    queue.done("b")

    def of(name: str) -> float | None:
        return value(metrics, f"workqueue_{name}", name="clusters")

    assert of("adds_total") == 3
    assert of("depth") == 1
    assert of("queue_duration_seconds_count") == 2
    assert of("queue_duration_seconds_sum") == 2 + 5
    assert of("work_duration_seconds_sum") == 4
    assert of("unfinished_work_seconds") == 7
    assert of("longest_running_processor_seconds") == 7
    assert value(metrics, "etcd_operator_workqueue_stalled_seconds", name="clusters") == 4
    assert value(metrics, "controller_runtime_active_workers", controller="clusters") == 1


@pytest.fixture
def controller(metrics: Metrics) -> Iterator[Controller]:
    clock = Clock()

    def reconcile(key: Key) -> Result:
        match key.name:
            case "conflict":
                raise Conflict("moved")
            case "terminal":
                raise InvalidSpec("no")
            case "panic":
                raise KeyError("bug")
            case "later":
                return Result(requeue_after=3600)
            case _:
                return Result()

    backoff: Backoff[Key] = Backoff(clock, base=60)
    mine = metrics.controller("clusters", workers=2)
    crashes = Crashes()
    made = Controller(
        "clusters", reconcile, workers=2, clock=clock, backoff=backoff, on_crash=crashes, metrics=mine
    )
    made.start()
    yield made
    assert made.stop(30)
    assert not crashes


def test_passes_are_counted_by_result_with_terminal_errors_and_panics_apart(
    metrics: Metrics, controller: Controller
) -> None:
    def of(sample: str, **labels: str) -> float | None:
        return value(metrics, f"controller_runtime_{sample}", controller="clusters", **labels)

    for name in ("fine", "fine too", "later", "conflict", "terminal", "panic"):
        controller.enqueue(Key("default", name))
    eventually(lambda: of("reconcile_time_seconds_count") == 6)
    eventually(lambda: of("active_workers") == 0)
    assert of("reconcile_total", result="success") == 2
    assert of("reconcile_total", result="requeue_after") == 1
    assert of("reconcile_total", result="error") == 3
    assert of("reconcile_errors_total") == 3
    assert of("terminal_reconcile_errors_total") == 1
    assert of("reconcile_panics_total") == 1
    assert value(metrics, "workqueue_retries_total", name="clusters") == 3


def test_requests_to_the_api_server_are_counted_by_code_and_method(metrics: Metrics) -> None:
    metrics.on_request("get", "pods", 200, 0.02)
    metrics.on_request("get", "pods", 0, 3)
    assert value(metrics, "rest_client_requests_total", code="200", method="GET") == 1
    assert value(metrics, "rest_client_requests_total", code="<error>", method="GET") == 1
    sum_ = value(metrics, "rest_client_request_duration_seconds_sum", verb="GET", resource="pods")
    assert sum_ == pytest.approx(3.02)


def test_calls_to_etcd_are_counted_by_method_and_code(metrics: Metrics) -> None:
    metrics.etcd_call("MemberList", "OK", 0.001)
    metrics.etcd_call("MemberList", "UNAVAILABLE", 2)
    assert value(metrics, "etcd_operator_etcd_requests_total", method="MemberList", code="OK") == 1
    assert value(metrics, "etcd_operator_etcd_requests_total", method="MemberList", code="UNAVAILABLE") == 1
    assert value(metrics, "etcd_operator_etcd_request_duration_seconds_count", method="MemberList") == 2


def test_leadership_can_be_won_and_lost(metrics: Metrics) -> None:
    metrics.leader(True)
    assert value(metrics, "leader_election_master_status", name="etcd-operator") == 1
    metrics.leader(False)
    assert value(metrics, "leader_election_master_status", name="etcd-operator") == 0


def test_two_registries_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.upgraded(3.0)
    assert value(one, "etcd_operator_upgrade_duration_seconds_count") == 1
    assert value(other, "etcd_operator_upgrade_duration_seconds_count") == 0


def test_a_scrape_is_what_prometheus_understands_and_shows_the_process_too(metrics: Metrics) -> None:
    metrics.controller("clusters", workers=4)
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(body.decode())}
    assert {"workqueue_adds", "controller_runtime_reconcile", "process_cpu_seconds"} <= names
    assert {"python_gc_collections", "rest_client_requests", "leader_election_master_status"} <= names


@pytest.mark.parametrize("form", ["text/plain", "application/openmetrics-text"])
def test_a_scrape_that_asks_for_a_version_that_is_none_is_answered(metrics: Metrics, form: str) -> None:
    assert metrics.render(f"{form}; version=abc")[0]


def test_a_scrape_may_ask_for_openmetrics(metrics: Metrics) -> None:
    body, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_upgrades_are_measured(metrics: Metrics) -> None:
    metrics.upgraded(7.5)
    metrics.leaderless(0.25)
    metrics.leaderless(0.5)
    assert value(metrics, "etcd_operator_upgrade_duration_seconds_sum") == 7.5
    assert value(metrics, "etcd_operator_upgrade_duration_seconds_count") == 1
    assert value(metrics, "etcd_operator_upgrade_leaderless_seconds_total") == 0.75


def test_dropped_events_are_read_when_they_are_scraped(metrics: Metrics) -> None:
    dropped = {"full": 0, "limited": 2}
    metrics.observe_events(lambda: dropped)
    name = "etcd_operator_events_dropped_total"
    assert (value(metrics, name, cause="full"), value(metrics, name, cause="limited")) == (0, 2)
    dropped["full"] = 1
    assert value(metrics, name, cause="full") == 1
    assert b'etcd_operator_events_dropped_total{cause="limited"} 2.0' in metrics.render()[0]


def test_open_files_and_both_limits_are_shown(metrics: Metrics) -> None:
    shown = {name: value(metrics, "etcd_operator_open_files_limit", limit=name) for name in ("soft", "hard")}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert shown == {"soft": soft, "hard": hard}
    assert value(metrics, "process_max_fds") == soft
    assert (value(metrics, "process_open_fds") or 0) > 2
