"""EtcdBackups on a real Kubernetes: stored on a volume, proven by a test restore, refused and deleted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.support import stores
from e2e.support.clusters import Document, persistent
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.stores import GCS, PLANTED, S3, DeployedStore, Kind
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, hold_for, wait_until
from etcd_operator.kube import resources
from localcluster import tools
from localcluster.paths import Cache

ETCD = Cache.of_user().tools / f"etcd-{tools.CLUSTER_ETCD}"
VERSION = "etcd.improbable.io/v1alpha1"
CLAIM: Document = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "my-backups"},
    "spec": {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "100Mi"}},
    },
}
ON_CLAIM: Document = {
    "objectURLTemplate": "file:///{{ .Name }}.db",
    "persistentVolumeClaim": {"claimName": "my-backups"},
}
DAMAGED = 3  # exit code
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
TIMEOUT = f"--timeout={LONG:.0f}s"


def backup(name: str, destination: Document, **spec: object) -> Document:
    """An EtcdBackup; by default of my-cluster."""
    source = {"clusterURL": "http://my-cluster:2379"}
    return {
        "apiVersion": VERSION,
        "kind": "EtcdBackup",
        "metadata": {"name": name},
        "spec": {"source": source, "destination": destination, **spec},
    }


def status_of(space: Space, name: str) -> Document:
    status: Document = space.kubectl.json("get", "etcdbackup", name).get("status", {})
    return status


def complete(space: Space, name: str) -> Document:
    """The condition Complete."""
    return condition(space.kubectl.json("get", "etcdbackup", name), "Complete")


def wait_phase(space: Space, name: str, phase: str) -> Document:
    """Wait for a phase; the status."""

    def found() -> Document | None:
        status = status_of(space, name)
        assert status.get("phase") in (None, "BackingUp", phase), status
        return status if status.get("phase") == phase else None

    return wait_until(found, lambda: f"{name} is {phase}: {status_of(space, name)}", every=0.5) or {}


def verify(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `etcd-operator verify` on this machine."""
    command = [sys.executable, "-m", "etcd_operator", "verify", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=LONG)


def verified(*arguments: str, **environment: str) -> str:
    """What it prints, after a success."""
    done = verify(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def restorable(store: DeployedStore, key: str) -> str:
    """What it prints of a backup in a store that was restored on trial."""
    return verified(store.local_url(key), "--restore", f"--etcd-bin={ETCD}", **store.environment)


def damage(file: Path) -> None:
    """Flip one bit in the middle of a file."""
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        (byte,) = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))


def with_a_key(space: Space, size: int = 1) -> Document:
    """A cluster with a key in it, and a claim for backups."""
    document = space.settled(persistent(replicas=size))
    space.put(document, b"greeting", b"hello")
    space.kubectl.create(CLAIM)
    return document


def backed_up(space: Space, size: int = 1, *more: Document) -> Document:
    """Such a cluster, and its backups `one` and `more`."""
    document = with_a_key(space, size)
    space.kubectl.create([backup("one", ON_CLAIM), *more])
    for each in ("one", *(found["metadata"]["name"] for found in more)):
        wait_phase(space, each, "Completed")
    return document


@pytest.mark.capability("EtcdBackup")
@pytest.mark.walkthrough("Improbable guide", "The EtcdBackup resource")
def test_a_backup_is_stored_on_a_volume_and_can_be_read_back(space: Space) -> None:
    document = with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM))
    space.kubectl("wait", "etcdbackup/one", "--for=condition=Complete", TIMEOUT, deadline=LONG + 30)
    status = status_of(space, "one")
    assert (status["phase"], status["url"]) == ("Completed", "file:///one.db")
    assert status["etcdVersion"] == "3.6.16"
    assert int(status["clusterID"], 16) == int(space.status(document)["clusterID"], 16)
    assert status["revision"] >= 2
    folder = claim_folder(space, "my-backups")
    assert (folder / "one.db").stat().st_size == status["size"]
    assert f"revision {status['revision']}," in verified(str(folder / "one.db"))

    (row,) = space.kubectl.table("get", "etcdbackups")
    assert (row["NAME"], row["PHASE"], row["REASON"]) == ("one", "Completed", "Stored"), row
    described = space.kubectl("describe", "etcdbackup", "one")
    assert f"stored file:///one.db: revision {status['revision']}, " in described
    space.wait_events("one", ("Normal", "BackupStarted"), ("Normal", "BackupCompleted"))
    (pod,) = space.api.all_of(resources.PODS, space.namespace, "app.kubernetes.io/name=etcd-backup")
    mounted = [volume["name"] for volume in pod["spec"]["volumes"]]
    assert not [name for name in mounted if name.startswith("kube-api-access")], "it has no token"

    space.kubectl.create(backup("again", {**ON_CLAIM, "objectURLTemplate": "file:///one.db"}))
    wait_phase(space, "again", "Failed")
    assert complete(space, "again")["reason"] == "NameTaken"

    space.kubectl("delete", "etcdbackups", "--all", TIMEOUT, deadline=LONG + 30)
    wait_until(lambda: not space.names(resources.JOBS), "Jobs are deleted with their EtcdBackups")
    assert verified(str(folder / "one.db")), "what is stored is kept"


