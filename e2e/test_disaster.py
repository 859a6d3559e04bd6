"""The documents' disaster recovery: most pods of a cluster with backups are deleted, then all of them."""

import subprocess

import pytest

from e2e.support import stores
from e2e.support.backups import INTERVAL, await_backup, back_up_often
from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral
from e2e.support.load import BUMP, Load
from e2e.support.shell import etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.testbed import ROOT
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, wait_until
from e2e.support.watching import watcher
from e2e.test_backup_tool import wait_healthy
from e2e.test_backups import KEY

EXAMPLE = ROOT / "manifests" / "examples" / "example-etcd-cluster-with-backup.yaml"
NAME = "etcd-cluster-with-backup"

VALUE = b"a value that is stored in encrypted backups only"


def rows(space: Space) -> dict[str, tuple[str, str]]:
    """READY and STATUS of each pod of a member."""
    table = space.kubectl.table("get", "pods")
    return {
        row["NAME"]: (row["READY"], row["STATUS"])
        for row in table
        if row["NAME"].startswith(NAME) and "backup-tool" not in row["NAME"]
    }


def names(*numbers: int) -> list[str]:
    return [f"{NAME}-{number:04}" for number in numbers]


def created(space: Space) -> Document:
    """The example, backed up, with what the document writes."""
    start_shell(space)
    space.kubectl("create", "-f", str(EXAMPLE))
    document = ephemeral(NAME)
    space.wait_serving(document)
    wait_healthy(space, document)
    put = etcdctl_in_shell(space, "--endpoints", f"http://{NAME}-0002:2379", "put", "foo", "bar")
    assert "OK" in put
    return document


def await_seed(space: Space, seed: str) -> None:
    """See the seed as the document shows it: by a watch, because its first step may last a moment only."""
    seen: list[str] = []
    watch = ("get", "pods", "--watch", "--no-headers", f"--request-timeout={LONG:.0f}s")
    command, environment = space.kubectl.command(*watch), space.kubectl.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        try:
            for row in watching.stdout:
                name, _, status, *_ = row.split()
                seen.extend([status] if name == seed else [])
                if seen[-1:] == ["Init:0/2"]:
                    return
        finally:
            watching.terminate()
    raise AssertionError(f"{seed} was never Init:0/2, but {seen}")


def await_members(space: Space, document: Document, *numbers: int) -> None:
    expected = dict.fromkeys(names(*numbers), ("1/1", "Running"))
    wait_until(lambda: rows(space) == expected, lambda: f"{expected}, now {rows(space)}", every=0.5)
    space.wait_settled(document)
    assert_consistent(space, document)
    found = etcdctl_in_shell(space, "--endpoints", f"http://{NAME}:2379", "get", "foo", "--print-value-only")
    assert found.strip() == "bar"


@pytest.mark.capability("restore when all members are lost")
@pytest.mark.unrestricted
def test_all_pods_deleted_together_are_restored_from_the_newest_backup(space: Space) -> None:
    document = created(space)
    before = space.status(document)["clusterID"]
    back_up_often(space, NAME)
    with Load(lambda: space.addresses(document)) as load:
        watching = watcher(space, NAME)
        watching.await_event()
        revision = await_backup(space, NAME, load.newest)
        wait_until(lambda: load.newest > revision, "writes that no backup has")
        space.kubectl("delete", "pod", *names(0, 1, 2), "--now")
        await_seed(space, names(3)[0])
        await_members(space, document, 3, 4, 5)
        wait_until(lambda: load.newest > BUMP, "writes go on")

    status = space.status(document)
    recovery = status["recovery"]
    assert (recovery["source"]["type"], recovery["replaces"]) == ("ToolBackup", before)
    assert recovery["revision"] >= revision
    loss = condition(space.stored(document), "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromBackup")
    assert recovery["source"]["name"] in loss["message"]
    assert recovery["source"]["time"] in loss["message"]
    assert load.judge(space.testbed, space.addresses(document), recovery["revision"]) > 0
    watching.await_compacted()
    warnings = ("QuorumLost", "RecoveryStarted", "Recovered")
    space.wait_events(NAME, *(("Warning", reason) for reason in warnings))
    wait_until(lambda: space.status(document)["backup"]["revision"] > BUMP, "the new cluster is backed up")
    assert_at_rest(space, 10)


