"""The acts by which persistent members are restored from an EtcdBackup, after a loss or in place."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.backups import COMPLETED, BackupSpec, EtcdBackup
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.recoveries import Recovery, StoredBackup
from etcd_operator.api.shared_keys import RESTORE_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    CloseClients,
    ConfirmBackup,
    CreateClosedService,
    DropFilling,
    FillSeed,
    ReopenClients,
    RestoreAction,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import recovery_name
from etcd_operator.controllers.etcd_cluster.manifests import persistent, persistent_services, seed_job
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.shared.pruning import stop_pruning
from etcd_operator.decoding import convert
from etcd_operator.errors import Conflict, InvalidSpec
from etcd_operator.formats import timestamp
from etcd_operator.kube import resources
from etcd_operator.kube.views import Written
from etcd_operator.versions import image_of

CLOSED = "closed"
"""Instead of a token, which no pod has."""


@dataclass(frozen=True)
class Restoring:
    """See `members.persistent`. image: the operator's own; may raise. repository: of etcd's images."""

    scope: Scope
    image: Callable[[], str]
    repository: str

    def act(self, action: RestoreAction) -> None:
        """Carry it out. Raises Conflict where what is read live differs."""
        match action:
            case ConfirmBackup():
                self._confirm(action)
            case FillSeed():
                self._fill(action.name)
            case DropFilling():
                self._drop_filling(action.name)
            case CloseClients():
                self._close()
            case CreateClosedService():
                self._create_closed()
            case ReopenClients():
                self._reopen(action.name)
            case _:
                assert_never(action)

    def _confirm(self, action: ConfirmBackup) -> None:
        found = self.scope.objects.find(resources.BACKUPS, action.name, EtcdBackup)
        status = found.status if found is not None and found.metadata.uid == action.uid else None
        if status is None or (status.phase, status.sha256) != (COMPLETED, action.sha256):
            raise Conflict(
                f"the EtcdBackup {action.name} has changed since it was observed: not restoring it"
            )

    def _fill(self, name: str) -> None:
        """First the claim: a Job without one would wait for that of anybody."""
        recovery, backup = self._recovery()
        stop_pruning(self.scope.objects)
        desired = self.scope.desired.at(recovery.version)
        known = [m.claim for m in self.scope.state.members if m.claim is not None and m.name != name]
        is_root_owned = any(not claim.is_for_non_root for claim in known)
        body = persistent.seed_claim(desired, name, recovery.token, is_root_owned=is_root_owned)
        self.scope.create(resources.CLAIMS, body, "PVCCreated")
        claim = self.scope.objects.client.get(resources.CLAIMS, self.scope.objects.key(name), Written)
        try:
            access = convert(backup.spec, BackupSpec)
        except msgspec.ValidationError as error:
            raise InvalidSpec(f"EtcdBackup {backup.name}: {error}") from error
        job = seed_job.job(
            desired,
            recovery,
            access,
            image=self.image(),
            etcd_image=image_of(self.repository, recovery.version),
            claim_uid=claim.metadata.uid,
            is_root_owned=is_root_owned,
        )
        self.scope.create(resources.JOBS, job, "JobCreated")

    def _recovery(self) -> tuple[Recovery, StoredBackup]:
        recovery = self.scope.recovery
        if recovery.stored_backup is None:
            raise Conflict("no backup is being restored")
        return recovery, recovery.stored_backup

    def _drop_filling(self, name: str) -> None:
        """Never where the seed was found to serve: the volume of its data must not be deleted after that."""
        desired, objects = self.scope.desired, self.scope.objects
        recovery = self.scope.recovery
        if recovery.stored_backup is None:
            return
        claim = objects.find(resources.CLAIMS, name, Written)
        found = claim.metadata.annotations if claim is not None else {}
        is_seeds = found.get(TOKEN_ANNOTATION) == recovery.token  # not of a later member
        if is_seeds and improbable.CLUSTER_ID_ANNOTATION in found:
            raise Conflict(f"{name} was found to serve: it is not deleted")
        job = seed_job.job_name(desired, recovery)
        objects.remove_of(desired.uid, resources.JOBS, job, propagation="Foreground")

    def _close(self) -> None:
        """Only while it is requested, live: the next act has no way back."""
        recovery, _ = self._recovery()
        desired, objects = self.scope.desired, self.scope.objects
        cluster = objects.client.get(resources.IMPROBABLE_CLUSTERS, desired.key, Written).metadata
        requested, name = cluster.annotations.get(RESTORE_ANNOTATION), recovery_name(recovery)
        if cluster.uid != desired.uid or requested != name:
            raise Conflict(f"{name} is not requested any more: the old cluster is not changed")
        self._select(CLOSED, closed=self.scope.now)

    def _create_closed(self) -> None:
        *others, body = persistent_services.services(self.scope.desired)
        body["metadata"]["annotations"] = {improbable.CLOSED_ANNOTATION: timestamp(self.scope.now)}
        body["spec"]["selector"][persistent_services.client_label(self.scope.desired)] = CLOSED
        for each in (*others, body):
            self.scope.create(resources.SERVICES, each, "ServiceCreated")

    def _reopen(self, seed: str) -> None:
        """Never where the seed was found to serve: its cluster takes the place of the old one."""
        desired = self.scope.desired
        claim = self.scope.objects.find(resources.CLAIMS, seed, Written)
        annotations = claim.metadata.annotations if claim is not None else {}
        if annotations.get(improbable.CLUSTER_ID_ANNOTATION) not in (None, desired.persisted.cluster_id):
            raise Conflict(f"{seed} was found to serve: clients do not reach the old cluster again")
        self._select(self.scope.desired.token, closed=None)

    def _select(self, token: str, *, closed: datetime | None) -> None:
        """Change the Service's selector. closed: since when it selects nobody, which is kept if it is known.

        A request that is applied late must not undo what has been written since, such as `open_seed`.
        """
        found = self._service()
        since = timestamp(closed) if closed is not None else None
        if since is not None:
            since = found.annotations.get(improbable.CLOSED_ANNOTATION, since)
        change = {
            "metadata": {"annotations": {improbable.CLOSED_ANNOTATION: since}},
            "spec": {"selector": {persistent_services.client_label(self.scope.desired): token}},
        }
        self.scope.objects.merge(resources.SERVICES, found, change, version=found.resource_version)

    def _service(self) -> ObjectMeta:
        desired, objects = self.scope.desired, self.scope.objects
        found = objects.client.get(resources.SERVICES, objects.key(desired.name), Written).metadata
        if found.controller_uid != desired.uid:
            raise Conflict(f"Service {desired.name} is not this cluster's")
        return found
