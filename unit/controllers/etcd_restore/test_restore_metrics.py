"""What metrics show of EtcdRestores, as passes find it."""

from collections.abc import Callable

from etcd_operator.formats import instant
from etcd_operator.keys import Key
from etcd_operator.object_metrics import RestoreMetrics
from etcd_operator.pods.reports import Progress
from unit.fakes.apiserver.faults import Answer, Cut, Fault, Request, no_fault
from unit.passes.bodies import RESTORES
from unit.passes.harness import Operator
from unit.passes.restoring import SNAPSHOT, Restoring, made, restore

__all__ = ["made"]

COMPLETED = RestoreMetrics(cluster="c", phase="Completed")
FAILED = RestoreMetrics(cluster="c", phase="Failed")
DAMAGED = ({"error": "it is damaged", "reason": "Damaged"}, 3)
SIZE = 20512


def operator(made: Restoring) -> Operator:
    assert made.made.operator is not None
    return made.made.operator


def metrics(made: Restoring) -> RestoreMetrics | None:
    return operator(made).restore_metrics.get(("EtcdRestore", Key("default", "r")))


def last_progress(made: Restoring) -> float:
    found = metrics(made)
    assert found is not None
    assert (found.phase, found.last_progress is None) == ("Pending", False)
    return found.last_progress or 0.0


def ends(made: Restoring) -> list[str]:
    return operator(made).restore_ends


def test_a_restore_that_is_completed_is_counted_once_and_shown_until_it_is_deleted(made: Restoring) -> None:
    made.begun()
    assert ends(made) == []
    made.until_ended()
    made.made.wait(30.0)
    assert (metrics(made), ends(made)) == (COMPLETED, ["Completed"])
    made.made.restart()
    made.made.wait(30.0)
    assert (metrics(made), ends(made)) == (COMPLETED, []), "an earlier process has counted it"
    made.made.delete(RESTORES, "r")
    made.made.run_until(lambda: metrics(made) is None)


def test_a_restore_that_fails_is_counted_once(made: Restoring) -> None:
    made.answers["-0-"] = DAMAGED
    made.begun()
    made.until_ended("Failed")
    made.made.wait(30.0)
    assert (metrics(made), ends(made)) == (FAILED, ["Failed"])


def test_a_restore_with_an_invalid_spec_is_shown_too(made: Restoring) -> None:
    kind, body = restore()
    body["spec"]["clusterTemplate"] = "none"
    made.made.create(kind, body)
    made.made.run_until(lambda: metrics(made) is not None and made.phase == "Failed")
    made.made.drain()
    assert (metrics(made), ends(made)) == (RestoreMetrics(cluster="", phase="Failed"), ["Failed"])


def losing_the_end(made: Restoring, lost: list[Request]) -> Callable[[Request], Fault | None]:
    """The reply to the write of the end is lost."""

    def hook(request: Request) -> Fault | None:
        if not request.is_write or request.plural != "etcdrestores" or made.phase != "Completed":
            return None
        lost.append(request)
        return Cut()

    return hook


def test_an_end_whose_reply_is_lost_is_counted(made: Restoring) -> None:
    made.begun()
    lost: list[Request] = []
    made.made.api.after = losing_the_end(made, lost)
    made.until_ended()
    made.made.api.after = no_fault
    made.made.wait(30.0)
    assert len(lost) == 1
    assert (metrics(made), ends(made)) == (COMPLETED, ["Completed"])


def test_an_end_that_another_process_wrote_is_not_counted(made: Restoring) -> None:
    made.begun()
    status = {"phase": "Failed", "startTime": made.status["startTime"]}
    made.made.edit(RESTORES, "r", {"status": status}, subresource="status")
    made.made.run_until(lambda: metrics(made) == FAILED)
    made.made.wait(30.0)
    assert ends(made) == []


def test_the_time_of_the_last_progress_stands_still_while_nothing_moves(made: Restoring) -> None:
    jobs, tools = made.begun(), made.made.tools
    tools.progress = Progress(step="fetching", bytes=100, total_bytes=SIZE)
    pods = [made.start(job) for job in jobs]
    made.made.wait(20.0)
    stood = last_progress(made)
    made.made.wait(600.0)
    assert last_progress(made) == stood
    tools.progress = Progress(step="fetching", bytes=200, total_bytes=SIZE)
    made.made.wait(20.0)
    moved = last_progress(made)
    assert stood + 600.0 <= moved <= made.made.clock.now().timestamp()
    assert made.status["progress"] == "30%", "a step of the status is larger"
    made.made.restart()
    made.made.wait(20.0)
    assert last_progress(made) > moved, "a new process counts from its first pass on"
    for job, pod in zip(jobs, pods, strict=True):
        made.finish(job, pod, {"snapshot": SNAPSHOT}, 0)
    made.until_ended()
    assert metrics(made) == COMPLETED


def test_without_any_progress_the_start_counts_also_after_a_restart(made: Restoring) -> None:
    made.made.create(*restore())
    made.made.drain()
    (job,) = made.jobs.all()
    made.start(job)
    made.made.wait(60.0)
    started = instant(made.status["startTime"]).timestamp()
    assert started <= last_progress(made) < started + 1.0
    made.made.restart()
    made.made.wait(60.0)
    assert last_progress(made) == started


def refusing_claims(request: Request) -> Fault | None:
    """Claims cannot be listed: an earlier role lacks the permission."""
    is_meant = request.method == "GET" and request.plural == "persistentvolumeclaims" and not request.is_watch
    return Answer(code=403, reason="Forbidden") if is_meant else None


def test_a_restore_of_which_nothing_can_be_observed_is_shown_too(made: Restoring) -> None:
    made.made.api.before = refusing_claims
    made.made.create(*restore())
    made.made.wait(60.0)
    assert made.status == {}
    created = made.made.get(RESTORES, "r")["metadata"]["creationTimestamp"]
    assert last_progress(made) == instant(created).timestamp()
    made.made.api.before = no_fault
    made.until_ended()
    assert metrics(made) == COMPLETED


def test_a_restore_is_not_shown_while_its_deletion_hangs(made: Restoring) -> None:
    made.begun()
    assert metrics(made) is not None
    made.made.edit(RESTORES, "r", {"metadata": {"finalizers": ["example.com/hangs"]}})
    made.made.delete(RESTORES, "r")
    made.made.run_until(lambda: metrics(made) is None)
    made.made.wait(60.0)
    assert metrics(made) is None
    assert ends(made) == []


def test_an_end_that_could_not_be_written_before_the_deletion_is_not_counted(made: Restoring) -> None:
    made.begun()
    refused: list[Request] = []

    def hook(request: Request) -> Fault | None:
        if request.plural != "etcdrestores" or "'Completed'" not in str(request.body):
            return None
        refused.append(request)
        return Answer(code=500, reason="InternalError")

    made.made.api.before = hook
    made.until(lambda: bool(refused))
    made.made.edit(RESTORES, "r", {"metadata": {"finalizers": ["example.com/hangs"]}})
    made.made.delete(RESTORES, "r")
    made.made.run_until(lambda: metrics(made) is None)
    assert ends(made) == []


def test_a_restore_that_has_ended_costs_nothing(made: Restoring) -> None:
    made.begun()
    made.until_ended()
    made.made.wait(30.0)
    requests = len(made.made.api.log)
    made.made.wait(120.0)
    assert [e for e in made.made.api.log[requests:] if "etcdrestores" in e.request.path] == []
