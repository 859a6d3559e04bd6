"""EtcdRestores from `kubectl apply` to their end."""

from collections.abc import Iterator

import pytest

from etcd_operator.core.restores.result import Progress
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, JOBS, PODS
from unit.reconcile.bench import bench
from unit.reconcile.bodies import BACKUPS, IMPROBABLE, RESTORES, persistent
from unit.reconcile.jobs import STORED, Jobs, backup
from unit.reconcile.restoring import PREFIX, SNAPSHOT, TEMPLATE, Restoring, restore


@pytest.fixture
def made() -> Iterator[Restoring]:
    with bench() as world:
        world.start()
        yield Restoring(world)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_backup_becomes_a_cluster_of_any_size(made: Restoring, size: int) -> None:
    made.made.create(*restore(template={**TEMPLATE, "replicas": size}))
    made.until_ended()
    names = [f"c-{ordinal}" for ordinal in range(size)]
    assert made.claims == names
    uid = made.made.get(RESTORES, "r")["metadata"]["uid"]
    recorded = [made.annotations(name) for name in names]
    assert {each[f"{PREFIX}/cluster-token"] for each in recorded} == {uid}
    (cluster_id,) = {each[f"{PREFIX}/cluster-id"] for each in recorded}
    assert cluster_id == made.status["clusterID"]
    (voters,) = {each[f"{PREFIX}/voters"] for each in recorded}
    ids = dict(voter.split("=") for voter in voters.split(","))
    assert list(ids) == names
    assert [each[f"{PREFIX}/member-id"] for each in recorded] == list(ids.values())
    assert {each[f"{PREFIX}/version"] for each in recorded} == {"3.6.16"}
    for name in names:
        metadata = made.made.get(CLAIMS, name)["metadata"]
        assert metadata["labels"][f"{PREFIX}/restored-from"] == "r"
        assert not metadata.get("ownerReferences"), "it outlives the EtcdRestore"
    cluster = made.made.get(IMPROBABLE, "c")
    assert cluster["spec"] == {**TEMPLATE, "replicas": size, "version": "3.6.16"}
    assert "ownerReferences" not in cluster["metadata"]
    assert made.status["snapshot"] == SNAPSHOT
    assert {member["phase"] for member in made.status["members"]} == {"Restored"}
    assert {"RestoreStarted", "RestoreCompleted"} <= set(made.made.event_reasons())


def test_nothing_is_made_before_the_backup_is_verified(made: Restoring) -> None:
    made.made.create(*restore())
    made.made.run_until(lambda: bool(made.jobs.all()))
    made.made.drain()
    assert (made.claims, made.clusters, made.phase) == ([], [], "Pending")
    (job,) = made.jobs.all()
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][:3] == [
        "restore", "s3://bucket/one.db", "--check"
    ]  # fmt: skip


def test_no_cluster_exists_before_all_members_are_restored(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-0")) == 1)
    made.made.drain()
    jobs = [job for part in ("r-0", "r-1", "r-2") for job in made.named(part)]
    assert len(jobs) == 3, "in parallel"
    for job in jobs[:2]:
        made.finish(job, made.start(job), {"snapshot": SNAPSHOT}, 0)
    made.start(jobs[2])
    made.made.drain()
    assert made.clusters == []
    assert [member["phase"] for member in made.status["members"]] == ["Restored", "Restored", "Restoring"]
    assert f"{PREFIX}/cluster-id" not in made.annotations("c-0")


def test_a_cluster_that_somebody_creates_meanwhile_does_not_start_on_half_of_the_data(
    made: Restoring,
) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.claims) == 3)
    made.made.drain()
    made.made.create(*persistent())
    made.until_ended("Failed")
    assert made.reason == "ClusterExists"
    made.made.settle((IMPROBABLE, "c"))
    uid = made.made.get(RESTORES, "r")["metadata"]["uid"]
    tokens = {made.annotations(name)[f"{PREFIX}/cluster-token"] for name in made.claims}
    assert uid not in tokens, "these are claims of its own"


@pytest.mark.parametrize("turns", range(0, 60, 6))
def test_deleting_a_restore_leaves_nothing_or_all(made: Restoring, turns: int) -> None:
    made.made.create(*restore())
    for _ in range(turns):
        if not made.made.turn():
            made.run_all()
    made.made.delete(RESTORES, "r")
    made.made.wait(30.0)
    assert made.jobs.all() == []
    if made.claims:
        assert made.claims == ["c-0", "c-1", "c-2"]
        assert all(f"{PREFIX}/cluster-id" in made.annotations(name) for name in made.claims)
    else:
        assert made.clusters == []


