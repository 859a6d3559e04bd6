"""EtcdBackups in the model world, the Jobs that restore them to claims of seeds, and clients that stay.

Nothing happens but in the methods called. A Job restores all or nothing, to the claim that it was made for.
A closed Service keeps new clients out; whoever is connected writes until the process ends.
"""

from dataclasses import dataclass, replace

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.job_state import JobEnd
from unit.simulation.model import World
from unit.simulation.model_backups import Backup
from unit.simulation.model_disks import Disk, Group, Process
from unit.simulation.model_pods import Claim

CLOSED = "closed"
"""What the Service selects by while it selects nobody."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A completed EtcdBackup. is_known_damaged: its verification has failed."""

    backup: Backup
    is_known_damaged: bool = False

    @property
    def uid(self) -> str:
        return f"uid of {self.backup.name}"


@dataclass(frozen=True, kw_only=True)
class SeedJob:
    """token: of the cluster that it begins. replaces: ID of the one that is given up for it."""

    token: str
    claim: str
    claim_uid: str
    backup: str
    bump: int
    replaces: str
    end: JobEnd = JobEnd.RUNS
    is_running: bool = False
    is_terminating: bool = False


class StoredWorld(World):
    """Persistent members with EtcdBackups.

    backups: what exists, by name; their bytes are in `tool.made`. jobs: by token.
    connected: pods that clients have reached. newest: the last revision that was acknowledged, by cluster ID.
    """

    def __init__(self, *, size: int) -> None:
        super().__init__(is_persistent=True, size=size)
        self.backups: dict[str, Stored] = {}
        self.jobs: dict[str, SeedJob] = {}
        self.jobs_may_start = True
        self.connected: set[str] = set()
        self.newest: dict[str, int] = {}

    # users

    def store(self, process: Process) -> None:
        """An EtcdBackup of what a member holds is completed."""
        backup = self.tool.take(process.disk, process.version)
        self.backups[backup.name] = Stored(backup=backup)

    def delete_cluster(self) -> None:
        """With the Jobs that it owns."""
        super().delete_cluster()
        self.jobs.clear()

    # Jobs

    def used_by_jobs(self) -> set[str]:
        return {job.claim for job in self.jobs.values() if job.is_running}

    def run_controllers(self) -> None:
        super().run_controllers()
        self.run_jobs()

    def run_jobs(self) -> None:
        """Each goes one step: it is deleted, it starts, or it ends."""
        for token, job in list(self.jobs.items()):
            claim = self.claims.get(job.claim)
            has_claim = claim is not None and claim.uid == job.claim_uid
            if job.is_terminating:
                del self.jobs[token]
            elif job.is_running:
                is_whole = has_claim and not self.tool.made[job.backup].is_damaged
                self._end_job(job, JobEnd.SUCCEEDED if is_whole else JobEnd.FAILED)
            elif job.end is JobEnd.RUNS and has_claim and self.jobs_may_start:
                self.jobs[token] = replace(job, is_running=True)

    def fail_job(self, token: str) -> None:
        """Its pod runs once, and is killed."""
        job = self.jobs[token]
        if job.is_running:
            self._end_job(job, JobEnd.FAILED)

    def _end_job(self, job: SeedJob, end: JobEnd) -> None:
        self.jobs[job.token] = replace(job, is_running=False, end=end)
        if end is JobEnd.SUCCEEDED:
            self._fill(job, self.disks.setdefault(job.claim_uid, Disk()))

    def _fill(self, job: SeedJob, disk: Disk) -> None:
        """As etcdutl does: the data directory is that of the only member of a new cluster."""
        if disk.cluster_id:
            return
        backup = self.tool.made[job.backup]
        disk.restore(backup.content, job.bump)
        self.bootstrap(job.claim, disk, (job.claim,), job.token)
        self.replaced[disk.cluster_id] = job.replaces
        self.restored[disk.cluster_id] = set(backup.content.writes)
        self.fetched[disk.cluster_id] = backup

    def fill_late(self) -> None:
        """The claim and the Job of a seed, which were requested before its recovery ended."""
        resource = self.resource
        recovery = resource.persisted.recovery if resource is not None else None
        if resource is None or recovery is None or recovery.replaces or recovery.stored_backup is None:
            return
        self.jobs[recovery.token] = self.seed_job(recovery, resource.uid, resource.persisted.cluster_id)

    def seed_job(self, recovery: Recovery, cluster_uid: str, replaces: str) -> SeedJob:
        """The Job that fills the claim of a seed, which is created if it does not exist."""
        assert recovery.backup is not None
        if recovery.seed not in self.claims:
            self.claims[recovery.seed] = Claim(
                uid=self.uid("claim"),
                cluster_uid=cluster_uid,
                token=recovery.token,
                initial_members=(),
                is_restored=True,
            )
        return SeedJob(
            token=recovery.token,
            claim=recovery.seed,
            claim_uid=self.claims[recovery.seed].uid,
            backup=recovery.backup.name,
            bump=recovery.bump,
            replaces=replaces,
        )

    # clients

    def hears_clients(self, process: Process) -> bool:
        return self.takes_clients(process) or process.pod in self.connected

    def acknowledge(self, group: Group) -> None:
        cluster_id, revision = group.cluster_id, group.leader.disk.revision
        self.connected |= {process.pod for process in group.up if self.takes_clients(process)}
        self.newest[cluster_id] = revision

    def go_on(self, cluster_id: str) -> None:
        """The restore that gave a cluster up has failed: what it promised before counts again."""
        promised = self.given_up.pop(cluster_id, None)
        if promised is not None:
            self.acknowledged = {cluster_id: promised}


def newer_backups(world: World, cluster_id: str, revision: int) -> list[str]:
    """The EtcdBackups of this etcd cluster that have more than its survivors."""
    if not isinstance(world, StoredWorld):
        return []
    contents = {name: stored.backup.content for name, stored in world.backups.items()}
    return [n for n, disk in contents.items() if disk.cluster_id == cluster_id and disk.revision > revision]


def is_restore_refused_rightly(world: World, state: ClusterState) -> bool:
    """The cluster goes on, and the annotation names no restore that could begin now."""
    if not isinstance(world, StoredWorld) or world.resource is None or not _goes_on(world, state):
        return False
    former, asked = state.persisted.recovery, world.resource.restore_in_place
    generation = former.generation + 1 if former is not None else 1
    names = {f"{state.persisted.cluster_id}/{name}/{generation}" for name in world.backups}
    return bool(asked) and asked not in names


def has_restore_failed(world: World, state: ClusterState) -> bool:
    """The cluster goes on as it was."""
    former = state.persisted.recovery
    return former is not None and bool(former.failure) and not former.replaces and _goes_on(world, state)


def _goes_on(world: World, state: ClusterState) -> bool:
    """The cluster on record serves: clients reach it."""
    groups = [group for group in world.groups(led=True) if group.cluster_id == state.persisted.cluster_id]
    return any(world.takes_clients(process) for group in groups for process in group.up)
