"""Retention of what schedules have stored: when a Job removes it, and what the status reports."""

import pytest

from etcd_operator.api.backups import COMPLETED, UID_LABEL
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import JOBS, PODS
from unit.passes.bodies import BACKUPS, SCHEDULES
from unit.passes.jobs import PRUNED, Made, ended, schedule
from unit.passes.prune_steps import KEEP_TWO, URL, arguments, pruned, prunes, stored
from unit.passes.schedule_steps import FIRST, SECOND, created, let_run, messages, status


def test_old_backups_are_removed_after_each_backup_that_was_completed(made: Made) -> None:
    world, jobs = made
    job = stored(made, retention={"maxCount": 2, "maxAge": "30d"})
    uid = world.get(SCHEDULES, "s")["metadata"]["uid"]
    digits = "[0-9]"
    assert arguments(job) == [
        "prune",
        "s3://bucket/default/",
        f"--series=default/s/{uid}",
        f"--match=s-{digits * 8}-{digits * 4}.db",
        "--max-count=2",
        "--max-age=30d",
        f"--keep={FIRST}.db",
        "--json",
        "--report=/dev/termination-log",
    ]
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("EtcdBackupSchedule", uid)
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("Unknown", "Pruning")
    jobs.run(job, PRUNED)
    world.drain()
    assert (pruned(world)["status"], pruned(world)["message"]) == ("True", "removed 2 backups, 3 left")
    last = status(world)["lastPrune"]
    assert last["request"] == f"maxCount 2, maxAge 30d after {URL}"
    assert (last["removed"], last["stored"]) == (2, 3)
    assert messages(world, "BackupsPruned") == ["removed 2 backups, 3 left"]
    world.rest()
    let_run(made, 300.0)
    assert status(world)["lastPrune"]["request"].endswith(f"{SECOND}.db")


def test_what_somebody_else_puts_there_does_not_displace_what_is_on_record(made: Made) -> None:
    """The Job cannot know who has stored what the manifests name; the newest EtcdBackups are known here."""
    world, jobs = made
    jobs.run(stored(made), PRUNED)
    world.drain()
    let_run(made, 750.0)
    *_, last = prunes(made)
    done = sorted(
        each for each in world.names(BACKUPS) if world.get(BACKUPS, each)["status"]["phase"] == COMPLETED
    )
    assert len(done) > 2
    kept = {each for each in arguments(last) if each.startswith("--keep=")}
    assert kept == {f"--keep={each}.db" for each in done[-2:]}
    world.rest()


def test_nothing_is_removed_before_the_first_backup_or_after_a_failure(made: Made) -> None:
    world, jobs = made
    world.create(*schedule(**KEEP_TWO))
    world.wait(10.0)
    assert (pruned(world)["status"], pruned(world)["reason"]) == ("Unknown", "NoBackup")
    world.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one(), {"error": "no bucket", "reason": "BucketMissing"}, exit_code=1)
    world.wait(60.0)
    assert prunes(made) == []


def test_a_job_whose_pod_is_gone_has_done_what_it_was_asked(made: Made) -> None:
    world, jobs = made
    jobs.end(stored(made), "Complete")
    world.drain()
    assert pruned(world)["status"] == "True"
    assert "because the pod was deleted" in pruned(world)["message"]
    before = len(world.api.log)
    world.wait(120.0)
    lists = [each for each in world.api.log[before:] if each.request.plural == "pods"]
    assert lists == [], "what is reported is not read again"


def test_an_edit_of_the_retention_takes_effect_at_once(made: Made) -> None:
    world, jobs = made
    jobs.run(stored(made), PRUNED)
    world.drain()
    world.edit(SCHEDULES, "s", {"spec": {"retention": {"maxCount": 7}}})
    world.drain()
    (job,) = prunes(made)
    assert "--max-count=7" in arguments(job)
    jobs.run(job, PRUNED)
    world.drain()
    assert status(world)["lastPrune"]["request"] == f"maxCount 7 after {URL}"
    world.edit(SCHEDULES, "s", {"spec": {"retention": None}})
    world.drain()
    assert prunes(made) == []
    assert [each["type"] for each in status(world)["conditions"]] == ["Ready", "LastBackupSucceeded"]
    world.rest()


