"""The first step of a seed that restores a backup: it runs the operator's own image (`etcd-operator seed`).

The backup comes from the backup tool of a cluster, with the token in its Secret. The pod has no rights.
"""

from etcd_operator.api.meta import RawObject
from etcd_operator.api.persisted import BackupSource
from etcd_operator.render.backup_tool import PORT, TOKEN_FOLDER, TOKEN_KEY, secret_volume, tool_name
from etcd_operator.render.options import from_annotation
from etcd_operator.render.steps import (
    COMMAND_ANNOTATION,
    FETCH,
    SNAPSHOT_FILE,
    SNAPSHOT_PATH,
    SNAPSHOT_VOLUME,
)

REPORT_PATH = "/dev/termination-log"
TOKEN_VOLUME = "backup-token"  # noqa: S105 -- the name of a volume


def add_source(spec: RawObject, backup: BackupSource, *, image: str, version: str) -> RawObject:
    """The step; what it reads is added to the volumes of the pod. version: of etcd, which starts on it."""
    (main,) = spec["containers"]
    spec["volumes"].append({"name": TOKEN_VOLUME, **secret_volume(tool_name(backup.cluster))})
    arguments = [
        "seed",
        f"--tool={tool_name(backup.cluster)}:{PORT}",
        f"--token-file={TOKEN_FOLDER}/{TOKEN_KEY}",
        f"--etcd-version={version}",
        f"--file={SNAPSHOT_FILE}",
        f"--report={REPORT_PATH}",
        "--json",
    ]
    if backup.name:
        arguments += [f"--name={backup.name}", f"--sha256={backup.sha256}"]
    return {
        "name": FETCH,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["etcd-operator"],
        "args": arguments,
        "env": [from_annotation("SEED_COMMAND", COMMAND_ANNOTATION)],
        "volumeMounts": [
            {"name": SNAPSHOT_VOLUME, "mountPath": SNAPSHOT_PATH},
            {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True},
        ],
        **{field: main[field] for field in ("resources", "securityContext") if field in main},
    }