@pytest.mark.capability("recover from a survivor")
@pytest.mark.walkthrough("CoreOS README", "Disaster recovery")
@pytest.mark.unrestricted
def test_two_of_three_pods_deleted_as_the_document_does(space: Space) -> None:
    document = created(space)
    space.kubectl("delete", "pod", *names(0, 1), "--now")
    await_seed(space, names(3)[0])
    await_members(space, document, 3, 4, 5)
    loss = condition(space.stored(document), "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromSurvivor")


def test_a_new_cluster_begins_with_the_newest_encrypted_backup_of_a_deleted_one(space: Space) -> None:
    """First under another name from the claim; then under the same name, through its own tool."""
    space.kubectl("create", "secret", "generic", "backup-keys", f"--from-literal=key-1={KEY}")
    keys = {"encryption": {"secretName": "backup-keys"}}
    backup = {"backupIntervalInSecond": 2, "maxBackups": 3, "volumeSizeInMB": 50, **keys}
    old = space.created(ephemeral("old", size=1, backup=backup))
    wait_healthy(space, old)
    revision = space.put(old, b"foo", VALUE)
    wait_until(lambda: space.status(old)["backup"]["revision"] == revision, "the write is backed up")
    stored = claim_folder(space, "old-pvc") / "v1" / space.namespace / "old"
    assert VALUE not in (stored / space.status(old)["backup"]["name"]).read_bytes()
    space.kubectl("delete", "etcdclusters.coreos.com", "old")
    space.wait_no_pods()

    for document in (
        ephemeral("new", size=1, backup={"maxBackups": 0, **keys}, restore={"backupClusterName": "old"}),
        ephemeral("old", size=2, backup=backup, restore={"backupClusterName": "old"}),
    ):
        name = document["metadata"]["name"]
        space.settled(document)
        assert_consistent(space, document)
        assert set(space.values(document, b"foo")) == {VALUE}
        recovery = space.status(document)["recovery"]
        assert (recovery["revision"], recovery["replaces"]) == (revision, "")
        assert recovery["seed"] == f"{name}-0000"
        space.wait_events(name, ("Normal", "RestoreStarted"), ("Normal", "Restored"))
        if name == "new":
            space.kubectl("delete", "etcdclusters.coreos.com", name)
            space.wait_no_pods()
    assert recovery["source"]["type"] == "ToolBackup"


def deleted(space: Space, backup: Document) -> tuple[Load, int]:
    """The cluster `old` is backed up under load and deleted; the load, and the revision of its backup."""
    old = space.created(ephemeral("old", size=1, backup=backup))
    with Load(lambda: space.addresses(old)) as load:
        load.go_on()
        revision = await_backup(space, "old", load.newest)
        wait_until(lambda: load.newest > revision, "writes that no backup has")
    space.kubectl("delete", "etcdclusters.coreos.com", "old")
    return load, revision


@pytest.mark.long
def test_a_new_cluster_begins_with_a_backup_in_a_real_bucket(space: Space) -> None:
    store = stores.deploy(space, stores.S3)
    target = {"s3Bucket": stores.BUCKET, "awsSecret": store.secret, "endpoint": store.endpoint}
    backup = {"backupIntervalInSecond": INTERVAL, "maxBackups": 3, "storageType": "S3", "s3": target}
    load, revision = deleted(space, backup)
    document = space.created(
        ephemeral("new", backup=backup, restore={"backupClusterName": "old", "storageType": "S3"})
    )
    space.wait_settled(document)
    restored = space.status(document)["recovery"]["revision"]
    assert restored >= revision
    assert_consistent(space, document)
    assert load.judge(space.testbed, space.addresses(document), restored) > 0
    everything = space.kubectl("get", "all,events,etcdclusters.coreos.com", "-o", "yaml")
    assert not [planted for planted in stores.PLANTED if planted in everything]