def test_a_compressed_and_encrypted_backup(space: Space) -> None:
    with_a_key(space)
    space.kubectl("create", "secret", "generic", "keys", f"--from-literal=key-1={KEY}")
    space.kubectl.create(
        backup(
            "sealed",
            {**ON_CLAIM, "objectURLTemplate": "file:///{{ .Namespace }}-{{ .Name }}.backup"},
            source={"clusterName": "my-cluster"},
            compression="zstd",
            encryption={"secretName": "keys"},
        )
    )
    status = wait_phase(space, "sealed", "Completed")
    stored = claim_folder(space, "my-backups") / f"{space.namespace}-sealed.backup"
    assert 0 < stored.stat().st_size < status["size"]
    everything = space.kubectl("get", "etcdbackups,jobs,pods,events", "-o", "yaml")
    logs = space.kubectl("logs", f"job/{status['jobName']}")
    assert KEY not in everything + logs


def test_what_a_backup_waits_for_is_in_its_status_and_deleting_it_never_blocks(space: Space) -> None:
    bucket = {
        "objectURLTemplate": "s3://bucket/{{ .Name }}?region=r&endpoint=http://127.0.0.1:1",
        "credentials": {"environment": {"secretName": "not-made-yet"}},
    }
    space.kubectl.create(backup("waits", bucket))
    wait_until(
        lambda: 'secret "not-made-yet" not found' in complete(space, "waits")["message"],
        lambda: f"the status reports so: {status_of(space, 'waits')}",
    )
    space.kubectl("delete", "etcdbackup", "waits", TIMEOUT, deadline=LONG + 30)
    wait_until(lambda: not space.names(resources.PODS), "its pod is deleted")


def test_a_job_that_was_deleted_is_not_made_again(space: Space) -> None:
    space.kubectl.create(CLAIM)
    space.kubectl.create(backup("one", ON_CLAIM, source={"clusterURL": "http://10.255.255.1:2379"}))
    wait_until(lambda: space.names(resources.JOBS), "the Job exists")
    space.kubectl("delete", "jobs", "--all")
    wait_phase(space, "one", "Failed")
    hold_for(5.0, lambda: not space.names(resources.JOBS), "no other Job is created", every=0.5)


@pytest.mark.unrestricted
@pytest.mark.parametrize("kind", [S3, GCS], ids=lambda kind: kind.name)
def test_a_backup_in_a_real_store_is_proven_by_a_test_restore_and_found_damaged(
    space: Space, kind: Kind
) -> None:
    space.require_local("the images of the stores are made for local clusters only")
    store = stores.deploy(space, kind)
    with_a_key(space)
    url = store.url("{{ .Namespace }}/{{ .Name }}.db")
    space.kubectl.create(backup("one", {"objectURLTemplate": url, "credentials": credentials(space, store)}))
    status = wait_phase(space, "one", "Completed")
    key = f"{space.namespace}/one.db"
    assert (status["url"], store.bucket.names()) == (store.url(key), [key, f"{key}.manifest.json"])

    assert f"revision {status['revision']}," in restorable(store, key)
    everything = space.kubectl("get", "etcdbackups,jobs,pods,events", "-o", "yaml")
    logs = space.kubectl("logs", f"job/{status['jobName']}")
    assert not any(planted in everything + logs for planted in PLANTED)
    damage(store.file(key))
    assert verify(store.local_url(key), **store.environment).returncode == DAMAGED


def credentials(space: Space, store: DeployedStore) -> Document:
    """Of an EtcdBackup that stores in `store`: a file for S3, environment variables for the emulator."""
    if store.kind is S3:
        return {"aws": {"secretKeyRef": {"name": store.secret, "key": "credentials"}}}
    found = [f"--from-literal={name}={value}" for name, value in store.pod_environment.items()]
    space.kubectl("create", "secret", "generic", "emulator", *found)
    return {"environment": {"secretName": "emulator"}}
