"""Joins the caches into one `BackupState`, the cluster to back up among it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from etcd_operator.api.backups import COMPLETE, COMPLETED, VERIFIED, BackupSource, BackupSpec, EtcdBackup
from etcd_operator.api.meta import Condition, ObjectMeta, condition_of
from etcd_operator.api.persisted import AnyCluster
from etcd_operator.api.tls import MemberTls
from etcd_operator.controllers.etcd_backup.decide.plan import NOT_STARTED, gives_up_source, rests_on_absence
from etcd_operator.controllers.etcd_backup.decide.state import BackupState, SourceCluster
from etcd_operator.controllers.etcd_backup.manifests.backup_job import job_name
from etcd_operator.controllers.shared.decide.backup_spec import named_cluster, problem, rendered_url
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.manifests.etcd_access import EtcdCredentials
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import parsed
from etcd_operator.errors import Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer


@dataclass(frozen=True, kw_only=True)
class ObservedBackup:
    """An EtcdBackup as stored, and its state."""

    backup: EtcdBackup
    spec: BackupSpec | None  # None for an invalid one
    state: BackupState


Issue = Callable[[ObjectMeta, MemberTls], EtcdCredentials]
"""`(cluster, whether its members require a certificate)`: credentials for one Job. Raises OperatorError."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where backups are read from: the members of EtcdClusters, or URLs."""

    clusters: tuple[Informer[Any], ...]  # of both groups
    issue: Issue

    def find(self, source: BackupSource, namespace: str) -> SourceCluster:
        """The endpoints of a source, or why there are none.

        A URL with the name of a Service of an EtcdCluster means all members of that cluster, so that the
        best of them is chosen: a connection to the Service may end at any member.
        """
        if source.cluster_name:
            key = Key(namespace, source.cluster_name)
            return self._unreadable(key) or _source(key, self._cluster(key), source)
        name, address = named_cluster(source, namespace), _address(source.cluster_url)
        found = self._cluster(Key(namespace, name)) if name else None
        if found is None:
            return SourceCluster(endpoints=(address,))
        if _has_tls(found):  # its certificate is never sent to an address that a user chose
            return _source(Key(namespace, name), found, source)
        return SourceCluster(endpoints=_endpoints(found) or (address,), uid=found.metadata.uid)

    def credentials(self, source: BackupSource, namespace: str) -> EtcdCredentials:
        """With which a Job reaches the EtcdCluster that is the source. Raises the errors of `Client`."""
        found = self._cluster(Key(namespace, named_cluster(source, namespace)))
        if found is None or found.status.tls is None:
            raise Unavailable(f"EtcdCluster {named_cluster(source, namespace)} was deleted")
        return self.issue(found.metadata, found.status.tls.of_members)

    def find_live(self, source: BackupSource, objects: Objects) -> SourceCluster:
        """The same for an EtcdCluster, read from the API server. Raises the errors of `Client`."""
        key = objects.key(named_cluster(source, objects.namespace))
        found = (objects.find(informer.resource, key.name, AnyCluster) for informer in self.clusters)
        return _source(key, next((cluster for cluster in found if cluster is not None), None), source)

    def _unreadable(self, key: Key) -> SourceCluster | None:
        found = (informer.store.unreadable_at(key) for informer in self.clusters)
        error = next((each.error for each in found if each is not None), "")
        message = f"EtcdCluster {key.name} exists and cannot be read: {error}"
        return SourceCluster(reason="SourceNotReady", message=message) if error else None

    def _cluster(self, key: Key) -> Any:
        found: Iterable[Any] = (informer.store.get(key) for informer in self.clusters)
        return next((cluster for cluster in found if cluster is not None), None)


