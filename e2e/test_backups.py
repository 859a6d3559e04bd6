"""EtcdBackups on a real Kubernetes: stored on a volume, proven by a test restore, refused and deleted."""

import os
import subprocess
import sys

import pytest

from e2e.support import stores
from e2e.support.clusters import Document, persistent
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.stores import GCS, PLANTED, S3, DeployedStore, Kind
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, answered, hold_for, wait_until
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


def reason_of(space: Space, name: str) -> tuple[str, str]:
    """Reason and message of the condition Complete."""
    conditions = status_of(space, name).get("conditions", [])
    return next(((c["reason"], c["message"]) for c in conditions if c["type"] == "Complete"), ("", ""))


def wait_phase(space: Space, name: str, phase: str) -> Document:
    """Wait for a phase; the status."""

    def found() -> Document | None:
        status = status_of(space, name)
        assert status.get("phase") in (None, "BackingUp", phase), status
        return status if status.get("phase") == phase else None

    return wait_until(found, LONG, lambda: f"{name} is {phase}: {status_of(space, name)}", every=0.5) or {}


def verified(*arguments: str, **environment: str) -> str:
    """What `etcd-operator verify` prints, after a success."""
    command = [sys.executable, "-m", "etcd_operator", "verify", *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_a_key(space: Space) -> str:
    """A cluster with a key in it, and a claim for backups; etcd's ID of the cluster."""
    document = space.created(persistent(replicas=1))
    space.wait_settled(document)
    with Members() as members:
        client = members.client(space.addresses(document)[0])
        answered(lambda: client.put(b"greeting", b"hello"), "a key is written")
    space.kubectl.create(CLAIM)
    return str(space.status(document)["clusterID"])


@pytest.mark.capability("EtcdBackup")
@pytest.mark.walkthrough("Improbable guide", "The EtcdBackup resource")
def test_a_backup_is_stored_on_a_volume_and_can_be_read_back(space: Space) -> None:
    cluster_id = with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM))
    space.kubectl("wait", "etcdbackup/one", "--for=condition=Complete", TIMEOUT, deadline=LONG + 30)
    status = status_of(space, "one")
    assert (status["phase"], status["url"], status["etcdVersion"]) == (
        "Completed",
        "file:///one.db",
        "3.6.16",
    )
    assert int(status["clusterID"], 16) == int(cluster_id, 16)
    assert status["revision"] >= 2
    folder = claim_folder(space, "my-backups")
    assert (folder / "one.db").stat().st_size == status["size"]
    assert f"revision {status['revision']}," in verified(str(folder / "one.db"))

    (row,) = space.kubectl.table("get", "etcdbackups")
    assert (row["NAME"], row["PHASE"], row["REASON"]) == ("one", "Completed", "Stored"), row
    described = space.kubectl("describe", "etcdbackup", "one")
    assert f"stored file:///one.db: revision {status['revision']}, " in described
    wait_until(
        lambda: {("Normal", "BackupStarted"), ("Normal", "BackupCompleted")} <= space.events("one"),
        LONG,
        "Events report it",
    )
    (pod,) = space.api.all_of(resources.PODS, space.namespace, "app.kubernetes.io/name=etcd-backup")
    mounted = [volume["name"] for volume in pod["spec"]["volumes"]]
    assert not [name for name in mounted if name.startswith("kube-api-access")], "it has no token"

    space.kubectl.create(backup("again", {**ON_CLAIM, "objectURLTemplate": "file:///one.db"}))
    wait_phase(space, "again", "Failed")
    assert reason_of(space, "again")[0] == "NameTaken"

    space.kubectl("delete", "etcdbackups", "--all", TIMEOUT, deadline=LONG + 30)
    wait_until(lambda: not space.names(resources.JOBS), LONG, "Jobs are deleted with their EtcdBackups")
    assert verified(str(folder / "one.db")), "what is stored is kept"


def test_a_compressed_and_encrypted_backup(space: Space) -> None:
    with_a_key(space)
    key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    space.kubectl("create", "secret", "generic", "keys", f"--from-literal=key-1={key}")
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
    assert key not in everything + logs


def test_what_a_backup_waits_for_is_in_its_status_and_deleting_it_never_blocks(space: Space) -> None:
    bucket = {
        "objectURLTemplate": "s3://bucket/{{ .Name }}?region=r&endpoint=http://127.0.0.1:1",
        "credentials": {"environment": {"secretName": "not-made-yet"}},
    }
    space.kubectl.create(backup("waits", bucket))
    wait_until(
        lambda: 'secret "not-made-yet" not found' in reason_of(space, "waits")[1],
        LONG,
        lambda: f"the status reports so: {status_of(space, 'waits')}",
    )
    space.kubectl("delete", "etcdbackup", "waits", TIMEOUT, deadline=LONG + 30)
    wait_until(lambda: not space.names(resources.PODS), LONG, "its pod is deleted")


def test_a_job_that_was_deleted_is_not_made_again(space: Space) -> None:
    space.kubectl.create(CLAIM)
    space.kubectl.create(backup("one", ON_CLAIM, source={"clusterURL": "http://10.255.255.1:2379"}))
    wait_until(lambda: space.names(resources.JOBS), LONG, "the Job exists")
    space.kubectl("delete", "jobs", "--all")
    wait_phase(space, "one", "Failed")
    hold_for(5.0, lambda: not space.names(resources.JOBS), "no other Job is created", every=0.5)


@pytest.mark.unrestricted
@pytest.mark.parametrize("kind", [S3, GCS], ids=lambda kind: kind.name)
def test_a_backup_in_a_real_store_is_proven_by_a_test_restore(space: Space, kind: Kind) -> None:
    space.require_local("the images of the stores are made for local clusters only")
    store = stores.deploy(space, kind)
    with_a_key(space)
    url = store.url("{{ .Namespace }}/{{ .Name }}.db")
    space.kubectl.create(backup("one", {"objectURLTemplate": url, "credentials": credentials(space, store)}))
    status = wait_phase(space, "one", "Completed")
    key = f"{space.namespace}/one.db"
    assert (status["url"], store.bucket.names()) == (store.url(key), [key, f"{key}.manifest.json"])

    report = verified(store.local_url(key), "--restore", f"--etcd-bin={ETCD}", **store.environment)
    assert f"revision {status['revision']}," in report
    everything = space.kubectl("get", "etcdbackups,jobs,pods,events", "-o", "yaml")
    logs = space.kubectl("logs", f"job/{status['jobName']}")
    assert not any(planted in everything + logs for planted in PLANTED)


def credentials(space: Space, store: DeployedStore) -> Document:
    """Of an EtcdBackup that stores in `store`: a file for S3, environment variables for the emulator."""
    if store.kind is S3:
        return {"aws": {"secretKeyRef": {"name": store.secret, "key": "credentials"}}}
    found = [f"--from-literal={name}={value}" for name, value in store.pod_environment.items()]
    space.kubectl("create", "secret", "generic", "emulator", *found)
    return {"environment": {"secretName": "emulator"}}
