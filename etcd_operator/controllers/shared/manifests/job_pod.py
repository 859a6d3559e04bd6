"""The pods of Jobs that run a command of the operator's own image with access to stored backups.

They have no rights: no token, the Pod Security Standard `restricted`, a read-only root. Credentials come from
Secrets that the kubelet mounts; the operator never reads them.

Test restores and restores need etcd or etcdutl, which are not in the operator's image. etcd's images have no
shell and no program that copies a file. So a second container runs a program of such an image that does
nothing, and the containers of the pod share their processes: the command finds the programs in
`/proc/PID/root`.
"""

from collections.abc import Iterable, Iterator

from etcd_operator.api.backups import BackupSpec, SecretKey
from etcd_operator.api.meta import RawObject
from etcd_operator.api.restores import OptionalSecretKey
from etcd_operator.controllers.shared.decide.backup_spec import CLAIM_FOLDER
from etcd_operator.controllers.shared.manifests import command
from etcd_operator.controllers.shared.manifests.security import RESTRICTED

CONTAINER = "backup"
PROGRAMS_CONTAINER = "etcd"
UNDISTURBED = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations that keep autoscalers from evicting a pod: a backup that is evicted has failed."""

REPORT = ("--json", f"--report={command.REPORT_PATH}")

RESOURCES: RawObject = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}
"""A backup needs the same memory whatever the size of the database."""

PROGRAMS_RESOURCES: RawObject = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}
IDLE = ["/usr/local/bin/etcd", "gateway", "start", "--endpoints=127.0.0.1:1", "--listen-addr=127.0.0.1:23790"]
"""A proxy that nobody connects to, and that has nothing to connect to.

Not `localhost`: the kubelet may write the hosts file just when etcd reads it, and etcd would end.
"""


def programs(image: str) -> RawObject:
    """The fields of a pod with a container that exists as long as the one that uses its programs."""
    container = {
        "name": PROGRAMS_CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": IDLE,
        "resources": PROGRAMS_RESOURCES,
        "securityContext": RESTRICTED.container,
    }
    return {"shareProcessNamespace": True, "initContainers": [container]}


def keys_flag(spec: BackupSpec) -> list[str]:
    """The flag with the keys of an encrypted backup, if it is one."""
    return [f"--encryption-keys={command.ENCRYPTION_KEYS}"] if spec.encryption is not None else []


def container(
    spec: BackupSpec,
    name: str,
    image: str,
    arguments: list[str],
    *,
    reads_only: bool = False,
    more: Iterable[command.PodVolume] = (),
) -> RawObject:
    """The container that runs a command of the operator with access to what `spec` names, and to `more`."""
    volumes = [*_volumes(spec, reads_only=reads_only), *more]
    made: RawObject = {
        **command.container(name, image, arguments, _env(spec), volumes),
        "resources": RESOURCES,
        "terminationMessagePath": command.REPORT_PATH,
        "securityContext": RESTRICTED.container,
    }
    environment = spec.destination.credentials.environment
    if environment is not None:
        made["envFrom"] = [{"secretRef": {"name": environment.secret_name}}]
    return made


def pod(
    spec: BackupSpec,
    container: RawObject,
    *,
    scratch: int | None = 0,
    more: Iterable[command.PodVolume] = (),
) -> RawObject:
    """The spec of a pod with that container. scratch: see `command.scratch_volume`; most use none."""
    volumes = [*_volumes(spec, scratch=scratch), *more]
    made = command.pod(container, volumes, RESTRICTED) | {"restartPolicy": "Never"}
    if spec.service_account_name:
        made["serviceAccountName"] = spec.service_account_name
    return made


def _env(spec: BackupSpec) -> Iterator[RawObject]:
    yield from command.store_env()
    if spec.destination.credentials.google_cloud is not None:
        yield {
            "name": "GOOGLE_APPLICATION_CREDENTIALS",
            "value": f"{command.SECRETS}/google/credentials.json",
        }


def _volumes(
    spec: BackupSpec, *, scratch: int | None = None, reads_only: bool = False
) -> Iterator[command.PodVolume]:
    """reads_only: the claim with backups is mounted for reading only."""
    yield command.scratch_volume(scratch)
    destination = spec.destination
    if destination.credentials.aws is not None:
        yield _file("aws", "credentials", destination.credentials.aws.secret_key_ref)
    if destination.credentials.google_cloud is not None:
        yield _file("google", "credentials.json", destination.credentials.google_cloud.secret_key_ref)
    if spec.encryption is not None:
        yield command.encryption_volume(spec.encryption.secret_name)
    if destination.persistent_volume_claim is not None:
        claim = {"claimName": destination.persistent_volume_claim.claim_name}
        mount = {"mountPath": CLAIM_FOLDER} | ({"readOnly": True} if reads_only else {})
        yield "backups", {"persistentVolumeClaim": claim}, mount


def _file(name: str, path: str, key: SecretKey) -> command.PodVolume:
    """One key of a Secret as a file."""
    secret: RawObject = {
        "secretName": key.name,
        "items": [{"key": key.key, "path": path}],
        "defaultMode": command.READ_ONLY_BY_OWNER,
    }
    if isinstance(key, OptionalSecretKey) and key.optional:
        secret["optional"] = True
    return name, {"secret": secret}, {"mountPath": f"{command.SECRETS}/{name}", "readOnly": True}
