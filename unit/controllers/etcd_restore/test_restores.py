"""EtcdRestores from `kubectl apply` to their end."""

import pytest

from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bodies import BACKUPS, IMPROBABLE, RESTORES, persistent
from unit.passes.jobs import STORED, Jobs, backup
from unit.passes.restoring import PREFIX, SNAPSHOT, TEMPLATE, Restoring, made, restore

__all__ = ["made"]


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
    jobs = made.begun()
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


def test_a_pod_that_was_away_twice_is_not_given_up_for_the_time_while_another_operator_led(
    made: Restoring,
) -> None:
    made.made.create(*restore())
    made.made.run_until(lambda: bool(made.jobs.all()))
    made.made.drain()
    assert made.reason == "PodPending"
    operator = made.made.operator
    assert operator is not None
    operator.epoch += 1
    operator.schedule.advance(1.1 * START_PATIENCE)
    made.made.drain()
    assert made.reason == "PodPending"
    made.made.wait(START_PATIENCE - 1.0)
    assert made.reason == "PodPending"
    made.made.run_until(lambda: made.phase == "Failed")
    assert made.reason == "NotStarted"


def test_a_pod_on_a_lost_node_is_given_up(made: Restoring) -> None:
    jobs = made.begun()
    pods = [made.start(job) for job in jobs]
    made.made.drain()
    made.made.edit(PODS, pods[0], {"metadata": {"finalizers": ["example.com/node"]}})
    made.made.delete(PODS, pods[0])
    made.made.wait(START_PATIENCE + 60.0)
    assert made.reason == "PodPending", "the others run: on a volume for one node it waits for them"
    for job, pod in zip(jobs[1:], pods[1:], strict=True):
        made.finish(job, pod, {"snapshot": SNAPSHOT}, 0)
    made.made.wait(START_PATIENCE - 60.0)
    assert made.reason == "PodPending"
    made.made.run_until(lambda: made.phase == "Failed")
    assert made.reason == "NotStarted"


def test_claims_of_a_restore_that_was_replaced_are_waited_for(made: Restoring) -> None:
    """As by `kubectl replace --force`: Kubernetes has not removed them yet."""
    metadata = {
        "name": "c-0",
        "ownerReferences": [
            {
                "apiVersion": "etcd.improbable.io/v1alpha1",
                "kind": "EtcdRestore",
                "name": "r",
                "uid": "another",
                "controller": True,
            }
        ],
    }
    made.made.create(CLAIMS, {"metadata": metadata, "spec": {}})
    made.made.create(*restore())
    made.made.run_until(lambda: made.reason == "WaitingForDeletion")
    made.made.delete(CLAIMS, "c-0")
    made.until_ended()


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


def test_a_cluster_that_sees_the_mark_of_one_claim_only_finds_all_data(made: Restoring) -> None:
    """Caches of clusters and of claims are not in step: the other annotations may come later."""
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
