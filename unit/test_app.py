"""The composition root: real worker threads, real time, a fake API server and the etcds in it."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from e2e.support.measuring import assert_at_most
from etcd_operator.controllers.shared import groups
from etcd_operator.kube.events import Recorder
from etcd_operator.process import health
from etcd_operator.settings import Settings
from unit.fakes.apiserver import Answer, Cut, Kind
from unit.fakes.apiserver.faults import Fault, Request, Stall, no_fault
from unit.fakes.clock import FakeClock
from unit.operators import DEADLINE, QuickOperator, running, until
from unit.passes.bench import Bench, bench
from unit.passes.bodies import BACKUPS, COREOS, IMPROBABLE, PEERS, SCHEDULES, ephemeral, persistent
from unit.passes.expected import expected_objects, member_names
from unit.passes.jobs import backup, schedule


@pytest.fixture
def made() -> Iterator[Bench]:
    with bench(FakeClock(datetime.now(UTC))) as one:
        yield one


def serves(made: Bench, name: str = "c") -> bool:
    """Whether the ephemeral cluster reports that it is as desired."""
    return made.is_settled(COREOS, name)


def test_an_operator_without_election_creates_clusters_and_stops_in_order(
    made: Bench, tmp_path: Path
) -> None:
    made.create(*ephemeral())
    made.create(*persistent("p"))
    with running(made, tmp_path) as (operator,):
        until(made, lambda: serves(made) and made.is_settled(IMPROBABLE, "p"))
        assert operator.page("/readyz")[0] == operator.page("/healthz")[0] == 200
        assert operator.leads
        assert operator.stop() == 0
    names = [*member_names(COREOS, 3), *member_names(IMPROBABLE, 3, "p")]
    assert made.objects()["pods"] == names
    assert made.objects()["services"] == [*expected_objects(COREOS, names[:3])["services"], "p", "p-peer"]


def test_only_one_of_two_acts_and_the_other_takes_over_when_it_loses_the_lease(
    made: Bench, tmp_path: Path
) -> None:
    lost: list[str] = []

    def cut_off(request: Request) -> Fault | None:
        holder = (
            request.body["spec"].get("holderIdentity") if request.plural == "leases" and request.body else ""
        )
        return Cut() if holder and holder in lost else None

    made.api.before = cut_off
    made.create(*ephemeral())
    with running(made, tmp_path, 2, leader_elect=True) as operators:
        until(made, lambda: serves(made))
        leader, other = sorted(operators, key=lambda operator: not operator.leads)
        assert [operator.leads for operator in (leader, other)] == [True, False]
        until(made, lambda: other.page("/readyz")[0] == 200)
        epoch = leader.operator._wiring().epoch
        first = epoch()
        lost.append(leader.operator._identity)
        until(made, lambda: other.leads and not leader.leads)
        made.create(*ephemeral("d", size=1))
        until(made, lambda: serves(made, "d"))

        lost.clear()
        assert other.stop() == 0
        until(made, lambda: leader.leads)
        assert epoch() != first
        made.create(*ephemeral("e", size=1))
        until(made, lambda: serves(made, "e"))
        assert leader.stop() == 0
    assert not [w for w in made.writes() if w.code == 409 and w.request.plural != "leases"]


def test_only_the_operator_that_leads_shows_metrics_of_backups(made: Bench, tmp_path: Path) -> None:
    series = 'etcd_operator_backup_failures_total{etcd_cluster="c",kind="EtcdBackupSchedule",name="s",'
    template = {**backup()[1]["spec"], "source": {"clusterName": "c"}}
    made.create(*persistent(size=1))
    made.create(*schedule(schedule="0 3 1 1 *", backupTemplate=template))
    with running(made, tmp_path, 2, leader_elect=True) as operators:
        until(made, lambda: made.condition(IMPROBABLE, "BackupHealthy").get("reason") == "FirstBackupPending")
        leader, other = sorted(operators, key=lambda operator: not operator.leads)
        until(made, lambda: series in leader.page("/metrics")[1])
        assert series not in other.page("/metrics")[1]
        for operator in operators:
            assert 'etcd_operator_events_dropped_total{cause="limited"} 0.0' in operator.page("/metrics")[1]
        assert leader.stop() == 0
        until(made, lambda: series in other.page("/metrics")[1])
        made.delete(SCHEDULES, "s")
        until(made, lambda: series not in other.page("/metrics")[1])
        until(made, lambda: not made.condition(IMPROBABLE, "BackupHealthy"))
        assert other.stop() == 0


def test_a_released_lease_is_taken_over_without_waiting_for_its_end(made: Bench, tmp_path: Path) -> None:
    with running(made, tmp_path, 2, leader_elect=True) as operators:
        until(made, lambda: any(operator.leads for operator in operators))
        leader, other = sorted(operators, key=lambda operator: not operator.leads)
        assert leader.stop() == 0
        until(made, lambda: other.leads)


def test_the_lease_is_released_before_what_no_successor_waits_for(made: Bench, tmp_path: Path) -> None:
    still: list[set[str]] = []

    def note(request: Request) -> None:
        if request.plural == "leases" and request.body and not request.body["spec"].get("holderIdentity"):
            still.append({thread.name.partition("-")[0] for thread in threading.enumerate()})

    made.api.before = note
    with running(made, tmp_path, leader_elect=True) as (operator,):
        until(made, lambda: operator.leads)
        assert operator.stop() == 0
    (threads,) = still
    assert "informer" in threads
    assert not [name for name in threads if "worker" in name]


def test_the_lease_and_the_caches_do_not_wait_for_the_definitions_but_the_controllers_do(
    made: Bench, tmp_path: Path
) -> None:
    stall = Stall()
    made.api.before = lambda request: stall if request.plural == "customresourcedefinitions" else None
    made.create(*ephemeral(size=1))
    with running(made, tmp_path, leader_elect=True, install_crds=True) as (operator,):
        try:
            until(made, lambda: operator.leads)
            until(made, lambda: all(informer.has_synced for informer in operator.operator._informers()))
            assert not [c for group in operator.operator._groups for c in group.controllers if c._is_started]
            assert not made.objects()["pods"]
        finally:
            made.api.before = no_fault
            stall.released.set()
        until(made, lambda: serves(made))
        assert operator.stop() == 0


def test_a_group_whose_crds_are_missing_does_not_stop_the_other(made: Bench, tmp_path: Path) -> None:
    for kind in (IMPROBABLE, PEERS):
        made.api.objects.kinds.withdraw(kind)
    made.create(*ephemeral())
    with running(made, tmp_path) as (operator,):
        until(made, lambda: made.is_settled(COREOS, "c"))
        code, text = operator.page("/readyz?verbose")
        assert code == 503
        assert "etcd.improbable.io" in text
        assert operator.page("/healthz")[0] == 200
        for kind in (IMPROBABLE, PEERS):
            made.api.objects.kinds.register(kind)
        made.create(*persistent("p", size=1))
        until(made, lambda: made.is_settled(IMPROBABLE, "p"))
        assert operator.page("/readyz")[0] == 200
        assert operator.stop() == 0


@pytest.mark.parametrize(
    ("refused", "kind", "name"),
    [
        ("/apis/coreos.com/v1/etcdclusters", IMPROBABLE, "p"),
        ("/apis/etcd.improbable.io/v1alpha1/etcdclusters", COREOS, "c"),
    ],
)
def test_a_group_that_may_not_be_read_does_not_stop_the_other(
    made: Bench, tmp_path: Path, refused: str, kind: Kind, name: str
) -> None:
    """Once the refusal has lasted for a while; until then /readyz names what is waited for."""

    def refuse(request: Request) -> Fault | None:
        return Answer(code=403, reason="Forbidden") if request.path.startswith(refused) else None

    made.api.before = refuse
    made.create(*(ephemeral(size=1) if kind is COREOS else persistent("p", size=1)))
    with patch.object(groups, "REFUSED_SECONDS", 3.0), running(made, tmp_path) as (operator,):
        until(made, lambda: "of another group" in operator.page("/readyz?verbose")[1])
        assert not made.status(kind, name)
        until(made, lambda: made.is_settled(kind, name))
        assert "of another group" not in operator.page("/readyz?verbose")[1]
        assert operator.stop() == 0


@pytest.mark.parametrize("plural", ["etcdbackups", "jobs"])
def test_clusters_are_served_by_an_operator_that_may_not_read_backups(
    made: Bench, tmp_path: Path, plural: str
) -> None:
    """A role of an earlier version, or a definition of one."""

    def refuse(request: Request) -> Fault | None:
        return Answer(code=403, reason="Forbidden") if request.plural == plural else None

    made.api.before = refuse
    made.create(*ephemeral(size=1))
    made.create(*persistent("p", size=1))
    made.create(*backup(source={"clusterName": "p"}))
    with running(made, tmp_path) as (operator,):
        until(made, lambda: serves(made) and made.is_settled(IMPROBABLE, "p"))
        code, text = operator.page("/readyz?verbose")
        assert code == 503
        assert "backups" in text
        assert not made.status(BACKUPS, "one")
        made.api.before = no_fault
        until(made, lambda: made.condition(BACKUPS, "Complete", "one").get("reason") == "ImageUnknown")
        until(made, lambda: operator.page("/readyz")[0] == 200)  # other groups read Jobs, too
        assert operator.stop() == 0


def test_backups_are_taken_by_an_operator_that_may_not_read_their_schedules(
    made: Bench, tmp_path: Path
) -> None:
    def refuse(request: Request) -> Fault | None:
        is_schedule = request.plural == "etcdbackupschedules"
        return Answer(code=403, reason="Forbidden") if is_schedule else None

    made.api.before = refuse
    made.create(*backup())
    made.create(*schedule(schedule="* * * * *", suspend=True))
    with running(made, tmp_path) as (operator,):
        until(made, lambda: made.condition(BACKUPS, "Complete", "one").get("reason") == "ImageUnknown")
        code, text = operator.page("/readyz?verbose")
        assert code == 503
        assert "backup-schedules" in text
        assert not made.status(SCHEDULES, "s")
        made.api.before = no_fault
        until(made, lambda: made.condition(SCHEDULES, "Ready", "s").get("reason") == "Suspended")
        assert operator.page("/readyz")[0] == 200
        assert operator.stop() == 0


@pytest.mark.parametrize("leader_elect", [False, True], ids=["alone", "with election"])
def test_work_goes_on_within_seconds_of_the_return_of_the_api_server(
    made: Bench, tmp_path: Path, leader_elect: bool
) -> None:
    made.create(*ephemeral(size=1))
    with running(made, tmp_path, leader_elect=leader_elect) as (operator,):
        until(made, lambda: serves(made))
        informers = list(operator.operator._informers())
        names = iter("def")

        def seconds_until_it_goes_on() -> float:
            made.api.stop()
            until(made, lambda: all(informer.reflector.last_error is not None for informer in informers))
            until(made, lambda: not (leader_elect and operator.operator._may_act()))
            made.create(*ephemeral(name := next(names), size=1))
            before = len(made.api.log)
            made.api.start()
            seconds = until(made, lambda: serves(made, name))
            reads = [e for e in made.api.log[before:] if e.request.method == "GET" and not e.request.is_watch]
            reads = [e for e in reads if e.request.plural != "leases"]
            assert len(reads) <= len(informers), [e.request.path for e in reads]
            return seconds

        assert_at_most(5.0, seconds_until_it_goes_on, "seconds until work goes on")
        assert operator.stop() == 0


def test_a_pass_that_does_not_end_makes_the_process_unhealthy(made: Bench, tmp_path: Path) -> None:
    stall = Stall()
    made.api.before = lambda request: stall if request.is_write and request.plural == "pods" else None
    made.create(*ephemeral())
    with running(made, tmp_path) as (operator,):
        with patch.object(health, "STALL_SECONDS", 0.5):
            until(made, lambda: operator.page("/healthz")[0] == 503)
            assert "a worker has been in one pass for" in operator.page("/healthz")[1]
        made.api.before = no_fault
        stall.released.set()
        until(made, lambda: serves(made) and operator.page("/healthz")[0] == 200)
        assert operator.stop() == 0


def test_a_watch_that_has_ended_makes_the_process_unhealthy(made: Bench, tmp_path: Path) -> None:
    with running(made, tmp_path) as (operator,):
        until(made, lambda: operator.page("/readyz")[0] == 200)
        assert operator.page("/healthz")[0] == 200
        informer = next(iter(operator.operator._informers()))
        informer.reflector.stop()  # as if its loop had returned for no reason
        until(made, lambda: operator.page("/healthz")[0] == 503)
        assert informer.name in operator.page("/healthz")[1]


def test_a_process_that_waits_for_the_lease_is_healthy_whatever_it_has_not_done(
    made: Bench, tmp_path: Path
) -> None:
    made.create(*ephemeral())
    with patch.object(health, "STALL_SECONDS", 0.2), running(made, tmp_path, 2, leader_elect=True) as both:
        until(made, lambda: sum(operator.leads for operator in both) == 1 and serves(made))
        (waiting,) = (operator for operator in both if not operator.leads)
        assert waiting.page("/healthz?verbose")[0] == 200


def test_a_thread_that_cannot_be_started_ends_the_process_in_order(made: Bench, tmp_path: Path) -> None:
    error = RuntimeError("can't start new thread")
    with patch.object(Recorder, "start", side_effect=error), running(made, tmp_path) as (operator,):
        assert operator.join() == 1


def test_a_process_that_is_to_end_before_it_reached_the_api_server_starts_nothing(
    made: Bench, tmp_path: Path
) -> None:
    """Or it would take the Lease and write definitions while it ends."""
    asked: list[Request] = []
    made.api.before = asked.append
    settings = Settings(kubeconfig=str(made.api.write_kubeconfig(tmp_path / "config")), listen="127.0.0.1:0")
    operator = QuickOperator(settings)
    operator._ended.set()
    operator._begin()
    assert operator._stop(time.monotonic() + DEADLINE) == 0
    assert {request.plural for request in asked} <= {"leases"}  # whether there is one to be released
    assert not any(request.method in ("POST", "PUT", "PATCH") for request in asked)
