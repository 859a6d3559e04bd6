"""EtcdRestores on a real Kubernetes: a cluster and its claims are lost, and come back from a backup."""

import pytest

from e2e.support import stores
from e2e.support.clusters import Document, persistent
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.stores import GCS, S3, Kind
from e2e.support.volumes import claim_folder
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_backups import ON_CLAIM, VERSION, backup, credentials, wait_phase, with_a_key
from etcd_operator.kube import resources

STORAGE = persistent()["spec"]["storage"]
BUMP = 1_000_000_000
SELECTOR = "etcd.improbable.io/cluster-name=my-cluster"


def restore(name: str, source: Document, **template: object) -> Document:
    """An EtcdRestore to my-cluster, by default of three members."""
    spec = {"replicas": 3, "storage": STORAGE, **template}
    return {
        "apiVersion": VERSION,
        "kind": "EtcdRestore",
        "metadata": {"name": name},
        "spec": {"source": source, "clusterTemplate": {"clusterName": "my-cluster", "spec": spec}},
    }


def ended(space: Space, name: str) -> tuple[str, str, str]:
    """Wait for the end of an EtcdRestore: its phase, reason and message."""

    def found() -> tuple[str, str, str] | None:
        status = space.kubectl.json("get", "etcdrestore", name).get("status", {})
        complete = [each for each in status.get("conditions", []) if each["type"] == "Complete"]
        if status.get("phase") not in ("Completed", "Failed"):
            return None
        return status["phase"], complete[0]["reason"], complete[0]["message"]

    def story() -> str:
        return f"{name} ends: {space.kubectl('get', 'etcdrestore,jobs,pods,pvc', '-o', 'yaml')}"

    return wait_until(found, LONG, story, every=0.5) or ("", "", "")


def lose_everything(space: Space) -> None:
    """As the guide asks for: delete the cluster and its claims."""
    space.kubectl("delete", "etcd", "my-cluster")
    space.kubectl("delete", "pvc", "--selector", SELECTOR)


def assert_restored(space: Space, name: str, size: int, *, key: bytes = b"greeting") -> None:
    """Every member serves the data, as one cluster."""
    status = space.kubectl.json("get", "etcdrestore", name)["status"]
    document = persistent(replicas=size)
    space.wait_settled(document)
    assert space.status(document)["clusterID"] == status["clusterID"]
    addresses = space.addresses(document)
    assert len(addresses) == size
    with Members() as members:
        clients = [members.client(address) for address in addresses]
        values = [answered(lambda client=client: client.get(key), "a read") for client in clients]  # type: ignore[misc]
        assert {value.value for value in values if value is not None} == {b"hello"}
        assert None not in values
        reports = [client.status() for client in clients]
        assert len({report.cluster_id for report in reports}) == 1
        assert all(report.revision > BUMP for report in reports)
        assert (
            len({client.hash_kv(status["snapshot"]["revision"] + 1_000_000_000).hash for client in clients})
            == 1
        )
    claims = space.kubectl.json("get", "pvc", "--selector", f"etcd.improbable.io/restored-from={name}")[
        "items"
    ]
    assert sorted(claim["metadata"]["name"] for claim in claims) == [f"my-cluster-{n}" for n in range(size)]


def test_a_lost_cluster_comes_back_from_a_backup_with_three_members(space: Space) -> None:
    with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM))
    wait_phase(space, "one", "Completed")

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
    left = space.kubectl.json("get", "pvc,jobs,pods,etcd")["items"]
    names = {
        (each["kind"], each["metadata"]["name"]) for each in left if "one" not in each["metadata"]["name"]
    }
    assert {name for kind, name in names if kind != "PersistentVolumeClaim"} <= set()
    assert ("PersistentVolumeClaim", "my-cluster-0") not in names

    stored.write_bytes(content)
    space.kubectl.create(restore("back", {"backupName": "one"}))
    space.kubectl(
        "wait", "etcdrestore/back", "--for=condition=Complete", f"--timeout={LONG:.0f}s", deadline=LONG + 30
    )
    assert_restored(space, "back", 3)
    (row,) = [each for each in space.kubectl.table("get", "etcdrestores") if each["NAME"] == "back"]
    assert (row["CLUSTER"], row["PHASE"], row["REASON"]) == ("my-cluster", "Completed", "Restored")


@pytest.mark.long
@pytest.mark.parametrize(("size", "version"), [(1, "3.6.16"), (5, "3.7.3")])
def test_any_size_and_the_next_version_from_a_plain_snapshot(space: Space, size: int, version: str) -> None:
    """What somebody else has put on a volume, without a manifest and without etcd's hash."""
    with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM))
    wait_phase(space, "one", "Completed")
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
    phase, _, message = ended(space, "plain")
    assert phase == "Completed", message
    assert "there is neither a manifest nor etcd's hash" in message
    document = persistent(replicas=size, version=version)
    space.wait_settled(document)
    with Members() as members:
        for address in space.addresses(document):
            found = answered(lambda address=address: members.client(address).get(b"greeting"), "a read")  # type: ignore[misc]
            assert found is not None


@pytest.mark.long
@pytest.mark.unrestricted
@pytest.mark.parametrize("kind", [S3, GCS], ids=lambda kind: kind.name)
def test_the_bucket_of_the_guide(space: Space, kind: Kind) -> None:
    """`spec.source.bucket`, from a real store."""
    store = stores.deploy(space, kind)
    with_a_key(space)
    access = credentials(space, store)
    space.kubectl.create(backup("one", {"objectURLTemplate": store.url("foo.db"), "credentials": access}))
    wait_phase(space, "one", "Completed")
    lose_everything(space)
    url, _, options = store.url("foo.db").partition("?")
    bucket = url.removesuffix("/foo.db") + ("?" + options if options else "")
    source = {"bucket": {"bucketURL": bucket, "objectPath": "foo.db", "credentials": access}}
    space.kubectl.create(restore("e2e-restore", source))
    phase, _, message = ended(space, "e2e-restore")
    assert phase == "Completed", message
    assert_restored(space, "e2e-restore", 3)


@pytest.mark.long
def test_a_restore_that_is_deleted_in_the_middle_leaves_nothing(space: Space) -> None:
    with_a_key(space)
    space.kubectl.create(backup("one", ON_CLAIM))
    wait_phase(space, "one", "Completed")
    lose_everything(space)
    space.kubectl.create(restore("stopped", {"backupName": "one"}))
    wait_until(lambda: len(space.names(resources.CLAIMS, SELECTOR)) == 3, LONG, "the claims exist", every=0.1)
    space.kubectl("delete", "etcdrestore", "stopped")
    wait_until(lambda: not space.names(resources.CLAIMS, SELECTOR), LONG, "the claims are deleted")
    assert space.names(resources.IMPROBABLE_CLUSTERS) == []