@dataclass(frozen=True, kw_only=True)
class BackupObserver:
    """Observes EtcdBackups, from the caches.

    What seems to be missing is read from the API server where a decision rests on that: a Job, the end or the
    start of its pod, the cluster.
    """

    jobs: JobReader
    sources: Sources

    def observe(self, backup: EtcdBackup, objects: Objects) -> ObservedBackup:
        """The observed state of one EtcdBackup. objects: reads live. Raises the errors of `Client`."""
        spec, wrong = parsed(backup.spec, BackupSpec, problem)
        status, key = backup.status, backup.metadata.key
        state = BackupState(
            phase=status.phase,
            is_deleting=backup.metadata.is_deleting,
            problem=wrong,
            url=status.url or _url(spec, backup.metadata),
            source=self.sources.find(spec.source, key.namespace) if spec else SourceCluster(),
            waited=self.jobs.waits.seconds(key, f"{backup.metadata.uid} {status.phase == COMPLETED}"),
            verify=_level(spec, backup),
            has_verdict=status.verification is not None and bool(status.verification.completion_time),
            sha256=status.sha256,
            etcd_version=status.etcd_version,
        )
        if state.phase and (state.is_to_be_verified or not state.is_final):
            state = self._with_job(backup, state, objects)
        if not state.is_final and spec is not None and gives_up_source(state):
            state = replace(state, source=self.sources.find_live(spec.source, objects))
        return ObservedBackup(backup=backup, spec=spec, state=state)

    def _with_job(self, backup: EtcdBackup, state: BackupState, objects: Objects) -> BackupState:
        """The same, with the Job that stores the backup, or that verifies it."""
        verification = backup.status.verification
        if state.is_to_be_verified and verification is not None:
            recorded, about = verification.job_name, VERIFIED
        else:
            recorded, about = backup.status.job_name, COMPLETE
        verdict = condition_of(backup.status.conditions, about)
        name = job_name(backup.metadata, is_verification=about == VERIFIED)
        return replace(
            state,
            is_job_recorded=bool(recorded),
            stopped=_stopped(verdict),
            message=verdict.message if verdict is not None else "",
            job=self.jobs.read(
                backup.metadata.key, backup.metadata.uid, name, objects, is_in_doubt=rests_on_absence
            ),
        )


def _url(spec: BackupSpec | None, metadata: ObjectMeta) -> str:
    return rendered_url(spec.destination.object_url_template, metadata) if spec is not None else ""


def _level(spec: BackupSpec | None, backup: EtcdBackup) -> str:
    """How it is to be verified: of a stored backup, as its status requests."""
    if backup.status.phase != COMPLETED:
        return (spec.verify or "") if spec is not None else ""
    verification = backup.status.verification
    return verification.level if verification is not None else ""


def _stopped(verdict: Condition | None) -> tuple[str, str]:
    """Why the operator stopped the Job, as it wrote before."""
    if verdict is None or verdict.reason != NOT_STARTED:
        return "", ""
    return verdict.reason, verdict.message


def _source(key: Key, found: Any, source: BackupSource) -> SourceCluster:
    """What a source that names an EtcdCluster means for it, None if there is none."""
    if found is None:
        return SourceCluster(
            reason="UnknownCluster",
            message=f"there is no EtcdCluster {key.name} in the namespace {key.namespace}: check "
            "spec.source.clusterName",
        )
    if found.metadata.is_deleting:
        return SourceCluster(reason="UnknownCluster", message=f"EtcdCluster {key.name} is being deleted")
    if not found.status.cluster_id or not found.status.endpoints:
        return SourceCluster(reason="SourceNotReady", message=f"EtcdCluster {key.name} has not served yet")
    return SourceCluster(
        endpoints=_endpoints(found),
        uid=found.metadata.uid,
        needs_secret=_has_tls(found) and not source.tls_secret,
    )


def _has_tls(cluster: Any) -> bool:
    """Whether its members are connected to with TLS: as recorded, whatever its spec says."""
    return cluster.status.tls is not None and cluster.status.tls.of_members.is_dialed


def _endpoints(cluster: Any) -> tuple[str, ...]:
    return tuple(_address(url) for url in cluster.status.endpoints)


def _address(url: str) -> str:
    """The `host:port` of a valid URL."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return host if parts.port is not None else f"{host}:{CLIENT_PORT}"
