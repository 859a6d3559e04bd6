"""A persistent member in whose pod data is missing is given another pod before it is believed.

Which pod reported it first is written on the claim, so that an operator that dies in between knows it too.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from etcd_operator.api import improbable
from etcd_operator.core.actions import ClearMissing, RemakePod
from etcd_operator.core.members import ClaimFacts
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict, NotFound
from etcd_operator.kube import resources
from etcd_operator.kube.views import Pod
from etcd_operator.reconcile.facts import pod_facts
from etcd_operator.reconcile.objects import Objects, Report


@dataclass(frozen=True, kw_only=True)
class Remount:
    """Carries out both actions for one cluster."""

    objects: Objects
    state: ClusterState
    report: Report

    def act(self, action: RemakePod | ClearMissing, *, now: datetime) -> None:
        """Do it. Raises Conflict if the pod is not what was seen."""
        member = self.state.by_name[action.name]
        claim, pod = member.claim, member.pod
        if claim is None:
            return
        if isinstance(action, ClearMissing):
            self._mark(claim, None)
            return
        if pod is None:
            return
        self._assert_down(pod.name, pod.uid, now)
        if claim.missing_in != pod.uid:
            self._mark(claim, pod.uid)
        self.objects.remove(resources.PODS, pod.name, pod.uid)
        self.report("PodRemade", f"the data of {action.name} is missing in its pod: made the pod anew")

    def _assert_down(self, name: str, uid: str, now: datetime) -> None:
        """A process that runs by now has found its data, and may be needed for the quorum."""
        with suppress(NotFound):
            found = self.objects.client.get(resources.PODS, self.objects.key(name), Pod)
            if found.metadata.uid != uid or pod_facts(found, now=now).is_running:
                raise Conflict(f"the pod {name} is not what it was: looking again")

    def _mark(self, claim: ClaimFacts, pod: str | None) -> None:
        note = {"uid": claim.uid, "annotations": {improbable.MISSING_ANNOTATION: pod}}
        self.objects.patch(resources.CLAIMS, claim.name, {"metadata": note})
