"""One pass over one EtcdRestore: observe, plan, write the status, act.

The EtcdRestore is read live, and its status is written before each act, with the resourceVersion of what was
decided on: of two operators, one fails there. A status that is not new is not written, so each act also
requires that this process leads. What each act makes has a name that follows from the EtcdRestore, and is
proven to be its own by its UID. So each act may be repeated.
"""

from dataclasses import dataclass, replace
from typing import assert_never

import msgspec

from etcd_operator.api.restores import COMPLETED, FAILED, PENDING, EtcdRestore, RestoreFailure
from etcd_operator.controllers.etcd_restore.decide import spec as specs
from etcd_operator.controllers.etcd_restore.decide.actions import Act, RestorePlan
from etcd_operator.controllers.etcd_restore.decide.plan import plan
from etcd_operator.controllers.etcd_restore.decide.state import ClaimState
from etcd_operator.controllers.etcd_restore.decide.status import status
from etcd_operator.controllers.etcd_restore.manifests import restore_job, restored
from etcd_operator.controllers.etcd_restore.metrics import RestoreMetricsReporter
from etcd_operator.controllers.etcd_restore.observe import ObservedRestore, RestoreObserver
from etcd_operator.controllers.shared.decide.holds import CATCH_UP
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.jobs import JobCaches
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.controllers.shared.pruning import stop_pruning
from etcd_operator.engine.controller import Result
from etcd_operator.errors import Invalid, NotLeading, OperatorError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Written
from etcd_operator.versions import image_of


