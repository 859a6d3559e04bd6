"""The StorageClass for backups, made with `--pv-provisioner`."""

from etcd_operator.api.meta import RawObject

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
