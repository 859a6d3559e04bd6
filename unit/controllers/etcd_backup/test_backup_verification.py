"""EtcdBackups with spec.verify, from what was stored to the verdict on it."""

import pytest

from unit.fakes.apiserver.faults import no_fault
from unit.fakes.apiserver.kinds import JOBS, PODS
from unit.passes.bodies import BACKUPS
from unit.passes.jobs import PROVEN, Made, backup, container, ended
from unit.passes.verification_steps import assert_stored, message, stored, verdict, verifying


def test_a_stored_backup_is_restored_in_a_job_and_reported(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    assert_stored(world)
    completed = world.status(BACKUPS, "one")["completionTime"]
    assert verdict(world) == ("Unknown", "PodPending")
    assert "quay.io/coreos/etcd:v3.6.16" in str(job["spec"])
    pod = jobs.start(job, phase="Running", **container("verify", running={}))
    world.drain()
    assert verdict(world) == ("Unknown", "Running")
    world.clock.advance(5.0)
    jobs.report(pod, **ended(PROVEN, name="verify"))
    world.drain()
    assert verdict(world) == ("True", "Restored")
    assert "served by etcd 3.6.16 at revision 7" in message(world)
    assert_stored(world)
    status = world.status(BACKUPS, "one")
    verification = status["verification"]
    assert (verification["level"], verification["etcdVersion"], verification["took"]) == (
        "Restore",
        "3.6.16",
        2.5,
    )
    assert verification["jobName"] == job["metadata"]["name"] != status["jobName"]
    assert status["completionTime"] == completed == verification["startTime"] < verification["completionTime"]
    assert world.event_reasons() == [
        "BackupCompleted",
        "BackupStarted",
        "BackupVerified",
        "VerificationStarted",
    ]
    jobs.end(job, "Complete")
    world.rest()


def test_hashes_need_no_etcd(made: Made) -> None:
    world, jobs = made
    job = stored(made, "Hash")
    assert "coreos/etcd" not in str(job["spec"])
    jobs.run(job, {key: value for key, value in PROVEN.items() if key != "restore"})
    world.drain()
    assert verdict(world) == ("True", "HashesMatch")


def test_without_it_nothing_is_verified(made: Made) -> None:
    world, jobs = made
    world.create(*backup())
    jobs.until(lambda: world.status(BACKUPS, "one").get("phase") == "Completed")
    world.wait(60.0)
    assert len(jobs.all()) == 1
    assert verdict(world) == ("", "")
    assert "verification" not in world.status(BACKUPS, "one")


def test_damage_is_loud_and_the_backup_remains_stored(made: Made) -> None:
    world, jobs = made
    broken = {"error": "the object one.db has 7 bytes, its manifest names 20512", "reason": "Damaged"}
    jobs.run(stored(made), broken, exit_code=3)
    world.drain()
    assert verdict(world) == ("False", "Damaged")
    assert message(world) == broken["error"]
    assert_stored(world)
    (event,) = [each for each in world.events() if each["type"] == "Warning"]
    assert (event["reason"], event["message"]) == ("VerificationFailed", broken["error"])
    world.rest()


@pytest.mark.parametrize("kill", ["SIGTERM", "SIGKILL", "pod", "Job"])
def test_a_job_that_is_killed_proves_nothing_and_is_not_run_again(made: Made, kill: str) -> None:
    world, jobs = made
    job = stored(made)
    pod = jobs.start(job, phase="Running", **container("verify", running={}))
    world.drain()
    if kill == "SIGTERM":
        report = {"error": "interrupted by SIGTERM", "reason": "Interrupted"}
        jobs.report(pod, **ended(report, 143, name="verify"))
    elif kill == "SIGKILL":
        jobs.report(pod, **ended(None, 137, name="verify"))
    elif kill == "pod":
        world.delete(PODS, pod)
        jobs.end(job, "Failed", "Job has reached the specified backoff limit")
    else:
        world.delete(PODS, pod)
        world.delete(JOBS, job["metadata"]["name"])
    world.wait(60.0)
    reasons = {
        "SIGTERM": "Interrupted",
        "SIGKILL": "VerificationFailed",
        "pod": "PodDeleted",
        "Job": "JobDeleted",
    }
    assert verdict(world) == ("False", reasons[kill])
    assert "etcd-operator verify" in message(world) or "kubectl logs" in message(world)
    assert_stored(world)
    world.restart()
    world.wait(60.0)
    assert len(verifying(jobs)) == (0 if kill == "Job" else 1)
    world.rest()


def test_an_image_of_etcd_that_cannot_be_pulled_is_explained_and_given_up(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image quay.io/coreos/etcd:v3.6.16"}
    status = container("verify", waiting={"reason": "PodInitializing"})
    status["initContainerStatuses"] = [{"name": "etcd", "state": {"waiting": waiting}}]
    pod = jobs.start(job, phase="Pending", **status)
    world.drain()
    assert verdict(world) == ("Unknown", "PodPending")
    assert "no such image" in message(world)
    world.run_until(lambda: bool(verifying(jobs)[0]["metadata"].get("deletionTimestamp")))
    world.edit(PODS, pod, {"metadata": {"finalizers": []}})
    world.api.objects.delete(PODS, "default", pod, grace=0)
    world.run_until(lambda: verdict(world) == ("False", "NotStarted"))
    assert "no such image" in message(world)
    assert_stored(world)
    world.rest()


def test_a_job_that_may_not_be_created_is_reported_and_tried_again(made: Made) -> None:
    world, jobs = made
    jobs.refuse(403, "Forbidden", "exceeded quota: jobs", named="-verify-")
    world.create(*backup(verify="Restore"))
    jobs.until(lambda: verdict(world) == ("Unknown", "Forbidden"))
    assert_stored(world)
    world.api.before = no_fault
    jobs.until(lambda: verdict(world) == ("True", "Restored"))


def test_a_job_that_may_not_be_created_for_ten_minutes_keeps_no_schedule_waiting(made: Made) -> None:
    world, jobs = made
    jobs.refuse(403, "Forbidden", "a policy forbids it", named="-verify-")
    world.create(*backup(verify="Restore"))
    jobs.until(lambda: verdict(world) == ("Unknown", "Forbidden"))
    world.wait(570.0)
    assert verdict(world) == ("Unknown", "Forbidden")
    world.wait(60.0)
    assert verdict(world) == ("False", "NotStarted")
    assert "within 10 minutes: " in message(world)
    assert "a policy forbids it" in message(world)
    assert_stored(world)
    world.api.before = no_fault
    world.wait(60.0)
    assert verifying(jobs) == []
    world.rest()


def test_a_backup_that_reported_nothing_is_not_restored_by_a_guess(made: Made) -> None:
    """Without its report the version of etcd is not known."""
    world, jobs = made
    world.create(*backup(verify="Restore"))
    world.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one())
    world.wait(5.0)
    assert verdict(world) == ("False", "VersionUnknown")
    assert verifying(jobs) == []


def test_deleting_a_backup_ends_its_verification(made: Made) -> None:
    world, jobs = made
    stored(made)
    world.delete(BACKUPS, "one")
    world.wait(30.0)
    assert jobs.all() == []
