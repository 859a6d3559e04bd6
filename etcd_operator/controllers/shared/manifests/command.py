"""Containers and pods that run a command of the operator's own image, with no rights in Kubernetes."""

from collections.abc import Iterable

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.shared.manifests.security import Security
from etcd_operator.formats import MIB
from etcd_operator.pods.contract import AWS_FOLDER_VARIABLE

REPORT_PATH = "/dev/termination-log"
SCRATCH = "/tmp"  # noqa: S108 -- an emptyDir of this pod alone
SECRETS = "/var/run/secrets/etcd-backup"

STOP_SECONDS = 60
"""For a pod that is deleted: it aborts uploads, so that nothing unfinished is left in the store."""

AWS_FOLDER = f"{SECRETS}/aws"

READ_ONLY_BY_OWNER = 0o440

PodVolume = tuple[str, RawObject, RawObject]
"""Name, source and mount."""

_SPARE = 64 * MIB
"""What a command may keep in its scratch folder beside what it is known to."""


def scratch_volume(size: int | None = None) -> PodVolume:
    """The scratch folder of a pod. size: bytes that its command keeps there; None if that is not known.

    A pod with more is evicted: only what cannot be exceeded may be the limit. Twice the size, because the
    kubelet counts blocks, and XFS allocates as many again as a file has while it grows.
    """
    limit = {} if size is None else {"sizeLimit": f"{-(-(2 * size + _SPARE) // MIB)}Mi"}
    return "scratch", {"emptyDir": limit}, {"mountPath": SCRATCH}


def container(
    name: str, image: str, arguments: Iterable[str], env: Iterable[RawObject], volumes: Iterable[PodVolume]
) -> RawObject:
    """The container, without resources and security context."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["etcd-operator"],
        # Kubernetes replaces $(NAME) by a variable, which may be a credential.
        "args": [argument.replace("$", "$$") for argument in arguments],
        "env": list(env),
        "volumeMounts": [{"name": name, **mount} for name, _, mount in volumes],
    }


def pod(container: RawObject, volumes: Iterable[PodVolume], security: Security) -> RawObject:
    """The spec of a pod with that container."""
    return {
        "containers": [container],
        "volumes": [{"name": name, **source} for name, source, _ in volumes],
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.pod,
    }


def store_env() -> list[RawObject]:
    """What the SDKs of stores must not do in a pod whose credentials a user of its namespace chooses.

    These variables take precedence over a Secret whose entries become variables.
    """
    values = {
        "HOME": SCRATCH,
        AWS_FOLDER_VARIABLE: AWS_FOLDER,
        # Nothing but the folder above: files of AWS may name a program to run.
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        # The identity of the machine, unless the files in the folder request it.
        "AWS_EC2_METADATA_DISABLED": "true",
        # Credentials of Google Cloud may name a program to run, too.
        "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "0",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


ENCRYPTION_KEYS = f"{SECRETS}/encryption"


def encryption_volume(secret: str) -> PodVolume:
    """The keys that encrypt backups, for `--encryption-keys`."""
    return "encryption", secret_volume(secret), {"mountPath": ENCRYPTION_KEYS, "readOnly": True}


def secret_volume(name: str) -> RawObject:
    """The source of a volume with a Secret."""
    return {"secret": {"secretName": name, "defaultMode": READ_ONLY_BY_OWNER}}