@dataclass(frozen=True, kw_only=True)
class RestoreReconciler:
    """Carries out EtcdRestores."""

    wiring: Wiring
    caches: JobCaches[EtcdRestore]
    passes: Passes[EtcdRestore]
    observer: RestoreObserver
    metrics: RestoreMetricsReporter

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        return self.passes.over(key, self._pass, self._deleted)

    def _pass(self, cached: EtcdRestore, objects: Objects) -> Result:
        if cached.status.phase in (COMPLETED, FAILED):
            return self._after_end(cached, objects)
        key = cached.metadata.key
        restore = objects.find(resources.RESTORES, key.name, EtcdRestore)
        if restore is None:
            return self._deleted(key)
        self.metrics.begun(restore)
        observed = self.observer.observe(restore, objects)
        made = plan(observed.state)
        if made is None:
            return self._ended(restore)
        self.metrics.observed(restore, observed.state)
        written = self._write(observed, made, objects)
        if written is None:
            return self._deleted(key)
        return self._carry_out(written, made, objects)

    def _after_end(self, restore: EtcdRestore, objects: Objects) -> Result:
        """Remove the Jobs that an earlier operator has left; the caches know them, nothing is asked."""
        for job in self.caches.jobs_of(restore.metadata):
            if not job.metadata.is_deleting:
                objects.remove(resources.JOBS, job.metadata, propagation="Foreground")
        return self._ended(restore)

    def _deleted(self, key: Key) -> Result:
        self.metrics.forget(key)
        return self._over(key)

    def _ended(self, restore: EtcdRestore) -> Result:
        """It has ended, or is being deleted."""
        self.metrics.ended(restore)
        return self._over(restore.metadata.key)

    def _over(self, key: Key) -> Result:
        self.passes.failures.passed(key)
        self.observer.forget(key)
        return Result()

    def _carry_out(self, observed: ObservedRestore, made: RestorePlan, objects: Objects) -> Result:
        """Act; or report why that is not possible."""
        try:
            self._act(observed, made.act, objects)
        except NameConflict as error:
            if error.is_passing:
                return Result(requeue_after=CATCH_UP)
            return self._fail(observed, made, RestoreFailure(reason="NameConflict", message=str(error)))
        except Invalid as error:
            return self._fail(observed, made, RestoreFailure(reason="Invalid", message=str(error)))
        except NotLeading:
            raise
        except OperatorError as error:
            return self.passes.failed(
                observed.restore.metadata.key,
                error,
                lambda reason, message: self._rewrite(
                    observed, replace(made, reason=reason, message=message)
                ),
            )
        self.passes.failures.passed(observed.restore.metadata.key)
        return Result(requeue_after=made.requeue_after)

    def _act(self, observed: ObservedRestore, act: Act, objects: Objects) -> None:
        match act:
            case Act.NOTHING:
                pass
            case Act.CREATE_CHECK:
                self._create_check(observed, objects)
            case Act.CREATE_CLAIMS:
                self._create_claims(observed, objects)
            case Act.CREATE_JOBS:
                self._create_jobs(observed, objects)
            case Act.ANNOTATE:
                self._annotate(observed, objects)
            case Act.REMOVE_JOBS:
                self._remove_jobs(observed, objects)
            case Act.CREATE_CLUSTER:
                self._create_cluster(observed, objects)
            case Act.CLEAN_UP:
                self._clean_up(observed, objects)
            case _:
                assert_never(act)

    def _create_check(self, observed: ObservedRestore, objects: Objects) -> None:
        if observed.access is None:
            return
        stop_pruning(objects)
        metadata, url = observed.restore.metadata, observed.state.source.url
        body = restore_job.check_job(metadata, observed.access, image=self.wiring.own_image(), url=url)
        if objects.create(resources.JOBS, body):
            self.passes.event(observed.restore, "Normal", "RestoreStarted", f"verifying {url}")

    def _create_claims(self, observed: ObservedRestore, objects: Objects) -> None:
        """In order: of two restores to one name, the one with the first claim goes on."""
        if observed.spec is None:
            return
        restore, template = observed.restore, observed.spec.cluster_template
        for member in observed.members:
            if member.name not in observed.claims:
                body = restored.claim(restore.metadata, template, member, restore.status.version)
                objects.create(resources.CLAIMS, body)

    def _create_jobs(self, observed: ObservedRestore, objects: Objects) -> None:
        snapshot, spec, access = observed.state.snapshot, observed.spec, observed.access
        if snapshot is None or spec is None or access is None:
            return
        states = {member.name: member for member in observed.state.members}
        for member in observed.members:
            if states[member.name].job is not None or states[member.name].is_restored:
                continue
            body = restore_job.job(
                observed.restore.metadata,
                access,
                member,
                specs.pod_template(spec),
                image=self.wiring.own_image(),
                etcd_image=image_of(self.wiring.defaults.repository, observed.restore.status.version),
                url=observed.state.source.url,
                sha256=snapshot.sha256,
                size=snapshot.size,
                bump=observed.restore.status.revision_bump,
                claim_uid=states[member.name].claim_uid,
            )
            objects.create(resources.JOBS, body)

    def _annotate(self, observed: ObservedRestore, objects: Objects) -> None:
        """Hand the claims over. From the first one on there is no way back, and none is needed."""
        for member, state in zip(observed.members, observed.state.members, strict=True):
            if state.claim is ClaimState.OURS:
                change = {"metadata": restored.annotation_patch(member)}
                objects.merge(resources.CLAIMS, observed.claims[member.name], change)

    def _create_cluster(self, observed: ObservedRestore, objects: Objects) -> None:
        restore = observed.restore
        body = restored.cluster(restore.metadata, restore.spec["clusterTemplate"], restore.status.version)
        objects.require_leadership()
        objects.client.create(resources.IMPROBABLE_CLUSTERS, objects.namespace, body, Written)

    def _clean_up(self, observed: ObservedRestore, objects: Objects) -> None:
        """Remove Jobs and claims, each by the UID that was seen; no claim once one was handed over."""
        self._remove_jobs(observed, objects)
        for state in observed.state.removable:
            if state.claim is ClaimState.OURS:
                objects.remove(resources.CLAIMS, observed.claims[state.name])

    def _remove_jobs(self, observed: ObservedRestore, objects: Objects) -> None:
        """And with them their pods, which hold the claims even when they have ended."""
        for job in observed.state.jobs:
            owner = observed.restore.metadata.uid
            objects.remove_of(owner, resources.JOBS, job.name, propagation="Foreground")

    def _fail(self, observed: ObservedRestore, made: RestorePlan, why: RestoreFailure) -> Result:
        """Record a failure that an act has met; the next pass removes what was made."""
        message = f"removing what the restore created, because of: {why.message}"
        self._rewrite(observed, replace(made, reason="CleaningUp", message=message, failure=why))
        return Result(requeue_after=CATCH_UP)

    def _rewrite(self, observed: ObservedRestore, made: RestorePlan) -> None:
        """Write the status once more in this pass: on what the first write has left."""
        objects = self.passes.writes.of(observed.restore.metadata.key)
        found = objects.find(resources.RESTORES, observed.restore.metadata.key.name, EtcdRestore)
        if found is not None and found.metadata.uid == observed.restore.metadata.uid:
            self._write(replace(observed, restore=found), made, objects)

    def _write(
        self, observed: ObservedRestore, made: RestorePlan, objects: Objects
    ) -> ObservedRestore | None:
        """Write the status if it is new, with the Event of an end; None if the EtcdRestore was deleted.

        Returns what was observed, with the status that is recorded now. Raises Conflict on an outdated cache.
        """
        restore, spec = observed.restore, observed.spec
        identity = restored.identity_of(restore.metadata, spec.cluster_template) if spec is not None else None
        wanted = status(
            restore.status,
            observed.state,
            made,
            cluster_id=identity.cluster_id if identity is not None else "",
            generation=restore.metadata.generation,
            now=timestamp(self.wiring.clock.now()),
        )
        if wanted == restore.status:
            return observed
        if made.phase != PENDING:
            self.metrics.ending(restore)
        if not objects.write_status(resources.RESTORES, restore.metadata, wanted, Written):
            return None
        written = msgspec.structs.replace(restore, status=wanted)
        if made.phase != PENDING:
            self.metrics.ended(written)
        self._record_end(restore, made)
        return replace(observed, restore=written)

    def _record_end(self, restore: EtcdRestore, made: RestorePlan) -> None:
        if made.phase == COMPLETED:
            self.passes.event(restore, "Normal", "RestoreCompleted", made.message)
        elif made.phase == FAILED:
            self.passes.event(restore, "Warning", "RestoreFailed", made.message)
