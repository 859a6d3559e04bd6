"""The pod of an ephemeral seed: a member that fetches its data, see `manifests.steps`.

Until it is **opened** to clients, the pod lacks the label `app`, by which the client Service selects:
no client writes to a seed that may still be discarded. (The seed of a persistent cluster is an EtcdPeer
with a survivor, see `manifests.persistent_pod`.)

Where it restores a backup, its first step runs the operator's own image (`etcd-operator seed`). The backup
comes from the backup tool of a cluster, with the token in its Secret, or directly from where it is stored:
the claim, or the bucket with the credentials of the backup tool. The pod itself has no rights.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from etcd_operator.api.definitions.coreos_backup_validations import RESTORE_S3
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import (
    Backup,
    BucketBackup,
    ClaimBackup,
    OfflineSurvivor,
    Survivor,
    ToolBackup,
)
from etcd_operator.controllers.backup_tool.manifests.backup_tool import (
    FOLDER,
    claim_name,
    folder_of,
    s3_url,
    s3_volumes,
    tool_name,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining, Seeding
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, survivor_reader, tls, tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.ephemeral import DATA_DIR
from etcd_operator.controllers.etcd_cluster.manifests.steps import RUN_STEPS, add_steps, fetch_step
from etcd_operator.controllers.shared.manifests import token
from etcd_operator.controllers.shared.manifests.command import (
    ENCRYPTION_KEYS,
    SECRETS,
    PodVolume,
    encryption_volume,
    store_env,
)
from etcd_operator.errors import InvalidSpec
from etcd_operator.pods.contract import BACKUP_TOOL_PORT, CA_FILE

_CA_FOLDER = f"{SECRETS}/ca"


def pod(cluster: DesiredCluster, name: str, start: Seeding, *, image: Callable[[], str]) -> RawObject:
    """The seed, with its steps active, and not open to clients.

    image: the operator's own, for what fetches a backup or reads a survivor; raises what it raises.
    """
    joining = Joining(members=(name,), token=start.token)
    body = ephemeral.pod(cluster, name, joining, copies=isinstance(start.source, Survivor))
    metadata, spec = body["metadata"], body["spec"]
    metadata["annotations"] |= RUN_STEPS
    fetch, survivor = None, ephemeral.member_host(cluster, start.source.name)
    if isinstance(start.source, Backup):
        fetch = add_source(spec, cluster, start.source, image=image())
    elif isinstance(start.source, OfflineSurvivor):
        fetch = survivor_reader.fetch(
            spec,
            host=start.reader,
            name=survivor,
            secured=cluster.secured,
            sha256=start.source.sha256,
            cluster=cluster.name,
            version=cluster.version,
            image=image(),
        )
    add_steps(
        spec,
        survivor="" if isinstance(start.source, Backup) else survivor,
        name=name,
        host=ephemeral.member_host(cluster, name),
        data_dir=DATA_DIR,
        token=start.token,
        fetch=fetch,
        bump=start.bump,
        secured=cluster.secured,
    )
    return body


def opened(cluster: DesiredCluster) -> dict[str, str]:
    """The labels that open the seed to clients."""
    return ephemeral.cluster_labels(cluster)


def add_source(spec: RawObject, cluster: DesiredCluster, backup: Backup, *, image: str) -> RawObject:
    """The step; what it reads is added to the volumes of the pod. Raises InvalidSpec without a bucket."""
    source = _source(cluster, backup)
    spec["volumes"] += [{"name": name, **volume} for name, volume, _ in source.volumes if volume]
    arguments = [*source.arguments, f"--etcd-version={cluster.version}"]
    if backup.name:
        arguments += [f"--name={backup.name}", f"--sha256={backup.sha256}"]
    return fetch_step(spec, arguments, image=image, env=source.env, volumes=source.volumes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a backup comes from."""

    arguments: list[str]
    volumes: list[PodVolume]  # without a source where the pod has it already
    env: list[RawObject] = field(default_factory=list)


def _source(cluster: DesiredCluster, backup: Backup) -> _Source:
    folder = folder_of(cluster.namespace, backup.cluster)
    key_secret = cluster.restore.key_secret if cluster.restore is not None else ""
    keys = [encryption_volume(key_secret)] if key_secret else []
    flags = [f"--encryption-keys={ENCRYPTION_KEYS}"] if keys else []
    if isinstance(backup, ClaimBackup):
        claim = {"persistentVolumeClaim": {"claimName": claim_name(backup.cluster)}}
        return _Source(
            arguments=[f"--from=file://{FOLDER}/", f"--folder={folder}", *flags],
            volumes=[("backups", claim, {"mountPath": FOLDER, "readOnly": True}), *keys],
        )
    if isinstance(backup, BucketBackup):
        target = cluster.restore.s3 if cluster.restore is not None else None
        if target is None:
            raise InvalidSpec(f"spec.restore: {RESTORE_S3}")
        return _Source(
            arguments=[f"--from={s3_url(target)}", f"--folder={folder}", *flags],
            volumes=[*s3_volumes(target), *keys],
            env=store_env(),
        )
    name = tool_name(backup.cluster)
    found = _Source(
        arguments=[f"--tool={name}:{BACKUP_TOOL_PORT}", f"--token-file={token.FILE}", *flags],
        volumes=[token.volume(name), *keys],
    )
    if isinstance(backup, ToolBackup) and backup.has_tls:
        flag, volume = _trust(cluster, backup)
        return replace(found, arguments=[*found.arguments, flag], volumes=[*found.volumes, volume])
    return found


def _trust(cluster: DesiredCluster, backup: ToolBackup) -> tuple[str, PodVolume]:
    """How the tool is verified: by what another cluster publishes for its clients, or the member has itself.

    Optional: the pod starts again also where it is gone, long after the data was fetched.
    """
    if backup.cluster == cluster.name:
        return tls_pod.SERVER_FLAG, tls_pod.mount()
    source = {"configMap": {"name": tls.ca_config_map_name(backup.cluster), "optional": True}}
    mount = {"mountPath": _CA_FOLDER, "readOnly": True}
    return f"--cacert={_CA_FOLDER}/{CA_FILE}", ("ca", source, mount)
