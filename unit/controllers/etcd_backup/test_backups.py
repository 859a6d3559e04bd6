"""EtcdBackups from `kubectl apply` to their end."""

from typing import Any
from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_backup.observe import Sources
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.faults import no_fault
from unit.fakes.apiserver.kinds import JOBS, PODS, SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, IMPROBABLE, MAKERS, ephemeral, persistent
from unit.passes.jobs import MANIFEST, STORED, Made, backup, container, ended


def begun(made: Made, **spec: Any) -> Json:
    """An EtcdBackup whose Job exists; the Job."""
    world, jobs = made
    world.create(*backup(**spec))
    world.run_until(lambda: bool(jobs.all()))
    world.drain()
    return jobs.one()


def phase(world: Bench, name: str = "one") -> str:
    return str(world.status(BACKUPS, name).get("phase", ""))


def complete(world: Bench, name: str = "one") -> Json:
    return world.condition(BACKUPS, "Complete", name)


@MAKERS
@pytest.mark.parametrize(
    ("source", "is_of_cluster"),
    [
        ({"clusterName": "c"}, True),
        ({"clusterURL": "http://c.default.svc:2379"}, True),
        ({"clusterURL": "http://c.default.svc.attacker.example:2379"}, False),
    ],
)
def test_the_status_has_the_cluster_that_was_resolved(
    made: Made, make: Any, source: Json, *, is_of_cluster: bool
) -> None:
    world, _ = made
    kind, body = make(size=1)
    world.create(kind, body)
    world.settle((kind, "c"))
    begun(made, source=source)
    uid = world.get(kind)["metadata"]["uid"] if is_of_cluster else ""
    assert world.status(BACKUPS, "one").get("clusterUID", "") == uid


def test_a_backup_is_taken_by_a_job_and_reported(made: Made) -> None:
    world, jobs = made
    job = begun(made)
    assert phase(world) == "BackingUp"
    assert "etcd-operator:test" in str(job["spec"])
    pod = jobs.start(job)
    world.drain()
    assert complete(world)["reason"] == "Running"
    jobs.report(pod, **ended(STORED))
    world.drain()
    status = world.status(BACKUPS, "one")
    assert status["phase"] == "Completed"
    assert status["url"] == "s3://bucket/default/one.db"
    assert (status["revision"], status["keys"], status["size"]) == (7, 3, 20512)
    assert (status["sha256"], status["etcdVersion"]) == (MANIFEST["sha256"], "3.6.16")
    assert status["clusterID"] == MANIFEST["clusterID"]
    assert status["jobName"] == job["metadata"]["name"]
    assert status["completionTime"] >= status["startTime"]
    assert complete(world)["status"] == "True"
    url, figures = "s3://bucket/default/one.db", "revision 7, 3 keys, 20.0 KiB, from c:2379 in 1.2 s"
    assert complete(world)["message"] == f"stored {url}: {figures}"
    assert world.condition(BACKUPS, "Failed", "one")["status"] == "False"
    assert world.event_reasons() == ["BackupCompleted", "BackupStarted"]
    jobs.end(job, "Complete")
    world.rest()


def test_a_cluster_of_either_group_is_found_by_its_name(made: Made) -> None:
    world, _ = made
    world.create(*ephemeral(size=1))
    world.settle()
    job = begun(made, source={"clusterName": "c"})
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][1].startswith("--endpoints=c-0000")


def test_a_cluster_may_be_created_with_its_backup(made: Made) -> None:
    world, jobs = made
    world.create(*backup(source={"clusterName": "c"}))
    world.drain()
    assert complete(world)["reason"] == "UnknownCluster"
    assert "there is no EtcdCluster c" in complete(world)["message"]
    world.create(*persistent(size=1))
    jobs.until(lambda: phase(world) == "Completed")


@MAKERS
def test_a_cluster_is_not_unknown_because_a_cache_is_behind(made: Made, make: Any) -> None:
    world, _ = made
    world.create(*make(size=1))
    world.settle()
    with patch.object(Sources, "_cluster", return_value=None):
        world.create(*backup(source={"clusterName": "c"}))
        world.wait(55.0)
        assert complete(world)["reason"] == "UnknownCluster"
        world.wait(15.0)
    assert (phase(world), complete(world)["reason"]) == ("BackingUp", "PodPending")


def test_an_unknown_cluster_fails_after_a_minute(made: Made) -> None:
    world, jobs = made
    world.create(*backup(source={"clusterName": "c"}))
    world.wait(70.0)
    assert (phase(world), complete(world)["reason"]) == ("Failed", "UnknownCluster")
    world.create(*persistent(size=1))
    world.settle()
    world.wait(30.0)
    assert jobs.all() == [], "what has failed is never run again"


def test_a_cluster_that_is_deleted_in_the_middle_is_for_the_pod_to_notice(made: Made) -> None:
    world, jobs = made
    world.create(*persistent(size=1))
    world.settle()
    job = begun(made, source={"clusterName": "c"})
    world.delete(IMPROBABLE, "c")
    world.wait(90.0)
    assert phase(world) == "BackingUp"
    jobs.run(job, {"error": "the connection broke", "reason": "SourceError"}, exit_code=1)
    world.drain()
    assert (phase(world), complete(world)["reason"]) == ("Failed", "SourceFailed")


