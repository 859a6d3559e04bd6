"""What the backup tool of a cluster has, asked when a recovery chooses its source, or a person may.

No backup can be begun without a quorum, so what a tool reports since the loss is final. What it has reported
before, for a message to a person, does not count. A tool is asked on threads of its own; no pass waits for
it.
"""

from dataclasses import dataclass, field

from etcd_operator.api.coreos import EtcdCluster
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.controllers.backup_tool.caches import is_of_tool
from etcd_operator.controllers.backup_tool.decide.policy import wanted
from etcd_operator.controllers.backup_tool.tokens import Tokens
from etcd_operator.controllers.etcd_cluster.decide.recovery.from_backup import ASK_AGAIN
from etcd_operator.controllers.etcd_cluster.decide.recovery.known_backups import (
    NO_TOOL_BACKUPS,
    ToolBackups,
    revision_named,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.quorum_lost import chooses_source, names_backup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Invalid, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.views import Pod
from etcd_operator.pods.contract import BACKUP_TOOL_PORT
from etcd_operator.pods.tool_report import RestorableBackups

NOT_RUNNING = "its pod is not ready"


@dataclass(eq=False, kw_only=True)
class KnownToolBackups:
    """Of the clusters of `coreos.com`.

    _named: clusters whose status names a backup to a person. _outdated: what their tools had reported until
    a source was to be chosen.
    """

    caches: Caches[EtcdCluster]
    writes: Writes
    tokens: Tokens
    inquiries: Inquiries[RestorableBackups]
    waits: Waits
    _named: set[Key] = field(default_factory=set)
    _outdated: dict[Key, RestorableBackups] = field(default_factory=dict)

    def __call__(self, cluster: EtcdCluster, state: ClusterState) -> ToolBackups:
        """What is known now; nothing where no source is chosen or named."""
        key, restore = cluster.metadata.key, state.desired.restore
        if restore is not None and not state.persisted.is_bootstrapped:
            return ToolBackups(has_source_tool=self._uses_claim(Key(key.namespace, restore.cluster)))
        chooses = chooses_source(state)
        if not chooses and not names_backup(state):
            self._forget(key)
            return NO_TOOL_BACKUPS
        if not chooses:
            self._named.add(key)
        elif key in self._named:
            self._ask_anew(key, state.desired.uid)
        asked = wanted(cluster.spec.get("backup"))
        if asked.policy is None and not asked.problem:
            return NO_TOOL_BACKUPS
        problem = asked.problem or self._ask(key, state)
        answer = self.inquiries.last_answer(key, state.desired.uid)
        problem = problem or answer.problem
        return ToolBackups(
            is_kept=True,
            report=answer.report if not (answer.problem or asked.problem) else None,
            waited=self._waited(key, state.desired.uid, problem),
            problem=problem,
            known_revision=max(
                _recorded(cluster.status.backup, state),
                revision_named(answer.report, state.persisted.cluster_id),
                revision_named(self._outdated.get(key), state.persisted.cluster_id),
            ),
        )

    def _waited(self, key: Key, owner: str, problem: str) -> float:
        """Not the time of the first question: as long as that may be answered, nothing is known yet."""
        if problem:
            return self.waits.seconds(key, owner)
        self.waits.end(key, owner)
        return 0.0

    def _uses_claim(self, key: Key) -> bool:
        """Whether a cluster has a backup tool that uses its claim for backups.

        Raises Invalid for one that cannot be read: what is chosen is written down, and never chosen again.
        """
        unreadable = self.caches.clusters.store.unreadable_at(key)
        if unreadable is not None:
            raise Invalid(f"EtcdCluster {key.name} exists and cannot be read: {unreadable.error}")
        found = self.caches.clusters.store.get(key)
        policy = wanted(found.spec.get("backup")).policy if found is not None else None
        return policy is not None and policy.s3 is None

    def _ask_anew(self, key: Key, owner: str) -> None:
        """A quorum that the operator did not reach may have gone on: newer backups may be stored by now.

        None of those that were named is forgotten.
        """
        named = self.inquiries.last_answer(key, owner).report or self._outdated.get(key)
        self._forget(key)
        if named is not None:
            self._outdated[key] = named

    def _forget(self, key: Key) -> None:
        self._named.discard(key)
        self._outdated.pop(key, None)
        self.inquiries.forget(key)
        self.waits.forget(key)

    def _ask(self, key: Key, state: ClusterState) -> str:
        """Have the tool asked when it is time; why it cannot be asked."""
        pod = self._pod(key)
        if pod is None:
            return NOT_RUNNING
        try:
            token = self.tokens.get(key, state.desired.uid, self.writes.of(key))
        except OperatorError as error:
            return f"its token cannot be read: {error}"
        if self.inquiries.last_answer(key, state.desired.uid).is_token_refused:
            self.tokens.forget(key)
        tool = PodServer(
            uid=pod.metadata.uid,
            owner=state.desired.uid,
            address=(pod.status.pod_ip, BACKUP_TOOL_PORT),
            token=token,
            cluster_id=state.persisted.cluster_id,
        )
        self.inquiries.renew(key, tool, ASK_AGAIN)
        return ""

    def _pod(self, key: Key) -> Pod | None:
        """The tool's pod, if it is ready."""
        pods = self.caches.of_cluster(self.caches.pods, key)
        return next((pod for pod in pods if is_of_tool(pod) and _is_ready(pod)), None)


def _recorded(known: ClusterBackupStatus | None, state: ClusterState) -> int:
    """Of the newest backup as the status names it; that of a deleted cluster of this name does not count."""
    if known is None or known.cluster_id not in ("", state.persisted.cluster_id):
        return 0
    return known.revision


def _is_ready(pod: Pod) -> bool:
    return pod.is_ready and not pod.metadata.is_deleting and bool(pod.status.pod_ip)