def test_a_claim_that_somebody_deletes_fails_the_restore(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-2")) == 1 or len(made.claims) == 3)
    made.made.run_until(lambda: len(made.jobs.all()) == 4)
    made.made.delete(CLAIMS, "c-1")
    made.until_ended("Failed")
    assert made.reason == "ClaimDeleted"
    made.assert_nothing_left()


def test_a_job_that_somebody_deletes_is_made_again(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.claims) == 3)
    made.made.run_until(lambda: len(made.jobs.all()) == 4)
    (job,) = made.named("r-1-")
    made.made.delete(JOBS, job["metadata"]["name"])
    made.until_ended()


def test_a_pod_that_does_not_start_is_explained_and_given_up(made: Restoring) -> None:
    made.made.create(*restore())
    made.made.run_until(lambda: bool(made.jobs.all()))
    (job,) = made.jobs.all()
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "s3" not found'}
    made.jobs.start(
        job, phase="Pending", containerStatuses=[{"name": "verify", "state": {"waiting": waiting}}]
    )
    made.made.drain()
    assert made.reason == "PodPending"
    assert 'secret "s3" not found' in made.message
    made.made.run_until(lambda: made.phase == "Failed")
    assert made.reason == "NotStarted"
    assert 'for 10 minutes: CreateContainerConfigError: secret "s3" not found' in made.message


