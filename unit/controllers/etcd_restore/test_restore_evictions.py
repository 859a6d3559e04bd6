"""Pods of an EtcdRestore that a kubelet evicts: Kubernetes makes another one each time, without a limit."""

from etcd_operator.controllers.shared.decide.job_state import LONGEST_PAUSE, START_PATIENCE
from unit.fakes.apiserver import Json
from unit.passes.jobs import ELSEWHERE
from unit.passes.restoring import SNAPSHOT, Restoring, made, restore

__all__ = ["made"]

EVICTION_MESSAGE = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 512Mi"
)
PAUSE = 40.0


def first_job(made: Restoring) -> Json:
    """That of the only member, which nothing has run yet."""
    (job,) = made.begun(size=1)
    return job


def evict(made: Restoring, job: Json, message: str = f"{EVICTION_MESSAGE}. ") -> str:
    """Its pod runs, and is evicted; its name."""
    pod = made.start(job)
    made.made.wait(PAUSE)
    made.jobs.report(pod, phase="Failed", reason="Evicted", message=message, containerStatuses=[])
    made.made.wait(PAUSE)
    return pod


def test_one_eviction_is_named_until_the_next_pod_runs(made: Restoring) -> None:
    job = first_job(made)
    pod = evict(made, job)
    assert made.reason == "PodPending"
    assert made.message.endswith(f"the pod {pod} was evicted: {EVICTION_MESSAGE}; waiting for the next one")
    made.finish(job, made.start(job), {"snapshot": SNAPSHOT}, 0)
    made.until_ended()


def test_pods_that_are_evicted_again_and_again_are_named_with_the_next_step(made: Restoring) -> None:
    job = first_job(made)
    evict(made, job)
    pod = evict(made, job)
    assert made.reason == "PodEvicted"
    name = job["metadata"]["name"]
    assert f"2 pods of the Job {name} were evicted, the last one, {pod}, from the node" in made.message
    assert f"the node {ELSEWHERE}: {EVICTION_MESSAGE}: free what the node lacks" in made.message
    assert f"kubectl cordon {ELSEWHERE};" in made.message
    running = made.start(job)
    made.made.wait(PAUSE)
    assert made.reason == "PodEvicted", "also while the next pod runs: it may be evicted, too"
    writes = len(made.made.writes())
    made.made.wait(600.0)
    assert len(made.made.writes()) == writes
    made.finish(job, running, {"snapshot": SNAPSHOT}, 0)
    made.until_ended()


def test_a_restore_whose_pods_are_evicted_waits_for_the_next_one_longer_than_for_the_first(
    made: Restoring,
) -> None:
    """Kubernetes' own pause becomes as long as the time in which a pod has to start otherwise."""
    job = first_job(made)
    evict(made, job)
    evict(made, job)
    made.made.wait(START_PATIENCE)
    assert (made.phase, made.reason) == ("Pending", "PodEvicted")
    pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    made.jobs.start(job, phase="Pending", conditions=[pending])
    made.made.wait(PAUSE)
    assert made.message.endswith("; now: Unschedulable: no node")
    made.made.wait(LONGEST_PAUSE - 3 * PAUSE)
    assert made.phase == "Pending"
    made.made.wait(2 * PAUSE)
    made.until_ended("Failed")
    assert made.reason == "NotStarted"
    assert made.message.endswith("ran for 20 minutes: Unschedulable: no node")


def test_the_check_of_the_backup_may_be_evicted_too(made: Restoring) -> None:
    made.made.create(*restore())
    made.made.run_until(lambda: bool(made.jobs.all()))
    (job,) = made.jobs.all()
    evict(made, job, "")
    evict(made, job, "")
    assert made.reason == "PodEvicted"
    assert ": the kubelet gives no reason: " in made.message
