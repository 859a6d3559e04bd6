"""What the pass for backups hands over to the pass of the cluster, which writes the status."""

from typing import Any

import pytest

from etcd_operator.api.coreos import ClusterStatus, EtcdCluster
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_cluster import reconciler
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.decide.backup_health import BackupHealth
from etcd_operator.keys import Key
from unit.controllers.backup_tool.test_backup_tool import health, made
from unit.controllers.backup_tool.test_backup_tool_lost_lease import operator_of, reconciler_of
from unit.fakes.apiserver.faults import Answer, Request, no_fault
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS
from unit.passes.disasters import backed_up, recovery
from unit.passes.quorum_losses import lose
from unit.passes.tools import failing, stored

__all__ = ["made"]

KEY = Key("default", "c")
GONE = Answer(code=404, reason="NotFound", message="it is gone")
OVERDUE = stored(since=7200.0, failure=failing("BucketMissing", "The bucket b does not exist."))


def tool(made: Bench) -> Any:
    """The reconciler of backup tools."""
    return reconciler_of(operator_of(made), "coreos-backup")


def revision(made: Bench) -> int:
    return int(made.status(COREOS)["backup"]["revision"])


def report(made: Bench, revision: int) -> None:
    """Have the tool asked, and what it has handed over, at once."""
    made.tools.report = stored(revision=revision, count=2)
    tool(made).inquiries.forget(KEY)
    tool(made).reconcile(KEY)  # asks
    tool(made).reconcile(KEY)  # hands over


def test_what_comes_while_the_pass_of_the_cluster_writes_is_not_lost(made: Bench) -> None:
    came: list[str] = []

    def hand_over(request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/etcdclusters/c/status") and not came:
            came.append(request.path)
            report(made, 9)

    made.api.before = hand_over
    report(made, 8)
    made.drain()
    assert came
    assert revision(made) == 9
    made.rest()


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_cluster_that_is_left_alone_reports_its_backups(made: Bench, *, is_paused: bool) -> None:
    if is_paused:
        made.edit(COREOS, "c", {"spec": {"paused": True}})
    else:
        made.etcd.etcd.freeze("c-0000")
    held = ("Progressing", "Paused") if is_paused else ("Degraded", "QuorumLost")
    made.run_until(lambda: made.condition(COREOS, held[0])["reason"] == held[1])
    report(made, 9)
    made.drain()
    assert revision(made) == 9


def test_what_cannot_be_written_is_written_once_it_can(made: Bench) -> None:
    refused = Answer(code=403, reason="Forbidden")
    made.api.before = lambda r: refused if r.method == "PATCH" and r.path.endswith("/c/status") else None
    report(made, 9)
    made.wait(60.0)
    assert revision(made) == 7
    made.api.before = no_fault
    made.wait(11.0)
    assert revision(made) == 9


def test_the_status_of_a_cluster_that_is_being_deleted_stays(made: Bench) -> None:
    made.edit(COREOS, "c", {"metadata": {"finalizers": ["example.com/hangs"]}})
    made.delete(COREOS, "c")
    made.drain()
    report(made, 9)
    made.drain()
    assert revision(made) == 7


def test_a_cluster_in_a_namespace_that_goes_reports_no_failing_backup(made: Bench) -> None:
    made.api.before = lambda r: GONE if r.method == "GET" and r.plural == "namespaces" else None
    made.tools.report = OVERDUE
    made.wait(60.0)
    assert health(made)[0] == "True"
    assert "BackupUnhealthy" not in made.event_reasons()
    made.api.before = no_fault
    made.run_until(lambda: health(made) == ("False", "BucketMissing"))
    assert made.event_reasons().count("BackupUnhealthy") == 1


@pytest.mark.parametrize("is_planned", [False, True])
def test_no_survivor_is_taken_once_a_newer_backup_was_handed_over(
    monkeypatch: pytest.MonkeyPatch, *, is_planned: bool
) -> None:
    """Even if the status in the cache does not name it yet, and the recovery is planned."""
    with backed_up() as made:
        made.tools.report = stored(revision=2, cluster_id="c0de")
        made.run_until(lambda: revision(made) == 2)
        made.tools.problem = "no route to host"
        newer = made.etcd.etcd.revision + 5
        plans: list[Plan] = []

        def hand_over() -> None:
            made.tools.problem = ""
            report(made, newer)
            made.tools.problem = "no route to host"

        def planned(state: ClusterState) -> Plan:
            made_now = plan(state)
            begins = any(isinstance(a, Remember) and a.persisted.recovery for a in made_now.actions)
            if begins and is_planned and not plans:
                hand_over()
            plans.extend([made_now] if begins else [])
            return made_now

        monkeypatch.setattr(reconciler, "plan", planned)
        lose(made, 0, 1)
        if not is_planned:
            hand_over()
        made.run_until(lambda: made.reason(COREOS) == "BackupPending")
        assert len(plans) == is_planned
        assert not recovery(made)


def cluster(uid: str = "uid-1", revision: int = 7) -> EtcdCluster:
    status = ClusterStatus(backup=ClusterBackupStatus(name="one", revision=revision))
    return EtcdCluster(metadata=ObjectMeta(name="c", namespace="default", uid=uid), status=status)


def test_a_report_counts_for_one_object_and_until_leadership_is_lost() -> None:
    epoch, woken = 0, list[Key]()
    reports = BackupReports(lambda: epoch)
    reports.wake.target = woken.append
    newer = ClusterBackupStatus(name="two", revision=9)
    reports.hand_over(cluster(), BackupHealth(condition=None, fields={"backup": newer}), "now")
    assert reports.merged(cluster(), "now").status == ClusterStatus(backup=newer)
    assert woken == [KEY]
    assert reports.merged(cluster("uid-2"), "now") == cluster("uid-2")
    epoch = 1
    assert reports.merged(cluster(), "now") == cluster()


def test_nobody_is_woken_for_what_the_status_reports_already() -> None:
    woken = list[Key]()
    reports = BackupReports(lambda: 0)
    reports.wake.target = woken.append
    reports.hand_over(cluster(), BackupHealth(condition=None), "now")
    assert not woken
