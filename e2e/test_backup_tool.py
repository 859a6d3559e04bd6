"""`spec.backup` of coreos.com on a real Kubernetes: the walkthrough, and "keep the last 3"."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from e2e.support import stores
from e2e.support.backups import back_up_often, token_of
from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral
from e2e.support.keys import KeyClient
from e2e.support.members import Members
from e2e.support.operators import Operator
from e2e.support.ports import free_port
from e2e.support.shell import NAME as SHELL
from e2e.support.shell import etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.stores import DeployedStore
from e2e.support.testbed import ROOT
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_backups import ETCD, TIMEOUT, restorable, verified
from etcd_operator.etcd.channel import Channels
from etcd_operator.kube import resources

EXAMPLE = ROOT / "manifests" / "examples" / "example-etcd-cluster-with-backup.yaml"
NAME = "etcd-cluster-with-backup"
WGET = ("exec", SHELL, "--", "wget", "-q", "-O")


def wait_healthy(space: Space, document: Document) -> Document:
    """Wait for a backup; `status.backup`."""
    space.wait_condition(document, "BackupHealthy")
    found: Document = space.status(document)["backup"]
    return found


@contextmanager
def etcd_on(folder: Path) -> Iterator[str]:
    """An etcd of this machine that serves a data directory; its endpoint."""
    client = f"127.0.0.1:{free_port()}"
    urls = {"listen-client-urls": f"http://{client}", "advertise-client-urls": f"http://{client}"}
    flags = {"data-dir": str(folder), "listen-peer-urls": "http://127.0.0.1:0", "log-level": "error", **urls}
    process = subprocess.Popen([str(ETCD / "etcd"), *(f"--{name}={value}" for name, value in flags.items())])
    try:
        yield client
    finally:
        process.kill()
        process.wait(20)


def restored(file: Path, scratch: Path) -> str:
    """What etcd serves under `foo` after the documented restore of a backup."""
    folder = scratch / "restored.etcd"
    command = [str(ETCD / "etcdutl"), "snapshot", "restore", str(file), "--data-dir", str(folder)]
    subprocess.run([*command, "--bump-revision", "1000000000", "--mark-compacted"], check=True, timeout=LONG)
    with etcd_on(folder) as endpoint, closing(Channels()) as channels:
        client = KeyClient(channels, endpoint)
        wait_until(lambda: client.has_quorum(deadline=1.0), "the restored etcd serves")
        found = answered(lambda: client.get(b"foo"), "the key is read")
        assert found is not None
        return found.value.decode()


@pytest.mark.capability("spec.backup")
@pytest.mark.walkthrough("CoreOS README", "Disaster recovery")
@pytest.mark.walkthrough("CoreOS article", "Create a new etcd cluster with the Operator")
@pytest.mark.unrestricted
def test_the_walkthrough_from_the_example_to_a_restored_backup(space: Space, tmp_path: Path) -> None:
    document = ephemeral(NAME)
    start_shell(space)
    space.kubectl("create", "-f", str(EXAMPLE))
    space.wait_serving(document)
    wait_healthy(space, document)
    (claim,) = space.kubectl.table("get", "pvc")
    shown = {name: claim[name] for name in ("NAME", "STATUS", "CAPACITY")}
    assert shown == {"NAME": f"{NAME}-pvc", "STATUS": "Bound", "CAPACITY": "1Gi"}, claim
    assert "RWO" in claim.values(), claim
    (pod,) = (row for row in space.kubectl.table("get", "pods") if "backup-tool" in row["NAME"])
    assert pod["NAME"].startswith(f"{NAME}-backup-tool-")
    assert (pod["READY"], pod["STATUS"]) == ("1/1", "Running"), pod
    assert_consistent(space, document)

    assert "OK" in etcdctl_in_shell(space, "--endpoints", f"http://{NAME}-0002:2379", "put", "foo", "bar")
    with Members(deadline=LONG) as members:
        written = members.client(space.addresses(document)[0]).status().revision
    back_up_often(space, NAME)
    wait_until(
        lambda: space.status(document)["backup"]["revision"] >= written, "the status has the new backup"
    )
    newest = space.status(document)["backup"]["name"]
    header = f"Authorization: Bearer {token_of(space, NAME)}"
    path = f"/v1/backup?name={newest}"
    fetch = (*WGET, "/tmp/backup.db", "--header", header, f"http://{NAME}-backup-tool:19999{path}")
    answered(lambda: space.kubectl(*fetch), "the backup is fetched")
    in_pod = space.kubectl("exec", SHELL, "--", "sha256sum", "/tmp/backup.db").split()[0]

    address = space.kubectl("get", "service", f"{NAME}-backup-tool", "-o", "jsonpath={.spec.clusterIP}")
    file = tmp_path / "backup.db"
    curl = ["curl", "--fail", "--silent", "--show-error", "--noproxy", "*", "--header", header]
    from_here = f"http://{address}:19999{path}"
    subprocess.run([*curl, "--output", str(file), from_here], check=True, timeout=LONG)
    refused = subprocess.run(
        [*curl[:-2], from_here], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert "401" in refused.stderr
    done = subprocess.run(["sha256sum", str(file)], check=True, capture_output=True, text=True, timeout=LONG)
    assert done.stdout.split()[0] == in_pod
    assert restored(file, tmp_path) == "bar"

    assert_at_rest(space, 20.0)
    everything = space.kubectl("get", "all,pvc,events,etcdclusters.coreos.com", "-o", "yaml")
    logs = space.kubectl("logs", f"replicaset/{NAME}-backup-tool")
    assert token_of(space, NAME) not in everything + logs

    space.kubectl("delete", "-f", str(EXAMPLE))
    wait_until(
        lambda: not [name for name in space.names(resources.PODS) if name != SHELL], "its pods are gone"
    )
    assert space.names(resources.CLAIMS) == [f"{NAME}-pvc"]
    space.kubectl("delete", "pvc", f"{NAME}-pvc", TIMEOUT, deadline=LONG + 30)


def stored(folder: Path) -> list[int]:
    """The revisions of what is stored."""
    names = (path.name for path in folder.glob("*_etcd.backup"))
    return sorted(int(name.split("_")[1], 16) for name in names)


@pytest.mark.walkthrough("CoreOS article", "Backup")
def test_every_two_seconds_the_last_three_are_kept(space: Space, operator: Operator) -> None:
    """Also what an edit and the end of `spec.backup` do, where pods are restricted."""
    backup = {"backupIntervalInSecond": 2, "maxBackups": 3, "volumeSizeInMB": 50}
    document = space.created(ephemeral(size=1, backup=backup))
    name = document["metadata"]["name"]
    wait_healthy(space, document)
    folder = claim_folder(space, f"{name}-pvc") / "v1" / space.namespace / name
    written: list[int] = []
    with Members(deadline=LONG) as members:
        client = members.client(space.addresses(document)[0])
        for turn in range(5):
            written.append(client.put(b"key", str(turn).encode()))
            wait_until(lambda: stored(folder)[-1:] == written[-1:], "the write is backed up", every=0.25)
    wait_until(lambda: stored(folder) == written[-3:], "the last three are kept", every=0.25)
    wait_until(lambda: space.status(document)["backup"]["count"] == 3, "the status counts three")
    metrics = operator.metrics("backup", space.namespace, name)
    assert (metrics["healthy"], metrics["failures_total"] >= 0) == (1, True)
    assert abs(time.time() - metrics["last_success_timestamp_seconds"]) < LONG
    assert metrics["last_size_bytes"] > 0
    for path in folder.glob("*_etcd.backup"):
        verified(str(path))

    resource = f"etcdclusters.coreos.com/{name}"
    space.kubectl("patch", resource, "--type=merge", "-p", '{"spec":{"backup":{"backupIntervalInSecond":3}}}')
    wait_until(
        lambda: "--interval=3" in space.kubectl("get", "pods", "-l", "app=etcd_backup_tool", "-o", "yaml"),
        "the tool runs with the new interval",
        every=0.5,
    )
    assert stored(folder) == written[-3:]
    space.kubectl("patch", resource, "--type=merge", "-p", '{"spec":{"backup":null}}')
    wait_until(
        lambda: not space.api.all_of(resources.PODS, space.namespace, "app=etcd_backup_tool"), "it is gone"
    )
    assert stored(folder) == written[-3:]
    wait_until(lambda: "backup" not in space.status(document), "the status has no backups")


def test_backups_are_deleted_with_a_cluster_that_requests_it(space: Space) -> None:
    backup = {"maxBackups": 1, "volumeSizeInMB": 50, "cleanupBackupsOnClusterDelete": True}
    document = space.created(ephemeral(size=1, backup=backup))
    wait_healthy(space, document)
    name = document["metadata"]["name"]
    space.kubectl("delete", f"etcdclusters.coreos.com/{name}", TIMEOUT, deadline=LONG + 30)
    wait_until(lambda: not space.names(resources.CLAIMS), "the claim is deleted with its backups")


def in_bucket(space: Space) -> tuple[DeployedStore, Document]:
    """A bucket, and a cluster that is backed up there and removes its backups with itself."""
    space.require_local("the images of the stores are made for local clusters only")
    store = stores.deploy(space, stores.S3)
    target = {
        "s3Bucket": stores.BUCKET,
        "prefix": "etcd/main",
        "awsSecret": store.secret,
        "endpoint": store.endpoint,
    }
    backup = {"maxBackups": 2, "storageType": "S3", "s3": target, "cleanupBackupsOnClusterDelete": True}
    return store, space.created(ephemeral(size=1, backup=backup))


def test_backups_in_a_real_bucket_are_restorable_and_deleted_with_the_cluster(space: Space) -> None:
    store, document = in_bucket(space)
    newest = wait_healthy(space, document)
    name = document["metadata"]["name"]
    path = f"etcd/main/v1/{space.namespace}/{name}/{newest['name']}"
    assert store.bucket.names() == [path, f"{path}.manifest.json"]
    assert restorable(store, path)
    assert space.names(resources.CLAIMS) == []
    everything = space.kubectl("get", "all,events,etcdclusters.coreos.com", "-o", "yaml")
    logs = space.kubectl("logs", f"replicaset/{name}-backup-tool")
    assert not [planted for planted in stores.PLANTED if planted in everything + logs]
    space.kubectl("delete", f"etcdclusters.coreos.com/{name}", TIMEOUT, deadline=LONG + 30)
    assert store.bucket.names() == []


@pytest.mark.long
def test_a_bucket_that_is_gone_blocks_no_deletion(space: Space) -> None:
    _, document = in_bucket(space)
    wait_healthy(space, document)
    name = document["metadata"]["name"]
    space.kubectl("delete", "pod", stores.S3.name, "--now")
    space.kubectl("delete", f"etcdclusters.coreos.com/{name}", TIMEOUT, deadline=LONG + 30)
    space.wait_events(name, ("Warning", "CleanupGivenUp"))
