"""The observed state of a cluster's backup tool: all that a decision about its objects may depend on."""

from dataclasses import dataclass

from etcd_operator.controllers.backup_tool.decide.policy import NO_BACKUPS, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClaimState:
    """The claim for backups. size: the storage that it requests in bytes, None if that is not understood."""

    name: str
    uid: str
    size: int | None
    is_terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReplicaSetState:
    """The tool's ReplicaSet. template: the digest of the template that it was made from."""

    name: str
    uid: str
    template: str
    replicas: int = 1
    is_terminating: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPodState:
    """A pod of that ReplicaSet. waits_for: why it is not ready, as Kubernetes reports it."""

    name: str
    uid: str
    template: str
    is_ready: bool = False
    is_terminating: bool = False
    address: str = ""
    waits_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupState:
    """How far the tool has removed the backups of a cluster that is being deleted.

    waited: seconds since the operator has seen the deletion. problem: why the last try failed.
    """

    is_done: bool = False
    waited: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolState:
    """What was observed of the backup tool of one cluster.

    has_finalizer: the deletion of the cluster waits until its backups are removed.
    template: the digest of the wanted template; empty if there is none. size: of the wanted claim in bytes, 0
    without one. has_secret: the Secret with the token exists.
    """

    wanted: Wanted = NO_BACKUPS
    is_deleting: bool = False
    is_paused: bool = False
    is_bootstrapped: bool = True
    has_finalizer: bool = False
    cleanup: CleanupState = CleanupState()
    template: str = ""
    size: int = 0
    has_secret: bool = False
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
