"""The Job that takes one backup with the operator's own image.

Its pod has no rights: no token, the Pod Security Standard `restricted`, a read-only root. Credentials come
from Secrets that the kubelet mounts; the operator never reads them. It is run once, since a second run could
not tell what the first one has stored; the command itself retries, and ends what makes no progress.
"""

import hashlib
from collections.abc import Iterator, Sequence

from etcd_operator.api.backups import API_VERSION, KIND, UID_LABEL, BackupSpec, SecretKey
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.core.backups.spec import CLAIM_FOLDER, url_in_pod
from etcd_operator.render.owner import owned_by
from etcd_operator.render.security import RESTRICTED

CONTAINER = "backup"
REPORT_PATH = "/dev/termination-log"
SCRATCH = "/tmp"  # noqa: S108 -- an emptyDir of this pod alone
SECRETS = "/var/run/secrets/etcd-backup"
NAME_LABELS = {"app.kubernetes.io/name": "etcd-backup"}
STOP_SECONDS = 60
"""For a pod that is deleted: it aborts uploads, so that nothing unfinished is left in the store."""

_LONGEST_JOB_NAME = 63  # of the label with the name of a Job that pods carry
_READ_ONLY_BY_OWNER = 0o440

RESOURCES: RawObject = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}
"""A backup needs the same memory whatever the size of the database."""


def job_name(metadata: ObjectMeta) -> str:
    """The name of the Job of an EtcdBackup: another one for another object of the same name."""
    digest = hashlib.sha256(metadata.uid.encode()).hexdigest()[:10]
    stem = metadata.name.replace(".", "-")[: _LONGEST_JOB_NAME - len(digest) - 1].rstrip("-")
    return f"{stem}-{digest}"


def job(
    metadata: ObjectMeta, spec: BackupSpec, *, image: str, url: str, endpoints: Sequence[str]
) -> RawObject:
    """The Job. url: the rendered one. endpoints: `host:port` of each member that may be the source."""
    labels = {**NAME_LABELS, UID_LABEL: metadata.uid}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(metadata),
            "namespace": metadata.namespace,
            "labels": labels,
            "ownerReferences": owned_by(API_VERSION, KIND, name=metadata.name, uid=metadata.uid),
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            # Never two pods at once, also while the first one is being deleted.
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod(spec, image, _arguments(spec, url, endpoints)),
            },
        },
    }


def _arguments(spec: BackupSpec, url: str, endpoints: Sequence[str]) -> list[str]:
    arguments = ["backup", f"--endpoints={','.join(endpoints)}", f"--to={url_in_pod(url)}"]
    if spec.compression is not None:
        arguments.append("--compress")
    if spec.encryption is not None:
        arguments.append(f"--encryption-keys={SECRETS}/encryption")
    arguments += ["--json", f"--report={REPORT_PATH}"]
    # Kubernetes replaces $(NAME) by a variable, which may be a credential.
    return [argument.replace("$", "$$") for argument in arguments]


def _pod(spec: BackupSpec, image: str, arguments: list[str]) -> RawObject:
    sources = dict(_mounts(spec))
    mounts: list[RawObject] = [{"name": "scratch", "mountPath": SCRATCH}]
    mounts += [{"name": name, **mount} for name, (mount, _) in sources.items()]
    volumes: list[RawObject] = [{"name": "scratch", "emptyDir": {}}]
    volumes += [{"name": name, **volume} for name, (_, volume) in sources.items()]
    container: RawObject = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["etcd-operator"],
        "args": arguments,
        "env": list(_env(spec)),
        "volumeMounts": mounts,
        "resources": RESOURCES,
        "terminationMessagePath": REPORT_PATH,
        "securityContext": RESTRICTED.container,
    }
    environment = spec.destination.credentials.environment
    if environment is not None:
        container["envFrom"] = [{"secretRef": {"name": environment.secret_name}}]
    pod: RawObject = {
        "containers": [container],
        "volumes": volumes,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": RESTRICTED.pod,
    }
    if spec.service_account_name:
        pod["serviceAccountName"] = spec.service_account_name
    return pod


def _env(spec: BackupSpec) -> Iterator[RawObject]:
    yield {"name": "HOME", "value": SCRATCH}
    credentials = spec.destination.credentials
    if credentials.aws is not None:
        yield {"name": "AWS_SHARED_CREDENTIALS_FILE", "value": f"{SECRETS}/aws/credentials"}
    if credentials.google_cloud is not None:
        yield {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": f"{SECRETS}/google/credentials.json"}


def _mounts(spec: BackupSpec) -> Iterator[tuple[str, tuple[RawObject, RawObject]]]:
    """Mount and source of each volume, by its name."""
    destination = spec.destination
    if destination.credentials.aws is not None:
        yield "aws", _file("aws", "credentials", destination.credentials.aws.secret_key_ref)
    if destination.credentials.google_cloud is not None:
        key = destination.credentials.google_cloud.secret_key_ref
        yield "google", _file("google", "credentials.json", key)
    if spec.encryption is not None:
        secret = {"secretName": spec.encryption.secret_name, "defaultMode": _READ_ONLY_BY_OWNER}
        yield "encryption", ({"mountPath": f"{SECRETS}/encryption", "readOnly": True}, {"secret": secret})
    if destination.persistent_volume_claim is not None:
        claim = {"claimName": destination.persistent_volume_claim.claim_name}
        yield "backups", ({"mountPath": CLAIM_FOLDER}, {"persistentVolumeClaim": claim})


def _file(folder: str, path: str, key: SecretKey) -> tuple[RawObject, RawObject]:
    """One key of a Secret as a file."""
    secret = {
        "secretName": key.name,
        "items": [{"key": key.key, "path": path}],
        "defaultMode": _READ_ONLY_BY_OWNER,
    }
    return {"mountPath": f"{SECRETS}/{folder}", "readOnly": True}, {"secret": secret}
