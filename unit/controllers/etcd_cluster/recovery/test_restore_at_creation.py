"""`spec.restore`: a new cluster begins with the newest backup of a cluster, and never without."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.fakes.etcd.launcher import Saved
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives
from unit.passes.expected import assert_finished

ON_VOLUME = {"backupIntervalInSecond": 600, "maxBackups": 3, "volumeSizeInMB": 1024}
IN_S3 = {
    "maxBackups": 3,
    "storageType": "S3",
    "s3": {"s3Bucket": "bucket", "prefix": "etcd", "awsSecret": "aws"},
}
FROM_OLD = {"backupClusterName": "old"}
LOST = ("it dies after the reply", "the reply is lost and it dies", "it is answered with 409")


@contextmanager
def world() -> Iterator[Bench]:
    """An operator, and a backup of a cluster that is gone."""
    with bench() as made:
        made.etcds.backups["newest"] = Saved({b"key": (b"value", 2)}, 5, None)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made.create(CLAIMS, {"metadata": {"name": "old-pvc"}, "spec": spec})
        made.start()
        yield made


@pytest.fixture
def made() -> Iterator[Bench]:
    with world() as made:
        yield made


def members(made: Bench) -> list[str]:
    return [name for name in made.names(PODS) if "backup-tool" not in name]


def fetch_of(made: Bench) -> Json:
    made.run_until(lambda: "c-0000" in members(made))
    steps = made.get(PODS, "c-0000")["spec"]["initContainers"]
    assert [step["name"] for step in steps] == ["fetch", "restore"]
    return dict(steps[0])


def assert_restored(made: Bench, *numbers: int) -> None:
    assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
    status = made.status(COREOS)
    recovery = status["recovery"]
    assert (recovery["replaces"], recovery["authority"], recovery["revision"]) == ("", "Creation", 5)
    assert (recovery["source"]["name"], recovery["source"]["time"]) == ("newest", "2026-01-01T00:00:00Z")
    assert made.condition(COREOS, "DataLossPossible") == {}
    assert members(made) == [f"c-{number:04}" for number in numbers]
    assert "QuorumLost" not in made.event_reasons()


@pytest.mark.parametrize("size", [1, 3])
def test_a_new_cluster_restores_the_backup_of_a_deleted_one_from_its_claim(made: Bench, size: int) -> None:
    made.create(*ephemeral(size=size, restore=FROM_OLD))
    fetch = fetch_of(made)
    assert {"--from=file:///var/etcd-backup/", "--folder=v1/default/old"} <= set(fetch["args"])
    volumes = made.get(PODS, "c-0000")["spec"]["volumes"]
    assert {"name": "backups", "persistentVolumeClaim": {"claimName": "old-pvc"}} in volumes
    made.settle()
    assert_restored(made, *range(size))
    kinds = {event["reason"]: event["type"] for event in made.events()}
    assert (kinds["RestoreStarted"], kinds["Restored"]) == ("Normal", "Normal")
    assert_finished(made, COREOS, size, kept=("old-pvc",))


def test_from_the_bucket_of_spec_backup(made: Bench) -> None:
    made.create(*ephemeral(backup=IN_S3, restore={**FROM_OLD, "storageType": "S3"}))
    fetch = fetch_of(made)
    assert {"--from=s3://bucket/etcd/", "--folder=v1/default/old"} <= set(fetch["args"])
    mounts = {mount["name"]: mount for mount in fetch["volumeMounts"]}
    assert mounts["aws"]["readOnly"] is True
    assert "ETCD_OPERATOR_AWS_FOLDER" in {entry["name"] for entry in fetch["env"]}
    made.run_until(lambda: len(members(made)) == 3)


@pytest.mark.parametrize("restore", [FROM_OLD, {"backupClusterName": "c"}])
def test_with_keys_the_seed_reads_with_them(made: Bench, restore: Json) -> None:
    """From the claim, and through a tool that uses it."""
    made.create(*ephemeral(backup={**ON_VOLUME, "encryption": {"secretName": "keys"}}, restore=restore))
    fetch = fetch_of(made)
    assert "--encryption-keys=/var/run/secrets/etcd-backup/encryption" in fetch["args"]
    volumes = [each for each in made.get(PODS, "c-0000")["spec"]["volumes"] if each["name"] == "encryption"]
    assert volumes == [{"name": "encryption", "secret": {"secretName": "keys", "defaultMode": 0o440}}]
    assert "encryption" in {mount["name"] for mount in fetch["volumeMounts"]}


def test_its_repairs_go_on_when_spec_backup_names_no_bucket_any_more(made: Bench) -> None:
    made.create(*ephemeral(backup=IN_S3, restore={**FROM_OLD, "storageType": "S3"}))
    made.settle()
    made.edit(COREOS, "c", {"spec": {"backup": {"maxBackups": 0}}})
    made.delete(PODS, "c-0001")
    made.world.settle()
    made.settle()
    assert members(made) == ["c-0000", "c-0002", "c-0003"]
    assert made.reason(COREOS) != "InvalidSpec"


def test_under_the_same_name_its_own_tool_serves_the_backup(made: Bench) -> None:
    """It uses the claim: a pod of a member that mounts it would keep it from another node."""
    made.create(*ephemeral(backup=ON_VOLUME, restore={"backupClusterName": "c"}))
    fetch = fetch_of(made)
    assert "--tool=c-backup-tool:19999" in fetch["args"]
    made.run_until(lambda: any("backup-tool" in name for name in made.names(PODS)))
    made.settle()
    assert_restored(made, 0, 1, 2)


def test_a_cluster_that_runs_with_a_tool_serves_its_backup_to_the_new_one(made: Bench) -> None:
    made.create(*ephemeral("old", size=1, backup=ON_VOLUME))
    made.settle((COREOS, "old"))
    made.create(*ephemeral(size=1, restore=FROM_OLD))
    assert "--tool=old-backup-tool:19999" in fetch_of(made)["args"]
    made.settle((COREOS, "c"))


def test_without_a_backup_nothing_is_made_and_that_is_reported(made: Bench) -> None:
    made.etcds.backups.clear()
    made.create(*ephemeral(restore=FROM_OLD))
    made.run_until(lambda: made.reason(COREOS) == "CrashLoopBackOff")
    assert "there is no backup" in made.condition(COREOS, "Degraded")["message"]
    made.wait(120.0)
    assert (members(made), made.etcd_runs()) == (["c-0000"], False)
    assert made.condition(COREOS, "Available")["reason"] == "CrashLoopBackOff"
    made.restart()
    made.wait(60.0)
    assert (members(made), made.etcd_runs()) == (["c-0000"], False)


def test_a_seed_that_is_lost_is_followed_by_another(made: Bench) -> None:
    made.etcds.holds_seeds = "restore"
    made.create(*ephemeral(restore=FROM_OLD))
    fetch_of(made)
    made.delete(PODS, "c-0000")
    made.world.settle()
    made.etcds.holds_seeds = ""
    made.settle()
    assert made.status(COREOS)["recovery"]["generation"] == 2
    assert_restored(made, 1, 2, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_backup_is_restored_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    writes = EachWrite()
    for write in writes:
        with world() as made:
            made.kill()
            made.create(*ephemeral(size=1, restore=FROM_OLD))
            writes.goes_on = survives(made, disturbance, write, lambda: None)
            assert_restored(made, 0)
    assert writes.runs >= 6
