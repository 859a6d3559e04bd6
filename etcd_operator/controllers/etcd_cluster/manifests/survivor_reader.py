"""What reads a member that restarted without a quorum, and the step of a seed that fetches from it.

The reader is an ephemeral container of the member's pod: only that has the volume of an ephemeral member, and
a volume may allow one pod only. Its volume is mounted read-only. It runs the operator's image, with the
security context of etcd. It is not removed: Kubernetes allows no removal, so its process ends by itself.
"""

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.actions import Reader
from etcd_operator.controllers.etcd_cluster.manifests.steps import fetch_step
from etcd_operator.controllers.shared.manifests.command import PodVolume, container
from etcd_operator.controllers.shared.manifests.pod import DATA_VOLUME
from etcd_operator.controllers.shared.manifests.urls import endpoint
from etcd_operator.pods.contract import METRICS_PORT, READER_PORT, READER_TOKEN_VARIABLE, SEED_TOKEN_VARIABLE
from etcd_operator.pods.reports import SURVIVOR

READER = "survivor-reader"
"""Each such container of a pod adds its number to this name."""

MOUNT_PATH = "/var/survivor"


def reader(*, number: int, image: str, folder: str, token: str, security: RawObject) -> RawObject:
    """The container. folder: etcd's data directory, on its volume; empty for the top."""
    arguments = [
        "read-survivor",
        f"--data-dir={MOUNT_PATH}/{folder}".removesuffix("/"),
        f"--metrics-port={METRICS_PORT}",
        f"--port={READER_PORT}",
    ]
    env = [{"name": READER_TOKEN_VARIABLE, "value": token}]
    data: PodVolume = (DATA_VOLUME, {}, {"mountPath": MOUNT_PATH, "readOnly": True})
    return {
        **container(f"{READER}-{number}", image, arguments, env, [data]),
        "securityContext": security,
    }


def fetch(spec: RawObject, survivor: Reader, *, version: str, image: str) -> RawObject:
    """The first step of a seed; host and token of `survivor` are known. spec: of its pod."""
    arguments = [
        f"--tool={endpoint(survivor.host, READER_PORT)}",
        f"--etcd-version={version}",
        f"--name={SURVIVOR}",
        f"--sha256={survivor.sha256}",
    ]
    token = {"name": SEED_TOKEN_VARIABLE, "value": survivor.token}
    return fetch_step(spec, arguments, image=image, env=[token])
