"""What the backup tool of a cluster has, asked when a recovery chooses its source, or a person may.

When it is asked, and what counts of its reports, is decided in `recovery.inquiry`. A tool is asked on
threads of its own; no pass waits for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.api.coreos import EtcdCluster
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.controllers.backup_tool.caches import is_of_tool
from etcd_operator.controllers.backup_tool.decide.policy import wanted
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.recovery.inquiry import Inquiry, inquire, known_backups
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    NO_TOOL_BACKUPS,
    RecordedToolBackup,
    ToolBackups,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import ASK_AGAIN
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Invalid, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.pod_views import Pod
from etcd_operator.pods.contract import BACKUP_TOOL_PORT
from etcd_operator.pods.http_client import Server, Trust
from etcd_operator.pods.reports import RestorableBackups

NOT_RUNNING = "its pod is not ready"


@dataclass(eq=False, kw_only=True)
class KnownToolBackups:
    """Of the clusters of `coreos.com`."""

    caches: Caches[EtcdCluster]
    writes: Writes
    tokens: Tokens
    inquiries: Inquiries[RestorableBackups]
    waits: Waits
    desired: Callable[[EtcdCluster], DesiredCluster]
    trust: Callable[[DesiredCluster], Trust | None]  # see `AuthorityStore.trust`; of a backup tool
    _memory: dict[Key, Inquiry] = field(default_factory=dict)

    def __call__(self, cluster: EtcdCluster, state: ClusterState) -> ToolBackups:
        """What is known now; nothing where no source is chosen or named."""
        key, restore, uid = cluster.metadata.key, state.desired.restore, state.desired.uid
        if restore is not None and not state.persisted.is_bootstrapped:
            return self._source(Key(key.namespace, restore.cluster))
        memory = self._memory.pop(key, None)
        last = self.inquiries.last_answer(key, uid).report if memory is not None else None
        memory, is_anew = inquire(memory, state, last)
        if is_anew:
            self.inquiries.forget(key)
            self.waits.forget(key)
        if memory is None:
            return NO_TOOL_BACKUPS
        self._memory[key] = memory
        asked = wanted(cluster.spec.get("backup"))
        if asked.policy is None and not asked.problem:
            return NO_TOOL_BACKUPS
        problem = asked.problem or self._ask(key, state)
        answer = self.inquiries.last_answer(key, uid)
        problem = problem or answer.problem
        return known_backups(
            memory,
            state,
            answer.report,
            is_answered=not (answer.problem or asked.problem),
            problem=problem,
            waited=self._waited(key, uid, problem),
            recorded=_recorded(cluster.status.backup or ClusterBackupStatus()),
        )

    def _waited(self, key: Key, owner: str, problem: str) -> float:
        """Not the time of the first question: as long as that may be answered, nothing is known yet."""
        if problem:
            return self.waits.seconds(key, owner)
        self.waits.end(key, owner)
        return 0.0

    def _source(self, key: Key) -> ToolBackups:
        """Whether a cluster has a backup tool that uses its claim for backups.

        Raises Invalid for one that cannot be read: what is chosen is written down, and never chosen again.
        """
        unreadable = self.caches.clusters.store.unreadable_at(key)
        if unreadable is not None:
            raise Invalid(f"EtcdCluster {key.name} exists and cannot be read: {unreadable.error}")
        found = self.caches.clusters.store.get(key)
        policy = wanted(found.spec.get("backup")).policy if found is not None else None
        if found is None or policy is None or policy.s3 is not None:
            return NO_TOOL_BACKUPS
        return ToolBackups(has_source_tool=True, is_source_secured=self.desired(found).secured.is_dialed)

    def _ask(self, key: Key, state: ClusterState) -> str:
        """Have the tool asked when it is time; why it cannot be asked."""
        pod = self._pod(key)
        if pod is None:
            return NOT_RUNNING
        try:
            server = Server(
                address=(pod.status.pod_ip, BACKUP_TOOL_PORT),
                token=self.tokens.get(key, state.desired.uid, self.writes.of(key)),
                trust=self.trust(state.desired),
            )
        except OperatorError as error:
            return f"it cannot be asked: {error}"
        if self.inquiries.last_answer(key, state.desired.uid).is_token_refused:
            self.tokens.forget(key)
        tool = PodServer(
            uid=pod.metadata.uid,
            owner=state.desired.uid,
            server=server,
            cluster_id=state.persisted.cluster_id,
        )
        self.inquiries.renew(key, tool, ASK_AGAIN)
        return ""

    def _pod(self, key: Key) -> Pod | None:
        """The tool's pod, if it is ready."""
        pods = self.caches.of_cluster(self.caches.pods, key)
        return next((pod for pod in pods if is_of_tool(pod) and _is_ready(pod)), None)


def _recorded(known: ClusterBackupStatus) -> RecordedToolBackup:
    return RecordedToolBackup(
        name=known.name, sha256=known.sha256, cluster_id=known.cluster_id, revision=known.revision
    )


def _is_ready(pod: Pod) -> bool:
    return pod.is_ready and not pod.metadata.is_deleting and bool(pod.status.pod_ip)
