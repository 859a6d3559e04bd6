"""Makes the StorageClass for backups (`--pv-provisioner`), once. One that exists is left, whoever made it."""

from collections.abc import Callable

import structlog

from etcd_operator.api.meta import RawObject
from etcd_operator.errors import AlreadyExists, OperatorError
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import Written

RETRY_SECONDS = 30.0

log = structlog.get_logger()

_DRIVERS = {"kubernetes.io/gce-pd": "pd.csi.storage.gke.io", "kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
"""The drivers that replace the provisioners which Kubernetes had itself until 1.31."""


def class_name(provisioner: str) -> str:
    """`etcd-operator-backup-<last part>`, the documented name also for a driver that replaced it."""
    documented = next((old for old, new in _DRIVERS.items() if new == provisioner), provisioner)
    return f"etcd-operator-backup-{documented.rpartition('/')[2]}"


def storage_class(provisioner: str) -> RawObject:
    """The StorageClass. Volumes are made where the pod of the backup tool runs, and can be enlarged."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": class_name(provisioner)},
        "provisioner": _DRIVERS.get(provisioner, provisioner),
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


class StorageClass:
    """wait: waits that many seconds, or until the process is asked to stop; whether it is."""

    def __init__(self, client: Client, provisioner: str, *, wait: Callable[[float], bool]) -> None:
        self._client = client
        self._provisioner = provisioner
        self._wait = wait

    def create(self) -> None:
        """Try until it exists. Without the right to make it an administrator may: claims wait for it."""
        problem = self._try()
        while problem:
            log.warning("storage_class_not_created", error=problem)
            if self._wait(RETRY_SECONDS):
                return
            problem = self._try()

    def _try(self) -> str:
        """Why it was not made; empty if it exists."""
        try:
            self._client.create(resources.STORAGE_CLASSES, "", storage_class(self._provisioner), Written)
        except AlreadyExists:
            return ""
        except OperatorError as error:
            return str(error)
        log.info("storage_class_created", provisioner=self._provisioner)
        return ""
