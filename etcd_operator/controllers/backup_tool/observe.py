"""Joins the caches into one `ToolState`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from etcd_operator.api.coreos import EtcdCluster
from etcd_operator.api.coreos_backup import CLEANUP_FINALIZER
from etcd_operator.controllers.backup_tool.caches import ToolCaches
from etcd_operator.controllers.backup_tool.certificates import ToolCertificates
from etcd_operator.controllers.backup_tool.decide.policy import Wanted, wanted
from etcd_operator.controllers.backup_tool.decide.state import (
    ToolClaimState,
    ToolPodState,
    ToolReplicaSetState,
    ToolState,
)
from etcd_operator.controllers.backup_tool.manifests.backup_tool import (
    TEMPLATE_ANNOTATION,
    ToolSettings,
    claim_name,
    replica_set,
    tool_name,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.errors import InvalidSpec, OperatorError
from etcd_operator.formats import MIB, bytes_of
from etcd_operator.keys import Key
from etcd_operator.kube.pod_views import OOM_KILLED, Pod
from etcd_operator.kube.views import ReplicaSet
from etcd_operator.pods.http_client import Trust


@dataclass(frozen=True, kw_only=True)
class ObservedTool:
    """A cluster as stored and as desired, and its tool."""

    cluster: EtcdCluster
    desired: DesiredCluster
    tool: ToolSettings | None  # None where none can be rendered
    state: ToolState
    token: str = ""
    trust: Trust | None = None  # how the tool is verified
    problem: OperatorError | None = (
        None  # why it cannot be rendered, or its token not be read: nothing is done
    )


@dataclass(frozen=True, kw_only=True)
class ToolObserver:
    """Observes the backup tools. Only Secrets are read live, rarely. image: may raise, see `OwnImage`."""

    caches: ToolCaches
    dialect: CoreosDialect
    tokens: Tokens
    certificates: ToolCertificates
    image: Callable[[], str]

    def observe(self, key: Key, cluster: EtcdCluster, objects: Objects) -> ObservedTool:
        """The observed state of one cluster's tool. `problem`: what kept it from being complete."""
        desired, asked = self.dialect.desired(cluster), wanted(cluster.spec.get("backup"))
        tool, token, trust, is_current, is_unused, problem = None, "", None, True, False, None
        try:
            tool = self._tool(desired, asked)
            if tool is not None:
                token = self.tokens.get(key, desired.uid, objects)
                trust = self.certificates.trust(desired)
                is_current = self.certificates.are_current(desired, objects)
                is_unused = self.certificates.are_unused(desired, objects)
        except OperatorError as error:
            problem = error
        state = replace(
            self._state(key, desired, asked, tool, has_secret=bool(token)),
            has_certificates=is_current,
            has_unused_certificates=is_unused,
            has_finalizer=CLEANUP_FINALIZER in cluster.metadata.finalizers,
        )
        return ObservedTool(
            cluster=cluster,
            desired=desired,
            tool=tool,
            state=state,
            token=token,
            trust=trust,
            problem=problem,
        )

    def _tool(self, desired: DesiredCluster, asked: Wanted) -> ToolSettings | None:
        """Raises `InvalidSpec` where the rest of the spec is wrong, and what `image` raises."""
        if asked.policy is None:
            return None
        if desired.problem:
            raise InvalidSpec(desired.problem)
        return ToolSettings(cluster=desired, policy=asked.policy, image=self.image())

    def _state(
        self, key: Key, desired: DesiredCluster, asked: Wanted, tool: ToolSettings | None, *, has_secret: bool
    ) -> ToolState:
        found = self.caches.replica_sets.store.get(Key(key.namespace, tool_name(key.name)))
        service = self.caches.of_clusters.services.store.get(Key(key.namespace, tool_name(key.name)))
        ours = found if found is not None and found.metadata.controller_uid == desired.uid else None
        size = asked.policy.volume_size_in_mb if asked.policy is not None and asked.policy.s3 is None else 0
        return ToolState(
            wanted=asked,
            is_deleting=desired.is_deleting,
            is_paused=desired.is_paused,
            # A new cluster may be restored from its own backups.
            is_bootstrapped=desired.persisted.is_bootstrapped or desired.persisted.is_restoring,
            template=_template(replica_set(tool)["metadata"]["annotations"]) if tool is not None else "",
            size=(size or 0) * MIB,
            has_secret=has_secret,
            has_service=service is not None and service.metadata.controller_uid == desired.uid,
            claim=self._claim(key),
            replica_set=_replica_set(ours) if ours is not None else None,
            pods=tuple(
                pod_state(pod)
                for pod in self.caches.pods(key)
                if ours is not None and pod.metadata.controller_uid == ours.metadata.uid
            ),
        )

    def _claim(self, key: Key) -> ToolClaimState | None:
        found = self.caches.claims.store.get(Key(key.namespace, claim_name(key.name)))
        if found is None:
            return None
        return ToolClaimState(
            name=found.metadata.name,
            uid=found.metadata.uid,
            size=bytes_of(str(found.spec.resources.requests.get("storage", ""))),
            is_terminating=found.metadata.is_deleting,
        )


def _replica_set(found: ReplicaSet) -> ToolReplicaSetState:
    return ToolReplicaSetState(
        name=found.metadata.name,
        uid=found.metadata.uid,
        template=_template(found.metadata.annotations),
        replicas=found.spec.replicas,
        is_terminating=found.metadata.is_deleting,
        problem=found.failure.message if found.failure is not None else "",
    )


def pod_state(pod: Pod) -> ToolPodState:
    """What Kubernetes reports of a pod of the tool."""
    return ToolPodState(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        template=_template(pod.metadata.annotations),
        is_ready=pod.is_ready,
        is_terminating=pod.metadata.is_deleting or pod.status.phase == "Failed",
        address=pod.status.pod_ip,
        waits_for=_waits_for(pod),
    )


def _waits_for(pod: Pod) -> str:
    containers = pod.status.container_statuses
    ends = (each.last_state.terminated for each in containers)
    ended = next((end for end in ends if end is not None), None)
    memory = next(filter(None, map(pod.out_of_memory, containers)), "")
    waits = pod.waits_for(*pod.status.init_container_statuses, *containers)
    if waits or ended is None:
        return waits
    if memory:
        return f"{OOM_KILLED}: {memory}"
    return f"it ended with exit code {ended.exit_code}, see `kubectl logs {pod.metadata.name} --previous`"


def _template(annotations: dict[str, str]) -> str:
    return annotations.get(TEMPLATE_ANNOTATION, "")
