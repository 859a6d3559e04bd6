"""The EtcdBackups that an EtcdCluster can be restored from, and the Job that does so.

From the caches, and only where a backup may be restored: without a quorum, on request, or under way. What a
cache does not show yet is offered later; all are listed live before a recovery begins, and the one that is
restored is read live before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from etcd_operator.api import improbable
from etcd_operator.api.backups import VERIFIED, EtcdBackup
from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import selected_token
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts, CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import named
from etcd_operator.controllers.etcd_cluster.manifests import seed_job
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.controllers.shared.decide.backup_spec import is_restorable
from etcd_operator.controllers.shared.decide.job_state import JobState
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Forbidden, NotFound
from etcd_operator.formats import instant, moment, without_padding
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer


@dataclass(frozen=True, kw_only=True)
class StoredBackups:
    """Of the clusters of `etcd.improbable.io`."""

    caches: Caches[EtcdCluster]
    backups: Informer[EtcdBackup]
    jobs: JobReader
    writes: Writes
    clock: Clock

    def __call__(self, cluster: EtcdCluster, state: ClusterState) -> BackupFacts:
        """What is known now; of backups nothing where none may be restored. Raises the errors of `Client`."""
        persisted, key = state.persisted, cluster.metadata.key
        may_restore = not state.has_quorum or persisted.is_recovering or state.desired.restore_in_place
        job = self._job(key, state)
        if not persisted.is_bootstrapped or not may_restore:
            if job is None:
                self.jobs.forget(key)
            return self._with_service(key, state, BackupFacts(job=job))
        refusal = self._refusal()
        facts = BackupFacts(
            is_listed=self.backups.has_synced,
            is_awaited=self.backups.is_listing and not refusal,
            refusal=refusal,
            unreadable=self._unreadable(key.namespace),
            stored=tuple(self._stored(key)) if self.backups.has_synced else (),
            job=job,
        )
        return self._with_service(key, state, facts)

    def _refusal(self) -> str:
        """A definition that is missing (then nobody has an EtcdBackup), or a permission."""
        error = self.backups.reflector.last_error
        return str(error) if self.backups.is_listing and isinstance(error, (Forbidden, NotFound)) else ""

    def _unreadable(self, namespace: str) -> str:
        """Of any cluster: which one cannot be known."""
        all_of_them = self.backups.store.unreadable
        found = [f"{each.key.name} ({each.error})" for each in all_of_them if each.key.namespace == namespace]
        return f"EtcdBackup {named(found)} cannot be read" if found else ""

    def _stored(self, key: Key) -> Iterator[CompletedBackup]:
        now = self.clock.now()
        for backup in self.backups.store.values():
            status = backup.status
            if not is_restorable(backup, key):
                continue
            # What was written while the backup was taken may be missing from it.
            taken = status.start_time or status.completion_time
            yield CompletedBackup(
                name=backup.metadata.name,
                uid=backup.metadata.uid,
                cluster_id=without_padding(status.cluster_id),
                revision=status.revision,
                etcd_version=status.etcd_version,
                sha256=status.sha256,
                time=taken,
                age=max(0, int((now - instant(taken)).total_seconds())) if taken else 0,
                url=status.url,
                size=status.size,
                spec=backup.spec,
                is_damaged=any(c.type == VERIFIED and c.status == "False" for c in status.conditions),
            )

    def _job(self, key: Key, state: ClusterState) -> JobState | None:
        """Until the seed is started; then its own claim and pod show how far it is.

        After the end of the recovery: live as long as its claim is being deleted, because a pod may use it;
        then from the cache, where one may appear that was created late.
        """
        recovery = state.persisted.recovery
        if recovery is None or recovery.stored_backup is None:
            return None
        seed, uid = state.by_name.get(recovery.seed), state.desired.uid
        name, is_recovering = seed_job.job_name(state.desired, recovery), state.persisted.is_recovering
        if is_recovering and seed is not None and seed.peer is not None:
            return None
        if is_recovering or _is_going(seed, recovery):
            return self.jobs.read(key, uid, name, self.writes.of(key))
        return self.jobs.cached(key, uid, name)

    def _with_service(self, key: Key, state: ClusterState, facts: BackupFacts) -> BackupFacts:
        """With whether the Service is closed, by its selector as well as by its annotation.

        Annotations get lost, and a seed is selected before it is on record. A Service that does not select
        by a token is one of an earlier operator, and selects all members.
        """
        service = self.caches.services.store.get(key)
        if service is None:
            return facts
        token = selected_token(service.spec.selector)
        closed = service.metadata.annotations.get(improbable.CLOSED_ANNOTATION)
        since = moment(closed) if closed is not None else None  # somebody may have changed it
        return replace(
            facts,
            is_closed=closed is not None or token not in (None, state.desired.token),
            closed_for=max(0.0, (self.clock.now() - since).total_seconds()) if since is not None else 0.0,
        )


def _is_going(seed: Member | None, recovery: Recovery) -> bool:
    """Whether the claim of a recovery's seed is being deleted."""
    claim = seed.claim if seed is not None else None
    return claim is not None and claim.is_terminating and claim.token == recovery.token
