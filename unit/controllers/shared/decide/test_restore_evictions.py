"""Pods of Jobs that are evicted: what is reported of them, and when it is too late."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_restore.decide.plan import PROGRESS_POLL
from etcd_operator.controllers.shared.decide.job_state import Evictions, JobState, evicted_again
from unit.controllers.etcd_restore.decide.restore_states import BEGUN, RUNS, planned

ONCE = Evictions(count=1, pod="j-1", node="n1", message="low on disk")
TWICE = replace(ONCE, count=2, pod="j-2")
GONE = JobState(name="j", pod="j-2", waits_for="the pod j-2 was evicted", evictions=TWICE)
NEXT = replace(GONE, pod="j-3", waits_for="no node fits")


@pytest.mark.parametrize("found", [None, ONCE])
def test_what_is_evicted_once_is_reported_only_while_nothing_runs(found: Evictions | None) -> None:
    made = planned(replace(BEGUN, check=replace(RUNS, evictions=found)))
    assert (made.reason, made.requeue_after) == ("Verifying", PROGRESS_POLL)
    made = planned(replace(BEGUN, check=replace(GONE, evictions=found)))
    assert made.reason == "PodPending"


@pytest.mark.parametrize("job", [GONE, NEXT, replace(NEXT, is_running=True)])
def test_what_is_evicted_again_is_reported_also_while_the_next_pod_runs(job: JobState) -> None:
    made = planned(replace(BEGUN, check=job))
    assert (made.reason, made.requeue_after) == ("PodEvicted", PROGRESS_POLL)
    assert (
        "2 pods of the Job j were evicted, the last one, j-2, from the node n1: low on disk" in made.message
    )
    assert ("; now: no node fits" in made.message) == (job is NEXT)


def test_only_the_job_that_is_evicted_again_is_named() -> None:
    assert evicted_again([RUNS, replace(RUNS, evictions=ONCE)]) == ""
    assert "Job j were evicted" in evicted_again([RUNS, GONE])