@pytest.mark.parametrize("edit", [{"maxCount": 7}, None])
def test_an_edit_stops_a_job_that_removes_what_is_to_be_kept_now(made: Made, edit: Json | None) -> None:
    world, jobs = made
    job = stored(made)
    pod = jobs.start(job)
    world.edit(SCHEDULES, "s", {"spec": {"retention": edit}})
    world.drain()
    assert pruned(world)["reason"] == "Stopping"
    assert [each["metadata"]["uid"] for each in prunes(made)] == [job["metadata"]["uid"]]
    world.delete(PODS, pod, grace=0)
    world.wait(5.0)
    assert job["metadata"]["uid"] not in [each["metadata"]["uid"] for each in prunes(made)]
    assert [("--max-count=7" in arguments(each)) for each in prunes(made)] == [True] * bool(edit)


def test_the_newest_verified_backup_is_kept(made: Made) -> None:
    world, jobs = made
    jobs.run(stored(made), PRUNED)
    world.drain()
    before = "s3://bucket/default/s-20251231-0005.db"
    world.edit(SCHEDULES, "s", {"status": {"lastVerifiedURL": before}}, subresource="status")
    let_run(made, 300.0)
    (job,) = prunes(made)
    kept = [each for each in arguments(job) if each.startswith("--keep")]
    assert kept == ["--keep=s-20251231-0005.db", f"--keep={SECOND}.db", f"--keep={FIRST}.db"]


def test_a_schedule_is_deleted_while_a_job_hangs(made: Made) -> None:
    world, jobs = made
    jobs.start(stored(made))
    world.delete(SCHEDULES, "s")
    assert (world.names(SCHEDULES), world.names(BACKUPS), world.names(JOBS)) == ([], [], [])


def test_a_job_that_was_deleted_is_repeated(made: Made) -> None:
    world, jobs = made
    job = stored(made)
    jobs.start(job)
    world.delete(JOBS, job["metadata"]["name"])
    world.wait(15.0)
    (again,) = prunes(made)
    assert again["metadata"]["uid"] != job["metadata"]["uid"]
    assert arguments(again) == arguments(job)


def test_a_backup_comes_before_what_is_old(made: Made) -> None:
    """Where a volume can be mounted on one node only, they would be in each other's way."""
    world, jobs = made
    jobs.run(stored(made), PRUNED)
    world.run_until(lambda: SECOND in created(world))
    world.drain()
    world.edit(SCHEDULES, "s", {"spec": {"retention": {"maxCount": 7}}})
    world.wait(30.0)
    assert "--max-count=7" not in [each for job in prunes(made) for each in arguments(job)]
    let_run(made, 30.0)
    assert status(world)["lastPrune"]["request"].startswith("maxCount 7 after ")


def test_a_report_that_only_the_api_server_shows_is_read(made: Made) -> None:
    """Without its label the pod is in no cache, like one whose events are late."""
    world, jobs = made
    job = stored(made)
    pod = jobs.start(job)
    world.edit(PODS, pod, {"metadata": {"labels": {UID_LABEL: None}}})
    jobs.report(pod, **ended(PRUNED))
    jobs.end(job, "Complete")
    world.drain()
    assert status(world)["lastPrune"]["removed"] == 2


def test_what_is_to_be_verified_is_verified_before_old_backups_are_removed(made: Made) -> None:
    world, jobs = made
    template = {**schedule()[1]["spec"]["backupTemplate"], "verify": "Hash"}
    world.create(*schedule(**KEEP_TWO, backupTemplate=template))
    world.run_until(lambda: bool(jobs.all()))
    world.drain()
    jobs.run_all()
    world.drain()
    assert "lastSuccessfulURL" in status(world)
    world.wait(20.0)
    assert prunes(made) == [], "the verification has not ended"
    jobs.run_all()
    world.run_until(lambda: bool(prunes(made)))
    assert status(world)["lastVerifiedURL"] == URL
    (job,) = prunes(made)
    assert f"--keep={FIRST}.db" in arguments(job)
