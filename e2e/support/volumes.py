"""The data directories of members on this machine, to remove them as a broken disk would."""

import os
import shutil
from pathlib import Path

from e2e.support.clusters import Document
from e2e.support.space import Space
from e2e.support.waiting import wait_until


def folder_of(space: Space, pod: Document) -> Path:
    """Where a member's volume lies: its claim's, or the emptyDir below its node's kubelet."""
    meta = pod["metadata"]
    claim = meta["labels"].get("etcd.improbable.io/peer-name")
    if claim is None:
        node: Path = space.testbed.volumes.parent.parent / "nodes" / pod["spec"]["nodeName"]
        return node / "kubelet/pods" / str(meta["uid"]) / "volumes/kubernetes.io~empty-dir/etcd-data"
    return claim_folder(space, claim)


def claim_folder(space: Space, claim: str) -> Path:
    """Where the volume of a claim of class `standard` lies."""
    volume = space.kubectl.json("get", "pvc", claim)["spec"]["volumeName"]
    path = Path(space.kubectl.json("get", "pv", volume)["spec"]["hostPath"]["path"])
    volumes: Path = space.testbed.volumes
    return volumes / path.name


def empty(space: Space, pod: Document) -> None:
    """Remove all that is on a member's volume; a running process notices nothing."""
    folder = folder_of(space, pod)
    assert any(folder.iterdir()), f"{folder} holds no data of {pod['metadata']['name']}"
    remove_all(folder)


def remove_all(folder: Path) -> None:
    """Remove all that is in a folder, also while a process writes to it."""

    def is_empty() -> bool:
        for each in folder.iterdir():
            shutil.rmtree(each)
        return not any(folder.iterdir())

    wait_until(is_empty, f"{folder} is empty", every=0.0)


def give_to_root(space: Space, pod: Document) -> None:
    """Make root the owner of all that is on a member's volume."""
    folder = folder_of(space, pod)

    def is_given() -> bool:
        for path in folder.rglob("*"):
            os.chown(path, 0, 0)
        return True

    wait_until(is_given, f"{folder} belongs to root")  # etcd may remove a file meanwhile
