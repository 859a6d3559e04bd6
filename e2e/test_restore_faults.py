"""Restores that must fail clearly and leave nothing, and restores that must go on whatever is killed."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.support.clusters import Document, persistent
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.testbed import TestbedError
from e2e.support.volumes import claim_folder
from e2e.support.waiting import wait_until
from e2e.test_backups import CLAIM, KEY, ON_CLAIM, backed_up, backup, damage, wait_phase
from e2e.test_restores import (
    SELECTOR,
    assert_nothing_left,
    assert_restored,
    completed,
    ended,
    lose_everything,
    restore,
)
from etcd_operator.kube import resources
from localcluster.mounts import HOLDER
from localcluster.processes import read_record

pytestmark = pytest.mark.long

MANIFEST = ".manifest.json"
OTHER_KEY = KEY[::-1].lstrip("=") + "="

Damage = Callable[[Path], None]


def lost(space: Space, *more: Document) -> Path:
    """A cluster with a key is backed up as `one` and `more`, and lost; the folder of its backups."""
    backed_up(space, 1, *more)
    lose_everything(space)
    return claim_folder(space, "my-backups")


def copied(folder: Path, name: str, change: Damage) -> None:
    """A copy of the backup `one` with a fault."""
    for end in ("", MANIFEST):
        source, target = folder / f"one.db{end}", folder / f"{name}.db{end}"
        shutil.copy(source, target)
        os.chown(target, source.stat().st_uid, source.stat().st_gid)
    change(folder / f"{name}.db")


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4096])


def declare_another_format(file: Path) -> None:
    manifest = file.with_name(file.name + MANIFEST)
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "formatVersion": 99}))


def url(name: str) -> Document:
    return {"objectURL": f"file:///{name}.db", "persistentVolumeClaim": {"claimName": "my-backups"}}


def sealed(name: str, keys: str = "", *, stored_as: str = "sealed") -> Document:
    document = restore(name, url(stored_as), name)
    if keys:
        document["spec"]["encryption"] = {"secretName": keys}
    return document


def storage(size: str, storage_class: str = "standard") -> Document:
    """The storage of a cluster template."""
    claim = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}}
    return {"volumeClaimTemplate": claim}


REFUSED: dict[str, tuple[str, Document]] = {
    "missing": ("BackupMissing", restore("missing", url("none"), "missing")),
    "truncated": ("BackupDamaged", restore("truncated", url("truncated"), "truncated")),
    "corrupt": ("BackupDamaged", restore("corrupt", url("corrupt"), "corrupt")),
    "format": ("UnknownFormat", restore("format", url("format"), "format")),
    "older": ("VersionNotPossible", restore("older", url("one"), "older", version="3.5.35")),
    "too-small": ("VolumeTooSmall", restore("too-small", url("one"), "too-small", storage=storage("1Ki"))),
    "without-key": ("WrongKey", sealed("without-key")),
    "other-key": ("WrongKey", sealed("other-key", "other-keys")),
    "same-name": ("WrongKey", sealed("same-name", "wrong-keys")),
    "no-key": ("BadKey", sealed("no-key", "bad-keys")),
    "not-sealed": ("NotEncrypted", sealed("not-sealed", "keys", stored_as="one")),
}
KEYS = {
    "keys": ("key-1", KEY),
    "other-keys": ("key-2", OTHER_KEY),
    "wrong-keys": ("key-1", OTHER_KEY),
    "bad-keys": ("key-1", "no key"),
}


def test_what_cannot_be_restored_fails_with_its_reason_and_leaves_nothing(space: Space) -> None:
    for name, (key, value) in KEYS.items():
        space.kubectl("create", "secret", "generic", name, f"--from-literal={key}={value}")
    folder = lost(space, backup("sealed", ON_CLAIM, encryption={"secretName": "keys"}))
    for name, change in (("truncated", truncate), ("corrupt", damage), ("format", declare_another_format)):
        copied(folder, name, change)
    space.kubectl.create([document for _, document in REFUSED.values()])
    found = {name: ended(space, name) for name in REFUSED}
    print("\n".join(f"{name}: {reason}: {message}" for name, (_, reason, message) in found.items()))
    assert {name: (phase, reason) for name, (phase, reason, _) in found.items()} == {
        name: ("Failed", reason) for name, (reason, _) in REFUSED.items()
    }
    assert_nothing_left(space, "sealed")


def test_two_restores_for_one_name_and_former_claims_in_the_way(space: Space) -> None:
    backed_up(space)
    space.kubectl("delete", "etcd", "my-cluster")
    before = space.kubectl.json("get", "pvc", "my-cluster-0")["metadata"]["uid"]
    space.kubectl.create(restore("blocked", {"backupName": "one"}))
    phase, reason, message = ended(space, "blocked")
    assert (phase, reason, "my-cluster-0" in message) == ("Failed", "ClaimsExist", True)
    assert space.kubectl.json("get", "pvc", "my-cluster-0")["metadata"]["uid"] == before

    space.kubectl("delete", "pvc", "--selector", SELECTOR)
    space.kubectl.create([restore(name, {"backupName": "one"}) for name in ("first", "second")])
    found = {name: ended(space, name) for name in ("first", "second")}
    (done,) = [name for name, (phase, _, _) in found.items() if phase == "Completed"]
    (refused,) = set(found) - {done}
    # NameConflict: both saw no claim, and the other one was faster.
    assert found[refused][1] in ("ClusterExists", "ClaimsExist", "NameConflict"), found
    assert_restored(space, done, 3)


def remove(folder: Path) -> None:
    (folder / "one.db").unlink()
    (folder / f"one.db{MANIFEST}").unlink()


def replace(folder: Path) -> None:
    """With another backup, which is whole."""
    for end in ("", MANIFEST):
        shutil.copy(folder / f"two.db{end}", folder / f"one.db{end}")


@pytest.mark.parametrize(
    ("change", "expected"),
    [(remove, "BackupMissing"), (replace, "BackupDamaged")],
    ids=["removed", "replaced"],
)
def test_a_backup_that_changes_after_its_verification_is_not_restored(
    space: Space, change: Damage, expected: str
) -> None:
    """A quota holds the restore between the two."""
    folder = lost(space, backup("two", ON_CLAIM))
    space.kubectl("create", "quota", "claims", "--hard=persistentvolumeclaims=1")
    space.kubectl.create(restore("back", url("one")))
    wait_until(lambda: reason(space, "back") == "Forbidden", lambda: reason(space, "back"))
    assert "snapshot" in space.kubectl.json("get", "etcdrestore", "back")["status"], "it is verified"
    change(folder)
    space.kubectl("delete", "quota", "claims")
    phase, reason, message = ended(space, "back")
    assert (phase, reason) == ("Failed", expected), message
    assert_nothing_left(space, "two")


def reason(space: Space, name: str) -> str:
    """Of the condition Complete."""
    return str(condition(space.kubectl.json("get", "etcdrestore", name), "Complete")["reason"])


def test_a_restore_pod_that_is_killed_in_the_middle_is_repeated(space: Space) -> None:
    document = space.created(persistent(replicas=1))
    with Members(deadline=30.0) as members:
        client = members.client(space.addresses(document)[0])
        client.put(b"greeting", b"hello")
        for number in range(80):
            client.put(f"large/{number}".encode(), bytes(1 << 20))
    space.kubectl.create(CLAIM)
    space.kubectl.create(backup("one", ON_CLAIM))
    wait_phase(space, "one", "Completed")
    lose_everything(space)
    space.kubectl.create(restore("back", {"backupName": "one"}, storage=storage("500Mi")))
    target = wait_until(lambda: killed(space), "a restore pod is killed", every=0.05)
    completed(space, "back")
    assert_restored(space, "back", 3)
    job = space.kubectl.find("job", target)
    assert not job or job["status"].get("failed", 0) >= 1, job


def killed(space: Space) -> str:
    """Kill the first restore pod of a member that runs; the name of its Job."""
    for pod in space.api.all_of(resources.PODS, space.namespace, "app.kubernetes.io/name=etcd-restore"):
        names = [container["name"] for container in pod["spec"]["containers"]]
        if "restore" in names and pod["status"]["phase"] == "Running":
            try:
                space.testbed.fault("kill", f"{space.namespace}/{pod['metadata']['name']}", "restore")
            except TestbedError:
                continue  # it has ended
            return str(pod["metadata"]["labels"]["job-name"])
    return ""


@contextmanager
def full_volume(space: Space) -> Iterator[str]:
    """A PersistentVolume on which there is hardly any room, whatever it declares; its class."""
    name = f"full-{space.namespace}"
    place = f"/tmp/hostpath_pv/{name}"
    root = Path(space.testbed.status["kubeconfig"]).parent
    record = read_record(root / "run" / f"{HOLDER}.process")
    assert record is not None
    inside = ["nsenter", f"--mount=/proc/{record.pid}/ns/mnt", "--"]
    subprocess.run([*inside, "mkdir", place], check=True)
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", "size=128k,mode=1777", "tmpfs", place], check=True)
    try:
        space.kubectl.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": name,
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": place},
                },
            }
        )
        yield name
    finally:
        space.kubectl("delete", "pv", name, "--ignore-not-found", "--wait=false")
        subprocess.run([*inside, "umount", "--lazy", place], check=True)


def test_a_volume_that_is_full_is_the_reason(space: Space) -> None:
    space.require_local("the volumes of this cluster are not ours to fill")
    lost(space)
    with full_volume(space) as storage_class:
        wanted = storage("1Gi", storage_class)
        space.kubectl.create(restore("back", {"backupName": "one"}, replicas=1, storage=wanted))
        phase, reason, message = ended(space, "back")
        assert (phase, reason) == ("Failed", "VolumeFailed"), message
        print(message)
        assert_nothing_left(space)
