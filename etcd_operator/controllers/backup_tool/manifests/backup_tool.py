"""The objects of a cluster's backup tool (`coreos.com`, `spec.backup`): Secret, Service, claim, ReplicaSet.

The cluster owns all but the claim, which outlives it. The tool's pod has no rights: no token for Kubernetes,
the Pod Security Standard `restricted` unless `spec.pod.securityContext` requests otherwise, a read-only root.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from etcd_operator.api import coreos
from etcd_operator.api.cluster_spec import S3Target
from etcd_operator.api.coreos_backup import TOOL_APP, BackupPolicy
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.tls import secret_name
from etcd_operator.controllers.shared.manifests import command, etcd_access
from etcd_operator.controllers.shared.manifests import token as tokens
from etcd_operator.controllers.shared.manifests.digest import digest
from etcd_operator.controllers.shared.manifests.security import security
from etcd_operator.controllers.shared.manifests.service import service
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.pods.contract import BACKUP_TOOL_PORT, BACKUP_TOOL_PROBE_PORT

CONTAINER = "backup"
PORT_NAME = "backup-service"
FOLDER = "/var/etcd-backup"
TEMPLATE_ANNOTATION = f"{coreos.GROUP}/backup-template"
"""On the ReplicaSet and its pods: the digest of the template that they were made from."""

_RESOURCES: RawObject = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}
"""A backup needs the same memory whatever the size of the database."""

_LARGEST_SNAPSHOT = 8 << 30
"""Bytes; the members have etcd's default quota of 2 GiB, and etcd is not meant for more than 8 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the tool of one cluster runs with."""

    cluster: DesiredCluster
    policy: BackupPolicy
    image: str  # the operator's own


def tool_name(cluster: str) -> str:
    """The name of the tool's ReplicaSet, Service and Secret."""
    return f"{cluster}-backup-tool"


def claim_name(cluster: str) -> str:
    """The name of the claim for backups."""
    return f"{cluster}-pvc"


def tool_labels(cluster: str) -> dict[str, str]:
    """The labels of the tool's objects and pods."""
    return {coreos.APP_LABEL: TOOL_APP, coreos.CLUSTER_LABEL: cluster}


def secret(cluster: DesiredCluster, token: str) -> RawObject:
    """The Secret with the token that the tool's HTTP API requires."""
    metadata = metadata_of(cluster, tool_name(cluster.name), tool_labels(cluster.name))
    return tokens.secret(metadata, token)


def tool_service(cluster: DesiredCluster) -> RawObject:
    """The Service of the HTTP API."""
    labels = tool_labels(cluster.name)
    metadata = metadata_of(cluster, tool_name(cluster.name), labels)
    return service(metadata, labels, (PORT_NAME, BACKUP_TOOL_PORT), headless=False)


def claim(cluster: DesiredCluster, policy: BackupPolicy, storage_class: str) -> RawObject:
    """The claim for backups, without owner. storage_class: empty for the default of Kubernetes."""
    spec: RawObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage(policy)}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(cluster.name),
            "namespace": cluster.namespace,
            "labels": tool_labels(cluster.name),
        },
        "spec": spec,
    }


def storage(policy: BackupPolicy) -> str:
    """The size of the claim as a quantity."""
    return f"{policy.volume_size_in_mb}Mi"


def replica_set(tool: ToolSettings) -> RawObject:
    """The ReplicaSet, with one pod."""
    cluster = tool.cluster
    labels = tool_labels(cluster.name)
    template: RawObject = {"metadata": {"labels": labels}, "spec": _pod(tool)}
    annotations = {TEMPLATE_ANNOTATION: digest(template)}
    template["metadata"]["annotations"] = annotations
    metadata = metadata_of(cluster, tool_name(cluster.name), labels)
    metadata["annotations"] = annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def folder_of(namespace: str, cluster: str) -> str:
    """The folder of a cluster's backups, below the claim or the prefix in the bucket."""
    return f"v1/{namespace}/{cluster}"


def _pod(tool: ToolSettings) -> RawObject:
    contexts = security(tool.cluster.pod_template)
    pod = command.pod(_container(tool, contexts.container), _volumes(tool), contexts)
    if tool.cluster.pod_template.node_selector:
        pod["nodeSelector"] = tool.cluster.pod_template.node_selector
    return pod


def _container(tool: ToolSettings, context: RawObject) -> RawObject:
    probe: RawObject = {"httpGet": {"path": "/healthz", "port": BACKUP_TOOL_PROBE_PORT}}
    return {
        **command.container(CONTAINER, tool.image, _arguments(tool), command.store_env(), _volumes(tool)),
        "ports": [{"name": PORT_NAME, "containerPort": BACKUP_TOOL_PORT}],
        "readinessProbe": {**probe, "initialDelaySeconds": 2, "periodSeconds": 5},
        # It fails only if the thread that takes backups is dead, never because of etcd or the store.
        "livenessProbe": {**probe, "periodSeconds": 20, "timeoutSeconds": 10, "failureThreshold": 3},
        "resources": _RESOURCES,
        "securityContext": context,
    }


def _arguments(tool: ToolSettings) -> list[str]:
    cluster, policy = tool.cluster, tool.policy
    return [
        "backup-tool",
        f"--endpoint={endpoint(f'{cluster.name}.{cluster.namespace}.svc', CLIENT_PORT)}",
        f"--to={_url(policy)}",
        f"--folder={folder_of(cluster.namespace, cluster.name)}",
        f"--owner={cluster.uid}",
        *(["--exclusive"] if policy.s3 is None else []),
        f"--interval={policy.backup_interval_in_second}",
        f"--max-backups={policy.max_backups}",
        f"--token-file={tokens.FILE}",
        *([f"--encryption-keys={command.ENCRYPTION_KEYS}"] if policy.encryption is not None else []),
        f"--scratch-dir={command.SCRATCH}",
        *([etcd_access.FLAG] if cluster.secured.is_dialed else []),
    ]


def _url(policy: BackupPolicy) -> str:
    return f"file://{FOLDER}/" if policy.s3 is None else s3_url(policy.s3)


def s3_url(target: S3Target) -> str:
    """The URL of the store, with `/` at the end of its path."""
    path = quote(target.prefix.strip("/"))
    query = "&".join(_options(target))
    return f"s3://{target.s3_bucket}/{path}{'/' if path else ''}{'?' if query else ''}{query}"


def _options(target: S3Target) -> Iterator[str]:
    if target.region:
        yield f"region={target.region}"
    if target.endpoint:
        yield f"endpoint={quote(target.endpoint, safe=':/[]')}"


def _volumes(tool: ToolSettings) -> Iterator[command.PodVolume]:
    yield command.scratch_volume(_LARGEST_SNAPSHOT)
    yield tokens.volume(tool_name(tool.cluster.name))
    if tool.policy.encryption is not None:
        yield command.encryption_volume(tool.policy.encryption.secret_name)
    if tool.cluster.secured.is_dialed:
        yield etcd_access.volume(secret_name(tool_name(tool.cluster.name)))
    target = tool.policy.s3
    if target is None:
        source = {"persistentVolumeClaim": {"claimName": claim_name(tool.cluster.name)}}
        yield "backups", source, {"mountPath": FOLDER}
    else:
        yield from s3_volumes(target)


def s3_volumes(target: S3Target) -> Iterator[command.PodVolume]:
    """The credentials, as `_volumes`."""
    if target.aws_secret:
        yield (
            "aws",
            command.secret_volume(target.aws_secret),
            {"mountPath": command.AWS_FOLDER, "readOnly": True},
        )
