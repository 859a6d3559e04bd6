"""The observed state of a cluster's backup tool: all that a decision about its objects may depend on."""

from dataclasses import dataclass

from etcd_operator.controllers.backup_tool.decide.policy import NO_BACKUPS, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClaimState:
    """The claim for backups."""

    name: str
    uid: str
    size: int | None  # the storage that it requests in bytes, None if that is not understood
    is_terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReplicaSetState:
    """The tool's ReplicaSet."""

    name: str
    uid: str
    template: str  # the digest of the template that it was made from
    replicas: int = 1
    is_terminating: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPodState:
    """A pod of that ReplicaSet."""

    name: str
    uid: str
    template: str
    is_ready: bool = False
    is_terminating: bool = False
    address: str = ""
    waits_for: str = ""  # why it is not ready, as Kubernetes reports it


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupState:
    """How far the tool has removed the backups of a cluster that is being deleted."""

    is_done: bool = False
    waited: float = 0.0  # seconds since the operator has seen the deletion
    problem: str = ""  # why the last try failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolState:
    """What was observed of the backup tool of one cluster."""

    wanted: Wanted = NO_BACKUPS
    is_deleting: bool = False
    is_paused: bool = False
    is_bootstrapped: bool = True
    has_finalizer: bool = False  # the deletion of the cluster waits until its backups are removed
    cleanup: CleanupState = CleanupState()
    template: str = ""  # the digest of the wanted template; empty if there is none
    size: int = 0  # of the wanted claim in bytes; 0 without one
    has_secret: bool = False  # the Secret with the token exists
    has_certificates: bool = True  # the Secret with its certificates is as it should be, or none is needed
    has_unused_certificates: bool = False  # that Secret exists, and the tool needs none any more
    has_service: bool = False
    claim: ToolClaimState | None = None
    replica_set: ToolReplicaSetState | None = None
    pods: tuple[ToolPodState, ...] = ()

    @property
    def is_cleanup_wanted(self) -> bool:
        """Whether what is stored is to be deleted with the cluster."""
        policy = self.wanted.policy
        return policy is not None and policy.cleanup_backups_on_cluster_delete

    @property
    def running(self) -> ToolPodState | None:
        """The pod that answers, made from the wanted template if there is one."""
        ready = [pod for pod in self.pods if pod.is_ready and not pod.is_terminating]
        return next((pod for pod in ready if pod.template == self.template), next(iter(ready), None))
