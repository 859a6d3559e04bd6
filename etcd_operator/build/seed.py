"""The pod of a seed: an ephemeral member that brings its data along from a survivor.

    fetch     etcdctl snapshot save, from the survivor (which needs no quorum for it)
    restore   etcdutl snapshot restore, into a new cluster of one, revisions far ahead
    etcd      from that data

etcd's images have no shell, so a step cannot look whether it is done already, and both would
fail for ever when the kubelet runs them again: after the restart of its node the survivor is
gone and the data directory is there. So their first words are taken from annotations of the
pod. Once the seed serves, it is **sealed**: the annotations change, and from then on the
steps print a version and end well.

Until it is **opened** the pod lacks the label `app`, by which the Service for clients selects:
none writes to a seed that may still be thrown away.
"""

from etcd_operator.api import coreos
from etcd_operator.api.meta import RawObject
from etcd_operator.api.record import REVISION_BUMP
from etcd_operator.build import ephemeral
from etcd_operator.build.ephemeral import DATA_DIR, MOUNT_PATH
from etcd_operator.build.pod import DATA_VOLUME
from etcd_operator.build.urls import CLIENT_PORT, PEER_PORT, url
from etcd_operator.core.actions import Joining, Seeding
from etcd_operator.core.desired import DesiredCluster

FETCH = "fetch"
RESTORE = "restore"

COMMAND_ANNOTATION = "etcd.seed-command"
OPTION_ANNOTATION = "etcd.seed-option"
UNSEALED = {COMMAND_ANNOTATION: "snapshot", OPTION_ANNOTATION: "--write-out=simple"}
SEALED = {COMMAND_ANNOTATION: "version", OPTION_ANNOTATION: "--"}
"""`etcdutl version -- whatever`: every version from 3.5 on prints its version and ends with 0."""

SNAPSHOT_VOLUME = "snapshot"
SNAPSHOT_PATH = "/var/etcd-snapshot"


def pod(cluster: DesiredCluster, name: str, start: Seeding) -> RawObject:
    """The seed, neither sealed nor open."""
    body = ephemeral.pod(cluster, name, Joining(members=(name,), token=start.token))
    metadata, spec = body["metadata"], body["spec"]
    del metadata["labels"][coreos.APP_LABEL]
    metadata["annotations"] |= UNSEALED
    spec["initContainers"] = [
        _step(cluster, spec, FETCH, "etcdctl", "save", f"--endpoints={url(start.survivor, CLIENT_PORT)}"),
        _step(cluster, spec, RESTORE, "etcdutl", "restore", *_restoring(name, start)),
    ]
    spec["volumes"].append({"name": SNAPSHOT_VOLUME, "emptyDir": {}})
    return body


def opened(cluster: DesiredCluster) -> dict[str, str]:
    """The labels that bring clients to the seed."""
    return ephemeral.cluster_labels(cluster)


def _step(cluster: DesiredCluster, spec: RawObject, step: str, tool: str, verb: str, *more: str) -> RawObject:
    main = spec["containers"][0]
    names = {"SEED_COMMAND": COMMAND_ANNOTATION, "SEED_OPTION": OPTION_ANNOTATION}
    return {
        "name": step,
        "image": cluster.image,
        "command": [
            f"/usr/local/bin/{tool}",
            "$(SEED_COMMAND)",
            "$(SEED_OPTION)",
            verb,
            f"{SNAPSHOT_PATH}/survivor.db",
            *more,
        ],
        "env": [
            {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{note}']"}}}
            for variable, note in names.items()
        ],
        "volumeMounts": [
            {"name": DATA_VOLUME, "mountPath": MOUNT_PATH},
            {"name": SNAPSHOT_VOLUME, "mountPath": SNAPSHOT_PATH},
        ],
        **{field: main[field] for field in ("resources", "securityContext") if field in main},
    }


def _restoring(name: str, start: Seeding) -> list[str]:
    peer_url = url(name, PEER_PORT)
    return [
        f"--name={name}",
        f"--data-dir={DATA_DIR}",
        f"--initial-cluster={name}={peer_url}",
        f"--initial-cluster-token={start.token}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--bump-revision={REVISION_BUMP}",
        "--mark-compacted",
    ]