def test_a_failed_backup_reports_why_in_a_sentence(made: Made) -> None:
    world, jobs = made
    job = begun(made)
    jobs.run(job, {"error": "The bucket bucket does not exist.", "reason": "BucketMissing"}, exit_code=1)
    world.drain()
    assert (phase(world), complete(world)["reason"]) == ("Failed", "BucketMissing")
    assert complete(world)["message"] == "The bucket bucket does not exist."
    assert world.condition(BACKUPS, "Failed", "one")["status"] == "True"
    (event,) = [each for each in world.events() if each["type"] == "Warning"]
    assert (event["reason"], event["message"]) == ("BackupFailed", "The bucket bucket does not exist.")
    world.rest()


def test_a_spec_that_an_older_definition_let_pass_is_refused(made: Made) -> None:
    world, jobs = made
    world.create(*backup(destination={"objectURLTemplate": "s3://b/{{ .Nme }}"}))
    world.create(*backup("two", destination=7))
    world.drain()
    for name, part in (("one", "{{ .Nme }}: has an unknown placeholder"), ("two", "destination")):
        assert (phase(world, name), complete(world, name)["reason"]) == ("Failed", "InvalidSpec")
        assert part in complete(world, name)["message"]
    assert jobs.all() == []


def test_a_pod_that_does_not_start_is_explained_and_given_up(made: Made) -> None:
    world, jobs = made
    job = begun(made)
    assert complete(world)["reason"] == "PodPending"
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "s3" not found'}
    pod = jobs.start(job, phase="Pending", **container(waiting=waiting))
    world.drain()
    assert 'secret "s3" not found' in complete(world)["message"]
    world.run_until(lambda: bool(jobs.one()["metadata"].get("deletionTimestamp")))
    assert phase(world) == "BackingUp", "it may still start"
    world.edit(PODS, pod, {"metadata": {"finalizers": []}})
    world.api.objects.delete(PODS, "default", pod, grace=0)
    world.run_until(lambda: phase(world) == "Failed")
    assert jobs.all() == []
    assert complete(world)["reason"] == "NotStarted"
    assert (
        'within 10 minutes: CreateContainerConfigError: secret "s3" not found' in complete(world)["message"]
    )
    world.rest()


@pytest.mark.parametrize("name", ["Completed", "Failed"])
def test_what_has_ended_is_never_run_again(made: Made, name: str) -> None:
    world, jobs = made
    job = begun(made)
    if name == "Completed":
        jobs.run(job, STORED)
    else:
        jobs.run(job, {"error": "no bucket", "reason": "BucketMissing"}, exit_code=1)
    world.drain()
    assert phase(world) == name
    world.delete(JOBS, job["metadata"]["name"])
    world.restart()
    world.wait(60.0)
    assert (phase(world), jobs.all()) == (name, [])
    world.rest()


@pytest.mark.parametrize("turns", range(8))
def test_deleting_a_backup_never_blocks(made: Made, turns: int) -> None:
    world, jobs = made
    world.create(*backup())
    for _ in range(turns):
        world.turn()
        if turns > 5:
            jobs.run_all()
    world.delete(BACKUPS, "one")
    assert world.names(BACKUPS) == [], "nothing holds it"
    world.wait(30.0)
    assert jobs.all() == []
    assert world.names(PODS) == []


@pytest.mark.parametrize(
    ("code", "cause", "reason"), [(403, "Forbidden", "Forbidden"), (500, "InternalError", "RequestFailed")]
)
def test_what_the_operator_cannot_do_is_reported_and_tried_again(
    made: Made, code: int, cause: str, reason: str
) -> None:
    world, jobs = made
    jobs.refuse(code, cause, "exceeded quota: jobs")
    world.create(*backup())
    world.run_until(lambda: complete(world).get("reason") == reason)
    assert "exceeded quota" in complete(world)["message"]
    writes = sum(write.request.subresource == "status" for write in world.writes())
    world.wait(35.0)
    again = sum(write.request.subresource == "status" for write in world.writes())
    assert again == writes, "the same refusal is not written again"
    world.api.before = no_fault
    jobs.until(lambda: phase(world) == "Completed")


def test_the_operator_reads_no_secret(made: Made) -> None:
    world, jobs = made
    world.create(SECRETS, {"metadata": {"name": "s3"}, "data": {"AWS_SECRET_ACCESS_KEY": "cGxhbnRlZA=="}})
    begun(
        made,
        destination={
            "objectURLTemplate": "s3://b/x",
            "credentials": {"environment": {"secretName": "s3"}},
        },
    )
    jobs.until(lambda: phase(world) == "Completed")
    assert not [each for each in world.api.log if each.request.plural == "secrets"]
    seen = str([world.get(BACKUPS, "one"), jobs.all(), world.events()])
    assert "cGxhbnRlZA" not in seen
    assert "planted" not in seen


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_jumps_ends_no_wait(made: Made, jump: float) -> None:
    world, jobs = made
    world.create(*backup("lost", source={"clusterName": "c"}))
    begun(made)
    world.clock.jump(jump)
    world.wait(30.0)
    assert (phase(world), complete(world)["reason"]) == ("BackingUp", "PodPending")
    assert (phase(world, "lost"), complete(world, "lost")["reason"]) == ("BackingUp", "UnknownCluster")
    world.wait(40.0)
    assert phase(world, "lost") == "Failed"
    jobs.run(jobs.one(), STORED)
    world.drain()
    assert phase(world) == "Completed"
