"""The floor of restores: the same claims and pods, made by one client that knows the backup to be good.

A pod for each member runs `etcdutl snapshot restore` on its claim, all at once; then come the Service and the
members. No operator, no custom resource, no verification of the backup, and no copy of it: etcdutl reads it
where it is. What has no Kubernetes at all is in `processes`: the download and etcdutl, each by itself.
"""

import copy
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmark import floor
from benchmark.bed import POLL_SECONDS, Bed, Document
from benchmark.member import tool
from e2e.support.waiting import wait_until
from etcd_operator.controllers.shared.manifests.pod import DATA_DIR, RESTORED_DIR
from etcd_operator.controllers.shared.manifests.urls import PEER_PORT, url
from etcd_operator.kube import resources

BUMP = 1_000_000_000
BACKUPS = "/backups"
LIMIT = 900.0


def restore(bed: Bed, document: Document, namespace: str, claim: str, file: str) -> float:
    """Restore `file` on the claim to the members of `document`; seconds until all of them serve."""
    made = floor.Blueprint(document, namespace, is_restored=True)
    objects = made.objects()
    pods = [body for resource, body in objects if resource is resources.PODS]
    peers = {name: url(made.host_of(name), PEER_PORT) for name in made.initial_members}
    began = time.monotonic()
    for body in (body for resource, body in objects if resource is resources.CLAIMS):
        bed.api.create(resources.CLAIMS, namespace, body)
    for pod in pods:
        bed.api.create(resources.PODS, namespace, filling(pod, peers, claim, file))
    wait_until(
        lambda: _have_succeeded(bed, namespace, peers), "etcdutl succeeds", within=LIMIT, every=POLL_SECONDS
    )
    for resource, body in objects:
        if resource is not resources.CLAIMS:
            bed.api.create(resource, namespace, body)
    return bed.until_serving(document, namespace, since=began, limit=LIMIT)


def filling(pod: Document, peers: dict[str, str], claim: str, file: str) -> Document:
    """The pod that restores to the volume of a member's pod."""
    name = pod["metadata"]["name"]
    spec = {
        key: copy.deepcopy(value)
        for key, value in pod["spec"].items()
        if key in ("containers", "securityContext", "volumes", "automountServiceAccountToken")
    }
    (container,) = spec["containers"]
    spec["containers"] = [
        {
            "name": "etcdutl",
            "command": _etcdutl("/usr/local/bin/etcdutl", f"{BACKUPS}/{file}", RESTORED_DIR, name, peers),
            "image": container["image"],
            "volumeMounts": [
                *(mount for mount in container["volumeMounts"] if mount["mountPath"] == DATA_DIR),
                {"name": "backups", "mountPath": BACKUPS, "readOnly": True},
            ],
            **{key: container[key] for key in ("imagePullPolicy", "securityContext") if key in container},
        }
    ]
    spec["volumes"].append({"name": "backups", "persistentVolumeClaim": {"claimName": claim}})
    spec["restartPolicy"] = "Never"
    metadata = {"name": f"{name}-restore", "namespace": pod["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def processes(snapshot: Path, members: int) -> tuple[float, float]:
    """Seconds of downloads (copies of the file) and of etcdutl, one of each for every member at once.

    Plain processes of this machine, in a folder beside the snapshot.
    """
    peers = {f"bench-{number}": f"http://bench-{number}:2380" for number in range(members)}
    with tempfile.TemporaryDirectory(dir=snapshot.parent) as folder:
        copies = [["cp", str(snapshot), str(Path(folder, name))] for name in peers]
        downloads = _together([[*copy, "--reflink=never"] for copy in copies])
        program = str(tool("etcdutl"))
        restores = [
            _etcdutl(program, str(Path(folder, name)), str(Path(folder, f"{name}.data")), name, peers)
            for name in peers
        ]
        return downloads, _together(restores)


def _together(commands: Sequence[Sequence[str]]) -> float:
    """Seconds until all have ended; each has to succeed."""
    began = time.monotonic()
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(command, stdout=quiet, stderr=quiet) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError(f"{commands[0][0]} failed: exit codes {codes}")
    return time.monotonic() - began


def _etcdutl(program: str, file: str, folder: str, name: str, peers: dict[str, str]) -> list[str]:
    return [
        program,
        "snapshot",
        "restore",
        file,
        f"--data-dir={folder}",
        f"--name={name}",
        f"--initial-cluster={','.join(f'{peer}={at}' for peer, at in peers.items())}",
        f"--initial-cluster-token={floor.BOOTSTRAP}",
        f"--initial-advertise-peer-urls={peers[name]}",
        f"--bump-revision={BUMP}",
        "--mark-compacted",
    ]


def _have_succeeded(bed: Bed, namespace: str, names: Iterable[str]) -> bool:
    phases = {
        pod["metadata"]["name"]: pod.get("status", {}).get("phase")
        for pod in bed.api.all_of(resources.PODS, namespace)
    }
    found = [phases.get(f"{name}-restore") for name in names]
    if "Failed" in found:
        raise RuntimeError(f"etcdutl failed in a pod of {namespace}")
    return all(phase == "Succeeded" for phase in found)
