"""Every setting of the operator, with its default and its check: one frozen value.

Each field is a flag of `etcd-operator run` and an environment variable; see `cli`.
"""

import re
from dataclasses import dataclass

from etcd_operator.errors import OperatorError
from etcd_operator.versions import parse_version

DEFAULT_ETCD_VERSION = "3.6.16"
DEFAULT_ETCD_REPOSITORY = "quay.io/coreos/etcd"
_PROVISIONER = r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this operator runs. Times are in seconds.

    namespace: the only one it serves; empty for all. kubeconfig: a file; empty for the pod's
    service account or, outside a pod, the user's default.
    probe_deadline: how long one probe of a cluster's members may take.
    resync: how often a settled cluster is reconciled again.
    backup_image: the operator's own image, see `OwnImage`; empty for that of the operator's own pod.
    pv_provisioner: of the StorageClass that the operator makes for backups; empty for the default class.
    """

    namespace: str = ""
    kubeconfig: str = ""
    workers: int = 4
    etcd_repository: str = DEFAULT_ETCD_REPOSITORY
    default_etcd_version: str = DEFAULT_ETCD_VERSION
    leader_elect: bool = True
    lease_namespace: str = ""
    listen: str = ":8080"
    log_format: str = "auto"
    log_level: str = "info"
    install_crds: bool = True
    probe_deadline: float = 2.0
    resync: float = 30.0
    backup_image: str = ""
    pv_provisioner: str = ""

    def check(self) -> None:
        """Raise `OperatorError`, in one line, for an invalid value."""
        if self.workers < 1:
            raise OperatorError("--workers must be at least 1")
        if self.log_format not in ("auto", "json", "console"):
            raise OperatorError("--log-format must be auto, json or console")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise OperatorError("--log-level must be debug, info, warning or error")
        if not self.etcd_repository or ":" in self.etcd_repository.rpartition("/")[2]:
            raise OperatorError("--etcd-repository must be an image name without a tag")
        if not re.fullmatch(_PROVISIONER, self.pv_provisioner):
            raise OperatorError("--pv-provisioner must be the name of a provisioner, like ebs.csi.aws.com")
        parse_version(self.default_etcd_version)
