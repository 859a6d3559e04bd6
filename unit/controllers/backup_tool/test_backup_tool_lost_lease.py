"""What the backup tool reported before this process lost its Lease does not count once it leads again."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.controllers.shared.decide.backup_health import UNHEALTHY
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS
from unit.passes.disasters import backed_up, members, recovery, silent_last_member, store
from unit.passes.harness import Operator
from unit.passes.quorum_losses import lose
from unit.passes.tools import stored


def another_leads(made: Bench) -> tuple[Operator, Operator]:
    """This process loses its Lease, and another one leads: both."""
    former = operator_of(made)
    made.operator = None
    former.leads, former.epoch = False, former.epoch + 1
    made.start()
    return former, operator_of(made)


def operator_of(made: Bench) -> Operator:
    assert made.operator is not None
    return made.operator


def lead_again(made: Bench, former: Operator) -> None:
    made.operator = former
    former.leads, former.epoch = True, former.epoch + 1


def reconciler_of(operator: Operator, name: str) -> Any:
    """The reconciler of the controller with this name."""
    controllers = [controller for group in operator.groups for controller in group.controllers]
    return next(each.reconcile.__self__ for each in controllers if each.name == name)  # type: ignore[attr-defined]


@pytest.mark.exhaustive
def test_an_outdated_report_is_no_alarm_and_does_not_replace_a_newer_status() -> None:
    with backed_up() as made:
        former, other = another_leads(made)
        made.tools.report = stored(revision=500, count=3)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 500)
        made.wait(7200.0)
        warnings = made.event_reasons().count(UNHEALTHY)
        other.kill()

        lead_again(made, former)
        answers: list[Callable[[], None]] = []
        reconciler_of(former, "coreos-backup").inquiries._submit = answers.append
        former.schedule.advance(60.0)
        for _ in range(40):
            former.run_pass()
        assert answers, "the tool is asked again"
        assert made.condition(COREOS, "BackupHealthy")["status"] == "True"
        assert made.status(COREOS)["backup"]["revision"] == 500
        assert made.event_reasons().count(UNHEALTHY) == warnings


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_new_process", [True, False])
def test_no_survivor_is_taken_that_has_less_than_a_backup_that_another_process_reported(
    is_new_process: bool,
) -> None:
    """A zone is lost, with the leader, the tool and two members."""
    with backed_up() as made:
        made.tools.report = stored(revision=2, cluster_id="c0de")
        made.wait(700.0)
        former, other = another_leads(made)
        store(made, ahead=5)
        made.tools.report = stored(revision=made.etcd.etcd.revision + 5, cluster_id="c0de", count=2)
        made.run_until(lambda: made.status(COREOS)["backup"]["count"] == 2)
        made.wait(3600.0)

        other.kill()
        made.tools.problem = "no route to host"
        lose(made, 0, 1)
        if is_new_process:
            former.kill()
            made.operator = None
            made.start()
        else:
            lead_again(made, former)
        made.wait(120.0)
        assert made.reason(COREOS) == "BackupPending"
        assert not recovery(made)


def test_a_report_from_before_the_last_member_was_given_up_does_not_choose_the_source() -> None:
    """Until then, a quorum may serve where the operator does not reach it, and be backed up."""
    with backed_up() as made:
        silent_last_member(made, store(made))
        asked: list[Callable[[], None]] = []
        inquiries = reconciler_of(operator_of(made), "coreos-cluster").observer.tool_backups_of.inquiries
        inquiries._submit = asked.append
        made.run_until(lambda: bool(asked))
        newer = store(made, ahead=1)
        lose(made, 2)
        made.run_until(lambda: made.reason(COREOS) == "BackupPending")
        inquiries._submit = lambda work: work()
        for answer in asked:
            answer()
        made.settle()
        assert recovery(made)["source"]["name"] == newer


@pytest.mark.exhaustive
def test_a_backup_that_was_named_to_a_person_is_not_forgotten_for_a_survivor_that_has_less() -> None:
    with backed_up() as made:
        made.tools.report = stored(revision=2)
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == 2)
        named = store(made, ahead=1)
        silent_last_member(made, named)
        made.tools.problem = "no route to host"
        made.etcd.etcd.thaw("c-0002")
        made.run_until(lambda: made.reason(COREOS) == "BackupPending")
        made.wait(60.0)
        assert not recovery(made)
        made.tools.problem = ""
        made.settle()
        assert recovery(made)["source"]["name"] == named


@pytest.mark.exhaustive
def test_a_report_of_a_former_loss_does_not_choose_the_source_of_a_later_recovery() -> None:
    with backed_up() as made:
        store(made)
        former = operator_of(made)
        asked: list[Callable[[], None]] = []
        inquiries = reconciler_of(former, "coreos-cluster").observer.tool_backups_of.inquiries
        inquiries._submit = asked.append
        lose(made, 0, 1)
        made.run_until(lambda: bool(asked))
        asked.pop()()  # the answer of the first loss comes when this process does not lead any more
        former, other = another_leads(made)
        made.settle()
        made.wait(3600.0)
        name = store(made, ahead=1)
        other.kill()
        lose(made, *[int(member.rpartition("-")[2]) for member in members(made)[:2]])

        lead_again(made, former)
        for turn in range(60):
            if not made.turn():
                former.schedule.advance()
            if recovery(made).get("generation", 1) > 1:
                break
            if asked and turn > 10:
                asked.pop(0)()
        assert recovery(made)["generation"] == 2
        assert recovery(made)["source"]["name"] == name
