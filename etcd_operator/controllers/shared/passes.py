"""What passes over the objects of one kind have in common: how they begin, fail, and are reported."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.shared.caches import Caches, Cluster, Object
from etcd_operator.controllers.shared.decide.backup_health import UNHEALTHY
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD
from etcd_operator.controllers.shared.failures import Failures, is_waited_for, reason_of
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written

WARNINGS = frozenset(
    {
        "ClaimsLost",
        "CleanupGivenUp",
        "LabelsRestored",
        "QuorumLost",
        "RecoveryStarted",
        "Recovered",
        UNHEALTHY,
    }
)
"""Reasons of Events of type Warning, although they report something done."""

ReportEvent = Callable[[Any, str, str, bool], None]
"""`(cluster, reason, message, is_warning)`: an Event on the cluster."""


@dataclass(frozen=True, kw_only=True)
class Passes(Generic[Object]):
    """The passes of one controller over one kind of object."""

    objects: Informer[Object]
    writes: Writes
    failures: Failures
    unreadables: Unreadables
    recorder: Recorder

    def over(
        self, key: Key, run: Callable[[Object, Objects], Result], gone: Callable[[Key], object]
    ) -> Result:
        """One pass: `run` if the object exists, `gone` if it does not. Raises what is worth another try."""
        if self.unreadables.exists(key):
            return Result()
        found = self.objects.store.get(key)
        if found is None:
            self.failures.passed(key)
            gone(key)
            return Result()
        return self.writes.pass_over(key, lambda objects: run(found, objects))

    def failed(self, key: Key, error: OperatorError, report: Callable[[str, str], None]) -> Result:
        """How a pass ends that cannot act; `report` gets reason and message as soon as they are worth it.

        Raises the error if the engine has to try again.
        """
        message = self.failures.failed(key, error)
        if message:
            report(reason_of(error), message)
        if not is_waited_for(error):
            raise error
        return Result(requeue_after=RETRY_HELD)

    def event(self, about: Object, kind: EventType, reason: str, message: str) -> None:
        """An Event on an object."""
        self.recorder.record(Reference.to(self.objects.resource, about.metadata), kind, reason, message)


def is_going(resource: Resource, metadata: ObjectMeta, objects: Objects) -> bool:
    """Whether an object, or its namespace, is being deleted: what is missing then is no loss to report.

    Live, because objects of a namespace that goes are deleted in any order. Not known counts as no.
    """
    try:
        found = objects.find(resource, metadata.name, Written)
        if found is None or found.metadata.uid != metadata.uid or found.metadata.is_deleting:
            return True
        namespace = objects.find(resources.NAMESPACES, metadata.namespace, Written)
    except OperatorError:
        return False
    return namespace is None or namespace.metadata.is_deleting


def cluster_reporter(recorder: Recorder, caches: Caches[Cluster]) -> ReportEvent:
    """Events on the clusters of one group."""

    def report(cluster: Any, reason: str, message: str, is_warning: bool) -> None:  # noqa: FBT001 -- see `ReportEvent`
        kind: EventType = "Warning" if is_warning else "Normal"
        recorder.record(Reference.to(caches.resource, cluster.metadata), kind, reason, message)

    return report
