"""What the Jobs of EtcdBackups, schedules and EtcdRestores have in common."""

import hashlib

from etcd_operator.api.backups import API_VERSION
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.shared.manifests.owner import owned_by

APP_LABEL = "app.kubernetes.io/name"
BACKUP_APP = "etcd-backup"
"""The label `APP_LABEL` of Jobs that take backups; NetworkPolicies select their pods by it."""

PRUNE_APP = "etcd-backup-prune"
"""The label `APP_LABEL` of Jobs that remove old backups."""

_LONGEST_NAME = 63  # of the label with the name of a Job that pods carry


def job_name(owner: ObjectMeta, which: str = "") -> str:
    """The name of a Job: another one for another object of the same name. which: of several of one owner."""
    digest = hashlib.sha256(owner.uid.encode()).hexdigest()[:10]
    end = f"{which}-{digest}" if which else digest
    stem = owner.name.replace(".", "-")[: _LONGEST_NAME - len(end) - 1].rstrip("-")
    return f"{stem}-{end}"


def job(
    owner: ObjectMeta,
    *,
    kind: str,
    name: str,
    labels: dict[str, str],
    pod: RawObject,
    retries: int = 0,
    annotations: dict[str, str] | None = None,
) -> RawObject:
    """A Job of `owner`. pod: the spec of its pod. annotations: of the pod."""
    metadata: RawObject = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": owned_by(API_VERSION, kind, name=owner.name, uid=owner.uid),
        },
        "spec": {
            "backoffLimit": retries,
            "completions": 1,
            "parallelism": 1,
            # Never two pods at once on one claim, also while the first one is being deleted.
            "podReplacementPolicy": "Failed",
            "template": {"metadata": metadata, "spec": pod},
        },
    }
