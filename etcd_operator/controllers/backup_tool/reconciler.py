"""One pass over the backups of one `coreos.com` cluster: observe, plan, act, ask the tool, report.

It is a controller of its own: whatever fails here delays no pass over the members. It hands over to that pass
what the status is to report.
"""

from dataclasses import dataclass, replace
from functools import partial

from etcd_operator.api.coreos import EtcdCluster
from etcd_operator.api.coreos_backup import BackupPolicy
from etcd_operator.controllers.backup_tool.act import ToolActor
from etcd_operator.controllers.backup_tool.caches import ToolCaches
from etcd_operator.controllers.backup_tool.decide.health import (
    Problem,
    ToolFacts,
    condition,
    stored,
    tool_metrics,
)
from etcd_operator.controllers.backup_tool.decide.plan import plan
from etcd_operator.controllers.backup_tool.decide.state import CleanupState, ToolPodState
from etcd_operator.controllers.backup_tool.observe import ObservedTool, ToolObserver
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.decide.backup_health import BackupHealth
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD
from etcd_operator.controllers.shared.failures import attempt, is_waited_for, reason_of
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.inquiries import Inquiries, LastAnswer, PodServer
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.controllers.shared.storage_class import class_name
from etcd_operator.controllers.shared.waits import Waits
from etcd_operator.engine.controller import Result
from etcd_operator.formats import instant, timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.pods.contract import BACKUP_TOOL_PORT
from etcd_operator.pods.http_client import Server
from etcd_operator.pods.reports import ToolReport

KIND = resources.COREOS_CLUSTERS.kind

CLEANUP_RECHECK = 5.0
"""Seconds until a tool that could not remove all backups is asked again."""

SLOWEST_QUESTIONS = 30.0
FASTEST_QUESTIONS = 1.0
"""Seconds between two questions; within these, half of the interval."""


