"""What an API server or others do to an EtcdBackup that runs: its end is reported nevertheless."""

from collections.abc import Callable

import pytest

from etcd_operator.api.backups import UID_LABEL
from unit.controllers.etcd_backup.test_backups import begun, complete, phase
from unit.fakes.apiserver import Answer
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import STORED, Made, backup, ended


def reason(world: Bench) -> str:
    return str(complete(world).get("reason", ""))


def test_the_end_is_reported_as_soon_as_the_status_may_be_written_again(made: Made) -> None:
    """Nothing happens to a Job that has ended, so no event leads to another pass."""
    world, jobs = made
    job = begun(made)

    def refuse(request: Request) -> Answer | None:
        is_status = request.plural == "etcdbackups" and request.is_write
        return Answer(code=403, reason="Forbidden") if is_status else None

    world.api.before = refuse
    jobs.run(job, STORED)
    world.wait(15.0)
    assert phase(world) == "BackingUp"
    refused = len(world.writes())
    world.wait(60.0)
    assert len(world.writes()) - refused <= 7, "no loop"
    world.api.before = no_fault
    world.wait(15.0)
    assert phase(world) == "Completed"


def refusing(verb: str) -> Callable[[Request], Answer | None]:
    """A lack of one right on single Jobs."""

    def refuse(request: Request) -> Answer | None:
        is_meant = request.plural == "jobs" and request.method == verb and not request.path.endswith("jobs")
        return Answer(code=403, reason="Forbidden") if is_meant else None

    return refuse


def test_a_job_that_may_not_be_read_for_a_while_is_made_later(made: Made) -> None:
    world, jobs = made
    world.api.before = refusing("GET")
    world.create(*backup())
    world.wait(30.0)
    assert (phase(world), jobs.all()) == ("BackingUp", [])
    world.api.before = no_fault
    jobs.until(lambda: phase(world) == "Completed")


def test_a_job_that_may_not_be_deleted_for_a_while_is_deleted_later(made: Made) -> None:
    world, jobs = made
    begun(made)
    world.api.before = refusing("DELETE")
    world.wait(700.0)
    assert (phase(world), reason(world), len(jobs.all())) == ("BackingUp", "NotStarted", 1)
    world.api.before = no_fault
    world.wait(30.0)
    assert (phase(world), reason(world), jobs.all()) == ("Failed", "NotStarted", [])


UNSEEN = {"metadata": {"labels": {UID_LABEL: None}}}
"""A pod without it is in no cache, like one whose events are late."""


@pytest.mark.parametrize("has_failed", [True, False])
def test_the_report_of_a_pod_that_the_cache_does_not_show_is_read(made: Made, has_failed: bool) -> None:
    world, jobs = made
    job = begun(made)
    pod = jobs.start(job)
    world.drain()
    world.edit(PODS, pod, UNSEEN)
    report = {"error": "no bucket b", "reason": "BucketMissing"} if has_failed else STORED
    jobs.report(pod, **ended(report, exit_code=int(has_failed)))
    jobs.end(job, "Failed" if has_failed else "Complete")
    world.drain()
    expected = ("Failed", "BucketMissing", None) if has_failed else ("Completed", "Stored", 7)
    assert (phase(world), reason(world), world.status(BACKUPS, "one").get("revision")) == expected


def test_a_job_whose_pod_runs_unseen_by_the_cache_is_not_stopped(made: Made) -> None:
    world, jobs = made
    job = begun(made)
    pod = jobs.start(job)
    world.edit(PODS, pod, UNSEEN)
    world.wait(700.0)
    assert (phase(world), reason(world)) == ("BackingUp", "Running")
    assert "deletionTimestamp" not in jobs.one()["metadata"]
    world.edit(PODS, pod, {"metadata": {"labels": {UID_LABEL: world.get(BACKUPS, "one")["metadata"]["uid"]}}})
    jobs.report(pod, **ended(STORED))
    world.drain()
    assert phase(world) == "Completed"


def test_a_pod_on_a_lost_node_is_not_waited_for_for_ever(made: Made) -> None:
    """The node never confirms that the pod has ended; a person has to delete the node, or the pod."""
    world, jobs = made
    pod = jobs.start(begun(made))
    world.edit(PODS, pod, {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}})
    world.delete(PODS, pod)
    world.wait(590.0)
    assert (phase(world), reason(world)) == ("BackingUp", "PodTerminating")
    writes = len(world.writes())
    world.wait(60.0)
    assert (phase(world), reason(world)) == ("Failed", "NotStopped")
    assert len(world.writes()) == writes + 1
    world.rest()
