"""EtcdRestores on a real Kubernetes: a cluster and its claims are lost, and come back from a backup."""

import pytest
import yaml

from e2e.support import stores
from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, persistent
from e2e.support.load import BUMP, Load
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.stores import GCS, S3, Kind
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, wait_until
from e2e.support.watching import watcher
from e2e.test_backups import ON_CLAIM, VERSION, backed_up, backup, credentials, wait_phase, with_a_key
from etcd_operator.kube import resources

STORAGE = persistent()["spec"]["storage"]
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"


def restore(name: str, source: Document, cluster: str = "my-cluster", **template: object) -> Document:
    """An EtcdRestore, by default to my-cluster with three members."""
    spec = {"replicas": 3, "storage": STORAGE, **template}
    return {
        "apiVersion": VERSION,
        "kind": "EtcdRestore",
        "metadata": {"name": name},
        "spec": {"source": source, "clusterTemplate": {"clusterName": cluster, "spec": spec}},
    }


def ended(space: Space, name: str) -> tuple[str, str, str]:
    """Wait for the end of an EtcdRestore: its phase, reason and message."""

    def found() -> tuple[str, str, str] | None:
        stored = space.kubectl.json("get", "etcdrestore", name)
        phase, complete = stored.get("status", {}).get("phase"), condition(stored, "Complete")
        return (phase, complete["reason"], complete["message"]) if phase in ("Completed", "Failed") else None

    def story() -> str:
        return f"{name} ends: {space.kubectl('get', 'etcdrestore,jobs,pods,pvc', '-o', 'yaml')}"

    return wait_until(found, story, every=0.5)


def lose_everything(space: Space) -> None:
    """As the guide asks for: delete the cluster and its claims."""
    space.kubectl("delete", "etcd", "my-cluster")
    space.kubectl("delete", "pvc", "--selector", SELECTOR)


def completed(space: Space, name: str) -> str:
    """Wait for the end of an EtcdRestore, which succeeds; its message."""
    phase, _, message = ended(space, name)
    assert phase == "Completed", message
    return message


def assert_restored(space: Space, name: str, size: int, cluster: str = "my-cluster") -> Document:
    """Every member serves the data, as one cluster, above all revisions of before; the cluster."""
    status = space.kubectl.json("get", "etcdrestore", name)["status"]
    document = persistent(cluster, replicas=size)
    space.wait_settled(document)
    assert assert_consistent(space, document) == f"{int(status['clusterID'], 16):x}"
    assert set(space.values(document, b"greeting")) == {b"hello"}
    with Members() as members:
        revisions = [each.status.revision for each in members.reports(space.pods(document))]
    assert len(revisions) == size
    assert min(revisions) >= status["snapshot"]["revision"] + BUMP
    claims = space.names(resources.CLAIMS, f"etcd.improbable.io/restored-from={name}")
    assert claims == [f"{cluster}-{n}" for n in range(size)]
    return document


SIZES = {"back": ("my-cluster", 3), "to-one": ("single", 1), "to-five": ("large", 5)}


def test_a_lost_cluster_comes_back_from_a_backup_with_one_three_and_five_members(space: Space) -> None:
    """The backup is taken while a client writes; what it does not have is exactly what was written later."""
    with_a_key(space)
    with Load(lambda: space.addresses(persistent(replicas=1))) as load:
        watching = watcher(space, "my-cluster")
        watching.await_event()
        space.kubectl.create(backup("one", ON_CLAIM))
        taken = wait_phase(space, "one", "Completed")["revision"]
        wait_until(lambda: load.newest > taken + 10, "writes that the backup does not have")
        space.kubectl.create(restore("too-early", {"backupName": "one"}))
        phase, reason, _ = ended(space, "too-early")
        assert (phase, reason) == ("Failed", "ClusterExists"), "nothing that exists is touched"

    lose_everything(space)
    stored = claim_folder(space, "my-backups") / "one.db"
    content = stored.read_bytes()
    stored.write_bytes(content[:-100] + bytes(100))
    space.kubectl.create(restore("damaged", {"backupName": "one"}))
    phase, reason, message = ended(space, "damaged")
    assert (phase, reason) == ("Failed", "BackupDamaged"), message
    assert_nothing_left(space, "watcher")
    assert space.operator.metrics("restore", space.namespace, "damaged") == {"phase": 1}

    stored.write_bytes(content)
    for name, (cluster, size) in SIZES.items():
        space.kubectl.create(restore(name, {"backupName": "one"}, cluster, replicas=size))
    complete = ("--for=condition=Complete", f"--timeout={LONG:.0f}s")
    space.kubectl("wait", *(f"etcdrestore/{name}" for name in SIZES), *complete, deadline=LONG + 30)
    for name, (cluster, size) in SIZES.items():
        document = assert_restored(space, name, size, cluster)
        revision = space.kubectl.json("get", "etcdrestore", name)["status"]["snapshot"]["revision"]
        assert revision == taken
        assert load.judge(space.testbed, space.addresses(document), revision) > 10
    watching.await_compacted()
    (row,) = [each for each in space.kubectl.table("get", "etcdrestores") if each["NAME"] == "back"]
    assert (row["CLUSTER"], row["PHASE"], row["REASON"]) == ("my-cluster", "Completed", "Restored")
    assert row["PROGRESS"] == "100%"