@dataclass(frozen=True, kw_only=True)
class ToolReconciler:
    """Looks after the backup tools."""

    wiring: Wiring
    passes: Passes[EtcdCluster]
    caches: ToolCaches
    observer: ToolObserver
    inquiries: Inquiries[ToolReport]
    cleanups: Inquiries[ToolReport]  # they ask tools to remove all backups
    waits: Waits
    reports: BackupReports

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        return self.passes.over(key, self._pass, self._forget)

    def _pass(self, cluster: EtcdCluster, objects: Objects) -> Result:
        key = cluster.metadata.key
        observed = self.observer.observe(key, cluster, objects)
        if observed.state.is_deleting:
            return self._delete(key, observed, objects)
        return self._carry_out(key, observed, objects)

    def _forget(self, key: Key) -> None:
        self.waits.forget(key)
        self.inquiries.forget(key)
        self.cleanups.forget(key)
        self.observer.tokens.forget(key)
        self.observer.certificates.forget(key)
        self.reports.forget(key)
        self.wiring.on_metrics(KIND, key, None)

    def _carry_out(self, key: Key, observed: ObservedTool, objects: Objects) -> Result:
        failure = observed.problem or attempt(lambda: self._act(observed, objects))
        problem = self._explained(key, failure)
        again = self._ask(key, observed)
        self._report(observed, self._facts(key, observed, problem))
        if failure is None:
            return Result(requeue_after=again)
        if not is_waited_for(failure):
            raise failure
        return Result(requeue_after=RETRY_HELD if again is None else min(again, RETRY_HELD))

    def _delete(self, key: Key, observed: ObservedTool, objects: Objects) -> Result:
        """Remove what is stored if that is wanted; the status of a cluster that goes is not written."""
        self.wiring.on_metrics(KIND, key, None)
        if not observed.state.has_finalizer:
            return Result()
        answer = self.cleanups.last_answer(key, observed.desired.uid)
        cleanup = CleanupState(
            is_done=answer.report is not None,
            waited=self.waits.seconds(key, f"{observed.desired.uid} to be cleaned up"),
            problem=answer.problem,
        )
        self._act(replace(observed, state=replace(observed.state, cleanup=cleanup)), objects)
        return Result(requeue_after=CLEANUP_RECHECK)

    def _clean_up(self, observed: ObservedTool) -> None:
        pod = observed.state.running
        if pod is not None and pod.address and observed.token:
            self.cleanups.renew(observed.desired.key, _asked(observed, pod), CLEANUP_RECHECK)

    def _act(self, observed: ObservedTool, objects: Objects) -> None:
        actor = ToolActor(
            observed=observed,
            objects=objects,
            caches=self.caches,
            tokens=self.observer.tokens,
            certificates=self.observer.certificates,
            storage_class=class_name(self.wiring.pv_provisioner) if self.wiring.pv_provisioner else "",
            event=partial(self.passes.event, observed.cluster),
            clean_up=lambda: self._clean_up(observed),
        )
        for action in plan(observed.state):
            actor.act(action)

    def _explained(self, key: Key, failure: Exception | None) -> Problem | None:
        """Why the last pass failed, once it is worth a message."""
        if failure is None:
            self.passes.failures.passed(key)
            return None
        message = self.passes.failures.failed(key, failure)
        return Problem(reason=reason_of(failure), message=message) if message else None

    def _ask(self, key: Key, observed: ObservedTool) -> float | None:
        """Have the tool asked when it is time; seconds until it is time again."""
        state, policy = observed.state, observed.state.wanted.policy
        if policy is None:
            self.inquiries.forget(key)
            self.waits.forget(key)
            return None
        every = _every(policy)
        pod = state.running
        if pod is None or not pod.address or not observed.token:
            return every
        if self.inquiries.last_answer(key, observed.desired.uid).is_token_refused:
            self.observer.tokens.forget(key)
        return self.inquiries.renew(key, _asked(observed, pod), every)

    def _facts(self, key: Key, observed: ObservedTool, problem: Problem | None) -> ToolFacts:
        if observed.state.wanted.policy is None:
            return ToolFacts()
        answer = self.inquiries.last_answer(key, observed.desired.uid)
        refused = problem.message if problem is not None else ""
        if problem is None and answer.problem:
            problem = Problem(
                reason=_unanswered(answer), message=f"the backup tool gives no report: {answer.problem}"
            )
        return ToolFacts(
            report=answer.report,
            since_success=self._since_success(observed.cluster, answer),
            tool_age=answer.server_age,
            waited=self.waits.seconds(key, f"{observed.desired.uid} to be backed up"),
            problem=problem,
            refused=refused,
        )

    def _since_success(self, cluster: EtcdCluster, answer: LastAnswer[ToolReport]) -> float | None:
        """By the last report; before the first one, by the newest backup in the status."""
        if answer.report is not None and answer.report.since_success is not None:
            return answer.report.since_success + answer.age
        known = cluster.status.backup
        if known is None or not known.time:
            return None
        return max(0.0, (self.wiring.clock.now() - instant(known.time)).total_seconds())

    def _report(self, observed: ObservedTool, facts: ToolFacts) -> None:
        """Show metrics, and hand over what the status is to report; without a report, `backup` stays."""
        cluster, state, now = observed.cluster, observed.state, self.wiring.clock.now()
        before = self.reports.merged(cluster, timestamp(now)).status
        generation = cluster.metadata.generation
        wanted = condition(state, facts, before.conditions, before.backup, generation=generation)
        backup = stored(before.backup, facts.report) if wanted is not None else None
        shown = (
            tool_metrics(cluster.metadata.name, facts, backup, wanted, now) if wanted is not None else None
        )
        self.wiring.on_metrics(KIND, cluster.metadata.key, shown)
        fields = {"backup": backup} if wanted is None or facts.report is not None else {}
        self.reports.hand_over(cluster, BackupHealth(condition=wanted, fields=fields), timestamp(now))


def _every(policy: BackupPolicy) -> float:
    return min(SLOWEST_QUESTIONS, max(FASTEST_QUESTIONS, policy.backup_interval_in_second / 2))


def _unanswered(answer: LastAnswer[ToolReport]) -> str:
    return "TokenRefused" if answer.is_token_refused else "ToolUnreachable"


def _asked(observed: ObservedTool, pod: ToolPodState) -> PodServer:
    server = Server(address=(pod.address, BACKUP_TOOL_PORT), token=observed.token, trust=observed.trust)
    return PodServer(uid=pod.uid, owner=observed.desired.uid, server=server)
