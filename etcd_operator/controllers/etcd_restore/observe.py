"""Joins caches and live reads into one `RestoreState`.

Claims, clusters and EtcdBackups are always read live: a restore is rare and short, and nothing that exists
may be touched because a cache did not show it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from etcd_operator.api.backups import COMPLETED, FAILED, BackupSpec, EtcdBackup
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.restores import (
    KIND,
    UID_ANNOTATION,
    EtcdRestore,
    RecordedBackup,
    RestoreSpec,
    RestoreStatus,
)
from etcd_operator.controllers.etcd_restore.decide import spec as specs
from etcd_operator.controllers.etcd_restore.decide.plan import PROGRESS_POLL
from etcd_operator.controllers.etcd_restore.decide.state import (
    ClaimState,
    MemberState,
    RestoreState,
    SourceState,
    TargetCluster,
)
from etcd_operator.controllers.etcd_restore.manifests import restored
from etcd_operator.controllers.etcd_restore.manifests.restore_job import check_name, job_name
from etcd_operator.controllers.shared.decide.job_state import JobEnd
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.manifests.restoring_job import PROGRESS_PORT, RestoredMember
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import parsed
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Claim, Written
from etcd_operator.pods.http_client import Server
from etcd_operator.pods.reports import Progress


@dataclass(frozen=True, kw_only=True)
class ObservedRestore:
    """An EtcdRestore as stored, and its state."""

    restore: EtcdRestore
    spec: RestoreSpec | None  # None for an invalid one
    state: RestoreState
    access: BackupSpec | None = None  # how the backup is reached, None while that is not known
    members: tuple[RestoredMember, ...] = ()
    claims: dict[str, ObjectMeta]  # of its members that are its own, by name


def restore_of(slot: Key) -> Key:
    """The EtcdRestore of the pod that a question is about."""
    return Key(slot.namespace, slot.name.partition("/")[0])


@dataclass(eq=False, kw_only=True)
class ProgressReader:
    """How far the pods of restores are. They are asked on threads of their own: no pass waits for one.

    Only what the status shows depends on it: a pod that cannot be reached restores all the same.
    """

    inquiries: Inquiries[Progress]
    _asked: dict[Key, set[Key]] = field(default_factory=dict)

    def of(self, key: Key, pod: Pod) -> Progress | None:
        """The last report of a pod of this EtcdRestore, if any; it is asked again when it is time."""
        slot = Key(key.namespace, f"{key.name}/{pod.metadata.name}")
        self._asked.setdefault(key, set()).add(slot)
        uid = pod.metadata.uid
        if pod.status.pod_ip:
            address = (pod.status.pod_ip, PROGRESS_PORT)
            # Each answer causes a pass, which asks nobody; one that the timer causes finds that it is time.
            self.inquiries.renew(
                slot, PodServer(uid=uid, owner=uid, server=Server(address=address)), PROGRESS_POLL / 2
            )
        return self.inquiries.last_answer(slot, uid).report

    def forget(self, key: Key) -> None:
        """The EtcdRestore has ended."""
        for slot in self._asked.pop(key, ()):
            self.inquiries.forget(slot)


@dataclass(frozen=True, kw_only=True)
class RestoreObserver:
    """Observes EtcdRestores."""

    jobs: JobReader
    progress: ProgressReader

    def forget(self, key: Key) -> None:
        """The restore has ended."""
        self.jobs.forget(key)
        self.progress.forget(key)

    def observe(self, restore: EtcdRestore, objects: Objects) -> ObservedRestore:
        """The observed state of one EtcdRestore. objects: reads live. Raises the errors of `Client`."""
        spec, wrong = parsed(restore.spec, RestoreSpec, specs.problem)
        status, metadata = restore.status, restore.metadata
        state = RestoreState(
            created=metadata.creation_timestamp,
            phase=status.phase,
            is_deleting=metadata.is_deleting,
            problem=wrong,
            snapshot=status.snapshot,
            failure=status.failure,
        )
        if spec is None or state.is_final:
            return ObservedRestore(restore=restore, spec=spec, state=state, claims={})
        return self._observed(restore, spec, state, objects)

    def _observed(
        self, restore: EtcdRestore, spec: RestoreSpec, state: RestoreState, objects: Objects
    ) -> ObservedRestore:
        metadata, status, template = restore.metadata, restore.status, spec.cluster_template
        key = metadata.key
        members = restored.members(metadata, template)
        claims = _claims(objects, template.cluster_name, members)
        source, access = source_of(spec, status, objects)
        ours = {
            m.name: claims[m.name]
            for m in members
            if m.name in claims and _is_ours(claims[m.name], metadata, m)
        }
        others = [each for name, each in claims.items() if name not in ours]
        going = [each for each in others if each.is_deleting or _is_of_former(each, metadata)]
        states = tuple(self._member(metadata, m, ours.get(m.name), objects) for m in members)
        state = replace(
            state,
            cluster_name=template.cluster_name,
            template_version=specs.template_version(spec),
            storage=specs.storage(spec),
            source=source,
            waited=self.jobs.waits.seconds(key, f"{metadata.uid} for its backup"),
            cluster=_cluster(objects, template.cluster_name, metadata.uid),
            in_the_way=_names(each for each in others if each not in going),
            going=_names(going),
            check=self.jobs.read(key, metadata.uid, check_name(metadata), objects),
            members=self._in_turn(key, states),
        )
        return ObservedRestore(
            restore=restore, spec=spec, state=state, access=access, members=members, claims=ours
        )

    def _in_turn(self, key: Key, members: tuple[MemberState, ...]) -> tuple[MemberState, ...]:
        """While one Job runs, none of the others is late."""
        jobs = [member.job for member in members if member.job is not None]
        if not any(job.is_running and job.end is JobEnd.RUNS for job in jobs):
            return members
        self.jobs.in_turn(key, jobs)
        return tuple(
            replace(member, job=replace(member.job, waited=0.0)) if member.job is not None else member
            for member in members
        )

    def _member(
        self,
        metadata: ObjectMeta,
        member: RestoredMember,
        claim: ObjectMeta | None,
        objects: Objects,
    ) -> MemberState:
        name = job_name(metadata, member.ordinal)
        return MemberState(
            name=member.name,
            claim=_claim_state(claim, member),
            claim_uid=claim.uid if claim is not None else "",
            job=self.jobs.read(metadata.key, metadata.uid, name, objects),
        )


def _claims(objects: Objects, cluster: str, members: Iterable[RestoredMember]) -> dict[str, ObjectMeta]:
    """All claims that a cluster of this name has, or would have."""
    names = {member.name for member in members}
    listed = objects.client.list(resources.CLAIMS, Claim, namespace=objects.namespace).whole()
    return {
        claim.metadata.name: claim.metadata
        for claim in listed
        if claim.metadata.name in names or restored.is_of_cluster(claim.metadata, cluster)
    }


def _is_ours(claim: ObjectMeta, restore: ObjectMeta, member: RestoredMember) -> bool:
    return claim.controller_uid == restore.uid or restored.is_annotated(claim, member)


def _is_of_former(claim: ObjectMeta, restore: ObjectMeta) -> bool:
    """Whether it was made for an EtcdRestore of this name that is gone: Kubernetes is about to remove it."""
    return any(
        owner.controller and (owner.kind, owner.name) == (KIND, restore.name) and owner.uid != restore.uid
        for owner in claim.owner_references
    )


def _claim_state(claim: ObjectMeta | None, member: RestoredMember) -> ClaimState:
    if claim is None:
        return ClaimState.ABSENT
    if restored.is_annotated(claim, member):
        return ClaimState.ANNOTATED_TERMINATING if claim.is_deleting else ClaimState.ANNOTATED
    return ClaimState.TERMINATING if claim.is_deleting else ClaimState.OURS


def _names(found: Iterable[ObjectMeta]) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in found))


def _cluster(objects: Objects, name: str, uid: str) -> TargetCluster:
    """Of both groups: their Services have the same name."""
    clusters = (resources.IMPROBABLE_CLUSTERS, resources.COREOS_CLUSTERS)
    found = [
        each for each in (objects.find(cluster, name, Written) for cluster in clusters) if each is not None
    ]
    if any(each.metadata.annotations.get(UID_ANNOTATION) == uid for each in found):
        return TargetCluster.OURS
    if any(not each.metadata.is_deleting for each in found):
        return TargetCluster.FOREIGN
    return TargetCluster.TERMINATING if found else TargetCluster.ABSENT


FoundSource = tuple[SourceState, BackupSpec | None]
"""Where it is, and how it is reached; None while that is not known."""


def source_of(spec: RestoreSpec, status: RestoreStatus, objects: Objects) -> FoundSource:
    """The backup of a restore with this spec and status. Raises the errors of `Client`.

    An EtcdBackup is read live until the status records what is needed of it. From then on the record counts:
    all members are restored from one snapshot, also if somebody deletes the EtcdBackup or creates another one
    of its name.
    """
    name = spec.source.backup_name
    if not name:
        return SourceState(url=spec.source.url), specs.access(spec)
    if status.backup is not None:
        return _stored(spec, name, status.url, status.backup)
    backup = objects.find(resources.BACKUPS, name, EtcdBackup)
    if backup is None:
        message = f"there is no EtcdBackup {name} in this namespace: check spec.source.backupName"
        return SourceState(reason="UnknownBackup", message=message, is_missing=True), None
    found = backup.status
    if found.phase == FAILED:
        return _none("BackupFailed", f"EtcdBackup {name} has failed: choose another one")
    if found.phase != COMPLETED or not found.url:
        message = f"EtcdBackup {name} is not completed yet"
        return SourceState(reason="BackupNotReady", message=message), None
    recorded = RecordedBackup(uid=backup.metadata.uid, sha256=found.sha256, spec=backup.spec)
    return _stored(spec, name, found.url, recorded)


def _stored(spec: RestoreSpec, name: str, url: str, backup: RecordedBackup) -> FoundSource:
    stored, wrong = parsed(backup.spec, BackupSpec, lambda _: "")
    if stored is None:
        return _none("UnknownBackup", f"EtcdBackup {name}: {wrong}")
    return SourceState(url=url, backup=backup), specs.access_of_backup(spec, stored)


def _none(reason: str, message: str) -> FoundSource:
    return SourceState(reason=reason, message=message, is_final=True), None
