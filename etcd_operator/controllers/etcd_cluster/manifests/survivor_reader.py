"""What reads a member that restarted without a quorum, and the step of a seed that fetches from it.

The reader is an ephemeral container of the member's pod: only that has the volume of an ephemeral member, and
a volume may allow one pod only. Its volume is mounted read-only. It runs the operator's image, with the
security context of etcd. Where members use TLS for clients, it serves with the certificate of its member. It
is not removed: Kubernetes allows no removal, so its process ends by itself.
"""

from etcd_operator.api.meta import RawObject
from etcd_operator.api.tls import MemberTls
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.steps import fetch_step
from etcd_operator.controllers.shared.manifests import token as tokens
from etcd_operator.controllers.shared.manifests.command import PodVolume, container
from etcd_operator.controllers.shared.manifests.pod import DATA_VOLUME
from etcd_operator.controllers.shared.manifests.urls import endpoint
from etcd_operator.pods.contract import METRICS_PORT, READER_PORT, READER_TOKEN_VARIABLE
from etcd_operator.pods.reports import SURVIVOR

READER = "survivor-reader"
"""Each such container of a pod adds its number to this name."""

MOUNT_PATH = "/var/survivor"


def secret_name(cluster: str) -> str:
    """The name of the Secret with the token that the readers of a cluster require."""
    return f"{cluster}-{READER}"


def secret(cluster: DesiredCluster, token: str) -> RawObject:
    """That Secret."""
    return tokens.secret(metadata_of(cluster, secret_name(cluster.name), {}), token)


def reader(
    *, number: int, image: str, folder: str, cluster: str, security: RawObject, secured: MemberTls
) -> RawObject:
    """The container. folder: etcd's data directory, on its volume; empty for the top."""
    arguments = [
        "read-survivor",
        f"--data-dir={MOUNT_PATH}/{folder}".removesuffix("/"),
        f"--metrics-port={METRICS_PORT}",
        f"--port={READER_PORT}",
    ]
    env = [tokens.variable(READER_TOKEN_VARIABLE, secret_name(cluster))]
    volumes: list[PodVolume] = [(DATA_VOLUME, {}, {"mountPath": MOUNT_PATH, "readOnly": True})]
    if secured.is_dialed:
        arguments.append(f"--tls-dir={tls_pod.FOLDER}")
        volumes.append(tls_pod.mount())
    return {
        **container(f"{READER}-{number}", image, arguments, env, volumes),
        "securityContext": security,
    }


def fetch(  # noqa: PLR0913 -- all that the step depends on
    spec: RawObject,
    *,
    host: str,
    name: str,
    sha256: str,
    cluster: str,
    version: str,
    image: str,
    secured: MemberTls,
) -> RawObject:
    """The first step of a seed. spec: of its pod, which gets a volume.

    host: where the survivor is read. name: the host name in its certificate.
    """
    volume, source, mount = tokens.volume(secret_name(cluster))
    spec["volumes"].append({"name": volume, **source})
    arguments = [
        f"--tool={endpoint(host, READER_PORT)}",
        f"--token-file={tokens.FILE}",
        f"--etcd-version={version}",
        f"--name={SURVIVOR}",
        f"--sha256={sha256}",
    ]
    volumes: list[PodVolume] = [(volume, source, mount)]
    if secured.is_dialed:
        arguments += [tls_pod.SERVER_FLAG, f"--tls-server-name={name}"]
        volumes.append(tls_pod.mount())
    return fetch_step(spec, arguments, image=image, volumes=volumes)