def test_a_pod_on_a_lost_node_is_given_up(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-0-")) == 1)
    made.made.drain()
    pods = [made.start(job) for part in ("r-0-", "r-1-", "r-2-") for job in made.named(part)]
    made.made.drain()
    made.made.edit(PODS, pods[0], {"metadata": {"finalizers": ["example.com/node"]}})
    made.made.delete(PODS, pods[0])
    made.made.run_until(lambda: made.phase == "Failed")
    assert made.reason == "NotStarted"


def test_from_an_etcdbackup_with_its_access(made: Restoring) -> None:
    world = made.made
    made.made.create(*restore(source={"backupName": "one"}))
    world.run_until(lambda: made.reason == "UnknownBackup")
    key = {"secretName": "keys"}
    claim = {"persistentVolumeClaim": {"claimName": "backups"}, "objectURLTemplate": "file:///{{ .Name }}.db"}
    world.create(*backup(destination=claim, encryption=key))
    world.run_until(lambda: made.reason == "BackupNotReady")
    world.wait(120.0)
    assert made.phase == "Pending"
    jobs = Jobs(world)
    jobs.run(jobs.one(), STORED)
    world.run_until(lambda: bool(made.named("r-verify")))
    (job,) = made.named("r-verify")
    spec = job["spec"]["template"]["spec"]
    assert spec["containers"][0]["args"][1:4] == [
        "file:///backups/one.db", "--check", "--encryption-keys=/var/run/secrets/etcd-backup/encryption"
    ]  # fmt: skip
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts["/backups"]["readOnly"]
    made.until_ended()
    assert made.status["url"] == "file:///one.db"


def test_an_etcdbackup_that_does_not_come_or_failed(made: Restoring) -> None:
    made.made.create(*restore(source={"backupName": "one"}))
    made.made.wait(70.0)
    assert (made.phase, made.reason) == ("Failed", "UnknownBackup")
    made.made.create(*backup("two"))
    jobs = Jobs(made.made)
    made.made.run_until(lambda: bool(jobs.all()))
    jobs.run(jobs.one(), {"error": "no bucket", "reason": "BucketMissing"}, exit_code=1)
    made.made.run_until(lambda: made.made.status(BACKUPS, "two")["phase"] == "Failed")
    made.made.create(*restore("again", source={"backupName": "two"}))
    made.made.run_until(lambda: made.made.status(RESTORES, "again").get("phase") == "Failed")
    assert made.made.condition(RESTORES, "Complete", "again")["reason"] == "BackupFailed"


def test_an_invalid_spec_is_refused(made: Restoring) -> None:
    made.made.create(*restore(source={"objectURL": "ftp://host/one.db"}))
    made.until_ended("Failed")
    assert (made.reason, made.jobs.all()) == ("InvalidSpec", [])
    assert "must start with s3://, gs:// or file://" in made.message
    kind, body = restore("wrong")
    made.made.create(kind, {**body, "spec": {**body["spec"], "clusterTemplate": 7}})
    made.made.run_until(lambda: made.made.status(RESTORES, "wrong").get("phase") == "Failed")


def test_a_cluster_of_somebody_else_at_the_last_moment(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: made.reason == "CreatingCluster" or bool(made.clusters))
    if made.clusters:
        made.made.delete(IMPROBABLE, "c")
    made.made.create(*persistent())
    made.until(lambda: made.phase in ("Completed", "Failed"))
    assert made.claims == ["c-0", "c-1", "c-2"], "restored data is kept"


def test_a_cluster_that_sees_the_mark_of_one_claim_only_finds_all_data(made: Restoring) -> None:
    """Caches of clusters and of claims are not in step: the other marks may come later."""
    made.made.create(*restore())
    made.until(lambda: len(made.claims) == 3)
    recorded = [made.annotations(name) for name in made.claims]
    assert {each[f"{PREFIX}/restored"] for each in recorded} == {"true"}
    assert {each[f"{PREFIX}/version"] for each in recorded} == {"3.6.16"}
    assert not [each for each in recorded if f"{PREFIX}/cluster-id" in each]


def test_a_pod_that_was_killed_and_is_not_started_again_is_given_up(made: Restoring) -> None:
    made.made.create(*restore())
    made.made.run_until(lambda: bool(made.jobs.all()))
    (job,) = made.jobs.all()
    killed = {"exitCode": 137, "reason": "OOMKilled", "message": ""}
    statuses = [{"name": "verify", "state": {"terminated": killed}}]
    made.jobs.report(made.start(job), phase="Failed", containerStatuses=statuses)
    made.made.run_until(lambda: made.phase == "Failed")
    assert made.reason == "NotStarted"


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
    made.made.create(*restore(template={**TEMPLATE, "replicas": 1}))
    made.until(lambda: len(made.named("r-0-")) == 1)
    (job,) = made.named("r-0-")
    made.end_container(job, made.start(job), document, exit_code)
    made.made.drain()
    assert (made.phase, made.clusters) == ("Pending", [])
    assert f"{PREFIX}/cluster-id" not in made.annotations("c-0")


def test_the_data_in_a_claim_is_that_of_the_job_that_restored_to_it(made: Restoring) -> None:
    """A claim that somebody deleted and created again is empty, whatever its Job reported."""
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-2-")) == 1)
    made.made.drain()
    jobs = [job for part in ("r-0-", "r-1-", "r-2-") for job in made.named(part)]
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


def test_the_status_shows_how_far_each_member_is(made: Restoring) -> None:
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-0-")) == 1)
    made.made.drain()
    tools, size = made.made.tools, 20512
    tools.progress = Progress(step="fetching", bytes=size // 2, total_bytes=size)
    for part in ("r-0-", "r-1-"):
        (job,) = made.named(part)
        made.start(job)
    made.made.run_until(lambda: made.status["progress"] == "40%")
    half, half_too, none = made.status["members"]
    assert half == {
        "name": "c-0", "phase": "Restoring", "fetchedBytes": size // 2, "totalBytes": size
    }  # fmt: skip
    assert half_too["fetchedBytes"] == size // 2
    assert none == {"name": "c-2", "phase": "Pending", "totalBytes": size}
    assert {port for (_, port), _ in tools.asked} == {19998}
    writes = len(made.made.writes())
    made.made.wait(60.0)
    assert len(made.made.writes()) == writes, "nothing is written while nothing moves"
    made.made.delete(RESTORES, "r")
    made.made.wait(5.0)
    asked = len(tools.asked)
    made.made.wait(60.0)
    assert len(tools.asked) == asked, "nobody is asked after the end"


def test_pods_that_do_not_answer_restore_all_the_same(made: Restoring) -> None:
    """A network policy may keep the operator from them."""
    made.made.create(*restore())
    made.until(lambda: len(made.named("r-0-")) == 1)
    made.made.drain()
    jobs = [job for part in ("r-0-", "r-1-", "r-2-") for job in made.named(part)]
    pods = [made.start(job) for job in jobs]
    made.made.wait(10.0)
    assert made.made.tools.asked
    assert made.status["progress"] == "30%"
    for job, pod in zip(jobs, pods, strict=True):
        made.finish(job, pod, {"snapshot": SNAPSHOT}, 0)
    made.until_ended()
    assert made.status["progress"] == "100%"


@pytest.mark.parametrize("reason", ["CreatingClaims", "Restoring", "Marking", "CreatingCluster"])
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
