"""What an EtcdRestore takes as proof before it goes on, and when it must not go on."""

from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_restore.decide import spec as specs
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, JOBS
from unit.passes.bodies import RESTORES
from unit.passes.restoring import PREFIX, SNAPSHOT, TEMPLATE, Restoring, made, restore

__all__ = ["made"]


def test_what_a_container_reports_at_its_end_counts_before_kubernetes_notes_the_end_of_its_job(
    made: Restoring,
) -> None:
    """The pod, and then the Job, are reported to have ended seconds later: the etcd beside it stops first."""
    made.made.create(*restore(template={**TEMPLATE, "replicas": 1}))
    made.until(lambda: len(made.named("r-verify")) == 1)
    (job,) = made.named("r-verify")
    made.end_container(job, made.start(job), {"snapshot": SNAPSHOT})
    made.made.run_until(lambda: len(made.named("r-0-")) == 1)
    (job,) = made.named("r-0-")
    pod = made.start(job)
    made.end_container(job, pod, {"dataDir": "/var/lib/etcd/restored", "skipped": True})
    made.made.run_until(lambda: made.phase == "Completed")
    assert made.clusters == ["c"]


@pytest.mark.parametrize(
    ("document", "exit_code"),
    [(None, 0), ({"error": "no", "reason": "Damaged"}, 0), ({"snapshot": SNAPSHOT}, 137)],
)
def test_a_container_that_ended_otherwise_waits_for_its_job(
    made: Restoring, document: Json | None, exit_code: int
) -> None:
    (job,) = made.begun(size=1)
    made.end_container(job, made.start(job), document, exit_code)
    made.made.drain()
    assert (made.phase, made.clusters) == ("Pending", [])
    assert f"{PREFIX}/cluster-id" not in made.annotations("c-0")


def test_the_data_in_a_claim_is_that_of_the_job_that_restored_to_it(made: Restoring) -> None:
    """A claim that somebody deleted and created again is empty, whatever its Job reported."""
    jobs = made.begun()
    for job in jobs[:2]:
        made.finish(job, made.start(job), {"snapshot": SNAPSHOT}, 0)
    made.made.drain()
    claim = made.made.get(CLAIMS, "c-1")
    made.made.kill()
    made.made.edit(CLAIMS, "c-1", {"metadata": {"finalizers": []}})
    made.made.delete(CLAIMS, "c-1")
    kept = {name: claim["metadata"][name] for name in ("name", "labels", "annotations", "ownerReferences")}
    made.made.create(CLAIMS, {"metadata": kept, "spec": claim["spec"]})
    made.made.start()
    made.until_ended("Failed")
    assert made.reason == "ClaimDeleted"
    made.assert_nothing_left()


def test_a_process_that_does_not_lead_any_more_makes_nothing(made: Restoring) -> None:
    """Where the status is not new, no write of it fails because another operator has gone on."""
    made.made.create(*restore())
    made.until(lambda: len(made.claims) == 3)
    made.made.run_until(lambda: len(made.jobs.all()) == 4)
    assert made.made.operator is not None
    made.made.operator.leads = False
    (job,) = made.named("r-1-")
    made.made.delete(JOBS, job["metadata"]["name"])
    made.made.wait(20.0)
    assert len(made.jobs.all()) == 3
    made.made.operator.leads = True
    made.until_ended()


@pytest.mark.parametrize("reason", ["CreatingClaims", "Restoring", "AnnotatingClaims", "CreatingCluster"])
def test_a_restore_that_is_deleted_while_its_status_is_written_makes_nothing_more(
    made: Restoring, reason: str
) -> None:
    def delete(request: Request) -> None:
        if request.plural == "etcdrestores" and request.is_write and f"'{reason}'" in str(request.body):
            made.made.api.before = no_fault
            made.made.delete(RESTORES, "r")

    made.made.api.before = delete
    made.made.create(*restore())
    made.until(lambda: not made.made.names(RESTORES))
    writes = len(made.made.writes())
    made.made.wait(30.0)
    refused, *more = made.made.writes()[writes - 1 :]
    assert (refused.code, more) == (404, [])
    assert made.clusters == []
    assert made.jobs.all() == []


def test_a_spec_that_only_another_version_understands_waits_for_that_version(made: Restoring) -> None:
    """Its claims are not known here: to report an end would leave them behind."""
    made.made.create(*restore())
    made.until(lambda: len(made.claims) == 3)
    made.made.kill()
    spec = made.made.get(RESTORES, "r")["spec"]
    with patch.object(specs, "problem", lambda _spec: "spec.newer: unknown"):
        made.made.start()
        made.made.run_until(lambda: made.reason == "InvalidSpec")
        writes = len(made.made.writes())
        made.made.wait(120.0)
        assert (made.phase, len(made.made.writes())) == ("Pending", writes)
        assert made.claims == ["c-0", "c-1", "c-2"]
        made.made.kill()
    made.made.start()
    made.until_ended()
    assert made.made.get(RESTORES, "r")["spec"] == spec