def assert_nothing_left(space: Space, *others: str) -> None:
    """Of a restore that failed: no object of the cluster, no Job and no pod but those of backups.

    All is being deleted when the restore has ended, and remains until its pods have ended.
    """
    assert space.names(resources.IMPROBABLE_CLUSTERS) == []
    wait_until(lambda: _left(space, others) == ["my-backups"], lambda: f"left: {_left(space, others)}")


def _left(space: Space, others: tuple[str, ...]) -> list[str]:
    made = [*space.names(resources.JOBS), *space.names(resources.PODS)]
    return [*space.names(resources.CLAIMS), *(name for name in made if not name.startswith(("one", *others)))]


@pytest.mark.long
@pytest.mark.parametrize(("size", "version"), [(1, "3.6.16"), (5, "3.7.3")])
def test_any_size_and_the_next_version_from_a_plain_snapshot(space: Space, size: int, version: str) -> None:
    """What somebody else has put on a volume, without a manifest and without etcd's hash."""
    backed_up(space)
    lose_everything(space)
    folder = claim_folder(space, "my-backups")
    (folder / "plain.db").write_bytes((folder / "one.db").read_bytes()[:-32])
    (folder / "plain.db").chmod(0o644)
    source = {"objectURL": "file:///plain.db", "persistentVolumeClaim": {"claimName": "my-backups"}}
    space.kubectl.create(restore("unknown-version", source))
    phase, reason, message = ended(space, "unknown-version")
    assert (phase, reason) == ("Failed", "VersionNotPossible")
    assert "set spec.clusterTemplate.spec.version to one of 3.6 or 3.7" in message
    space.kubectl.create(restore("plain", source, replicas=size, version=version))
    assert "there is neither a manifest nor etcd's hash" in completed(space, "plain")
    document = persistent(replicas=size, version=version)
    space.wait_settled(document)
    assert set(space.values(document, b"greeting")) == {b"hello"}


GUIDE = """
apiVersion: etcd.improbable.io/v1alpha1
kind: EtcdRestore
metadata:
  name: e2e-restore
spec:
  source:
    bucket:
      bucketURL: gs://etcd-backup-test
      objectPath: foo.db
      credentials:
        googleCloud:
          secretKeyRef:
            name: backup-gcs-cred
            key: gcp.json
            optional: false
  clusterTemplate:
    clusterName: e2e-backup-cluster
    spec:
      replicas: 3
      storage:
        volumeClaimTemplate:
          storageClassName: standard
          resources:
            requests:
              storage: 100Mi
"""


@pytest.mark.parametrize(
    "kind",
    [
        S3,
        pytest.param(
            GCS,
            marks=[
                pytest.mark.capability("EtcdRestore"),
                pytest.mark.walkthrough("Improbable guide", "Restore from a Backup"),
            ],
        ),
    ],
    ids=lambda kind: kind.name,
)
def test_the_bucket_of_the_guide(space: Space, kind: Kind) -> None:
    """Its document as it is for Google, beside the address of the emulator; for Amazon with that URL."""
    store = stores.deploy(space, kind)
    store.bucket_named("etcd-backup-test").create()
    with_a_key(space)
    url = store.url("foo.db").replace(f"://{stores.BUCKET}/", "://etcd-backup-test/")
    space.kubectl.create(backup("one", {"objectURLTemplate": url, "credentials": credentials(space, store)}))
    wait_phase(space, "one", "Completed")
    document = yaml.safe_load(GUIDE)
    found = document["spec"]["source"]["bucket"]
    if kind is S3:
        found["bucketURL"] = url.replace("/foo.db", "")
        found["credentials"] = {"aws": {"secretKeyRef": {"name": store.secret, "key": "credentials"}}}
    else:
        file = f"--from-literal=gcp.json={kind.secret['credentials.json']}"
        space.kubectl("create", "secret", "generic", "backup-gcs-cred", file)
        found["credentials"]["environment"] = {"secretName": "emulator"}
    space.kubectl.create(document)
    completed(space, "e2e-restore")
    assert_restored(space, "e2e-restore", 3, "e2e-backup-cluster")


@pytest.mark.long
def test_a_restore_that_is_deleted_in_the_middle_leaves_nothing(space: Space) -> None:
    backed_up(space)
    lose_everything(space)
    space.kubectl.create(restore("stopped", {"backupName": "one"}))
    wait_until(lambda: len(space.names(resources.CLAIMS, SELECTOR)) == 3, "the claims exist", every=0.1)
    space.kubectl("delete", "etcdrestore", "stopped")
    wait_until(lambda: not space.names(resources.CLAIMS, SELECTOR), "the claims are deleted")
    assert space.names(resources.IMPROBABLE_CLUSTERS) == []
