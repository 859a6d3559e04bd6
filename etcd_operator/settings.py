"""Every setting of the operator, with its default and its check: one frozen value.

Each field is a flag of `etcd-operator run` and an environment variable; see `cli`.
"""

import re
from dataclasses import dataclass, field
from typing import TypeVar

from etcd_operator.errors import OperatorError
from etcd_operator.versions import parse_version

DEFAULT_ETCD_VERSION = "3.6.16"
DEFAULT_ETCD_REPOSITORY = "quay.io/coreos/etcd"
T = TypeVar("T", bool, float, int, str)

_PROVISIONER = r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?)?"


def _flag(default: T, text: str) -> T:
    found: T = field(default=default, metadata={"help": text})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this operator runs. Times are in seconds; an empty text stands for the default in the help."""

    namespace: str = _flag("", "serve only this namespace (default: all)")
    kubeconfig: str = _flag(
        "", "kubeconfig file (default: the pod's service account, else $KUBECONFIG or ~/.kube/config)"
    )
    workers: int = _flag(4, "number of workers per kind of resource")
    etcd_repository: str = _flag(DEFAULT_ETCD_REPOSITORY, "image repository of etcd, without a tag")
    default_etcd_version: str = _flag(
        DEFAULT_ETCD_VERSION, "etcd version of coreos.com clusters that do not specify one"
    )
    leader_elect: bool = _flag(
        default=True, text="act only while holding the Lease; required for more than one replica"
    )
    lease_namespace: str = _flag("", "namespace of the Lease (default: the pod's namespace)")
    listen: str = _flag(":8080", "address that serves /metrics, /healthz and /readyz")
    log_format: str = _flag("auto", "auto, json or console; auto is console on a terminal, else json")
    log_level: str = _flag("info", "debug, info, warning or error")
    install_crds: bool = _flag(
        default=True, text="create or update the operator's CRDs and admission policies at start"
    )
    probe_deadline: float = _flag(2.0, "time limit in seconds for one probe of a cluster's members")
    resync: float = _flag(30.0, "seconds between reconciliations of a settled cluster")
    backup_image: str = _flag(
        "",
        "image of the operator that its pods for backups, restores and recoveries run (default: that of the "
        "operator's own pod)",
    )
    pv_provisioner: str = _flag(
        "",
        "provisioner of the StorageClass that the operator creates for backups of coreos.com clusters "
        "(default: none is created, and backups use the default StorageClass)",
    )

    @property
    def own_namespace(self) -> str:
        """Where the operator keeps what is its own: the Lease, and the keys of CAs."""
        return self.lease_namespace or self.namespace or "default"

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
