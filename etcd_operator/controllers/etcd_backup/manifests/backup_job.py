"""The Jobs that take and verify one backup with the operator's own image.

Their pods have no rights: no token, the Pod Security Standard `restricted`, a read-only root. Credentials
come from Secrets that the kubelet mounts; the operator never reads them. A backup is run once, since a second
run could not know what the first one has stored; the command itself retries, and ends what makes no progress.

A test restore needs etcd and etcdutl, which are not in the operator's image. etcd's images have no shell and
no program that copies a file. So a second container runs a program of such an image that does nothing, and
the containers of the pod share their processes: the command finds the programs in `/proc/PID/root`.
"""

from collections.abc import Iterator, Sequence

from etcd_operator.api.backups import KIND, UID_LABEL, BackupSpec, SecretKey
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.restores import OptionalSecretKey
from etcd_operator.controllers.etcd_backup.decide.spec import CLAIM_FOLDER, url_in_pod
from etcd_operator.controllers.etcd_backup_schedule.decide.retention import series_of
from etcd_operator.controllers.etcd_cluster.manifests.security import RESTRICTED
from etcd_operator.controllers.shared.manifests import command
from etcd_operator.controllers.shared.manifests import job as job_of
from etcd_operator.controllers.shared.manifests.command import (
    READ_ONLY_BY_OWNER,
    REPORT_PATH,
    SCRATCH,
    SCRATCH_VOLUME,
    SECRETS,
    PodVolume,
    secret_volume,
)

CONTAINER = "backup"
VERIFY_CONTAINER = "verify"
PROGRAMS_CONTAINER = "etcd"
NAME_LABELS = {"app.kubernetes.io/name": "etcd-backup"}
VERIFY_NAME_LABELS = {"app.kubernetes.io/name": "etcd-backup-verification"}
UNDISTURBED = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations that keep autoscalers from evicting a pod: a backup that is evicted has failed."""

REPORT = ("--json", f"--report={REPORT_PATH}")

RESOURCES: RawObject = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}
"""A backup needs the same memory whatever the size of the database."""

TRIAL_RESOURCES: RawObject = {"requests": {"cpu": "100m", "memory": "256Mi"}}
"""A restored etcd needs as much memory as a member, which depends on the data: there is no limit."""

PROGRAMS_RESOURCES: RawObject = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}
IDLE = ["/usr/local/bin/etcd", "gateway", "start", "--endpoints=localhost:1", "--listen-addr=localhost:23790"]
"""A proxy that nobody connects to, and that has nothing to connect to."""


def job_name(metadata: ObjectMeta, *, is_verification: bool = False) -> str:
    """The name of a Job of an EtcdBackup: another one for another object of the same name."""
    return job_of.job_name(metadata, "verify" if is_verification else "")


def job(
    metadata: ObjectMeta, spec: BackupSpec, *, image: str, url: str, endpoints: Sequence[str]
) -> RawObject:
    """The Job. url: the rendered one. endpoints: `host:port` of each member that may be the source."""
    runs = container(spec, CONTAINER, image, _arguments(spec, url, endpoints, series_of(metadata)))
    return _job(metadata, job_name(metadata), NAME_LABELS, pod(spec, runs))


def verification_job(
    metadata: ObjectMeta, spec: BackupSpec, *, image: str, url: str, etcd_image: str
) -> RawObject:
    """The Job that verifies what is stored at `url`. etcd_image: for a test restore, empty for none."""
    arguments = _verify_arguments(spec, url, etcd_image)
    runs = container(spec, VERIFY_CONTAINER, image, arguments, reads_only=True)
    made = pod(spec, runs)
    if etcd_image:
        runs["resources"] = TRIAL_RESOURCES
        made |= programs(etcd_image)
    return _job(metadata, job_name(metadata, is_verification=True), VERIFY_NAME_LABELS, made)


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


def _job(metadata: ObjectMeta, name: str, name_labels: dict[str, str], pod: RawObject) -> RawObject:
    return job_of.job(
        metadata,
        kind=KIND,
        name=name,
        labels={**name_labels, UID_LABEL: metadata.uid},
        pod=pod,
        annotations=UNDISTURBED,
    )


def _arguments(spec: BackupSpec, url: str, endpoints: Sequence[str], series: str) -> list[str]:
    arguments = ["backup", f"--endpoints={','.join(endpoints)}", f"--to={url_in_pod(url)}"]
    if spec.compression is not None:
        arguments.append("--compress")
    arguments += keys_flag(spec)
    if series:
        arguments.append(f"--series={series}")
    return [*arguments, *REPORT]


def _verify_arguments(spec: BackupSpec, url: str, etcd_image: str) -> list[str]:
    arguments = ["verify", url_in_pod(url)]
    if etcd_image:
        arguments += ["--restore", "--etcd-in-pod", f"--scratch-dir={SCRATCH}"]
    return [*arguments, *keys_flag(spec), *REPORT]


def keys_flag(spec: BackupSpec) -> list[str]:
    """The flag with the keys of an encrypted backup, if it is one."""
    return [f"--encryption-keys={SECRETS}/encryption"] if spec.encryption is not None else []


def container(
    spec: BackupSpec, name: str, image: str, arguments: list[str], *, reads_only: bool = False
) -> RawObject:
    """The container that runs a command of the operator with access to what `spec` names."""
    volumes = _volumes(spec, reads_only=reads_only)
    made: RawObject = {
        **command.container(name, image, arguments, _env(spec), volumes),
        "resources": RESOURCES,
        "terminationMessagePath": REPORT_PATH,
        "securityContext": RESTRICTED.container,
    }
    environment = spec.destination.credentials.environment
    if environment is not None:
        made["envFrom"] = [{"secretRef": {"name": environment.secret_name}}]
    return made


def pod(spec: BackupSpec, container: RawObject) -> RawObject:
    """The spec of the pod of that container."""
    made = command.pod(container, _volumes(spec), RESTRICTED) | {"restartPolicy": "Never"}
    if spec.service_account_name:
        made["serviceAccountName"] = spec.service_account_name
    return made


def _env(spec: BackupSpec) -> Iterator[RawObject]:
    yield {"name": "HOME", "value": SCRATCH}
    credentials = spec.destination.credentials
    if credentials.aws is not None:
        yield {"name": "AWS_SHARED_CREDENTIALS_FILE", "value": f"{SECRETS}/aws/credentials"}
    if credentials.google_cloud is not None:
        yield {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": f"{SECRETS}/google/credentials.json"}


def _volumes(spec: BackupSpec, *, reads_only: bool = False) -> Iterator[PodVolume]:
    """reads_only: the claim with backups is mounted for reading only."""
    yield SCRATCH_VOLUME
    destination = spec.destination
    if destination.credentials.aws is not None:
        yield _file("aws", "credentials", destination.credentials.aws.secret_key_ref)
    if destination.credentials.google_cloud is not None:
        yield _file("google", "credentials.json", destination.credentials.google_cloud.secret_key_ref)
    if spec.encryption is not None:
        source = secret_volume(spec.encryption.secret_name)
        yield "encryption", source, {"mountPath": f"{SECRETS}/encryption", "readOnly": True}
    if destination.persistent_volume_claim is not None:
        claim = {"claimName": destination.persistent_volume_claim.claim_name}
        mount = {"mountPath": CLAIM_FOLDER} | ({"readOnly": True} if reads_only else {})
        yield "backups", {"persistentVolumeClaim": claim}, mount


def _file(name: str, path: str, key: SecretKey) -> PodVolume:
    """One key of a Secret as a file."""
    secret: RawObject = {
        "secretName": key.name,
        "items": [{"key": key.key, "path": path}],
        "defaultMode": READ_ONLY_BY_OWNER,
    }
    if isinstance(key, OptionalSecretKey) and key.optional:
        secret["optional"] = True
    return name, {"secret": secret}, {"mountPath": f"{SECRETS}/{name}", "readOnly": True}
