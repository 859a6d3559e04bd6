"""EtcdRestores in a small world: what Jobs, users and Kubernetes do to claims, Jobs and clusters.

Nothing happens but in the methods called. Operators: model_restore_operator.py.
"""

from dataclasses import dataclass, field
from itertools import count

from etcd_operator.api.restores import RestoreStatus, Verified
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.decide.job_state import JobEnd

SNAPSHOT = Verified(revision=7, keys=3, size=100, sha256="ab", check="manifest", etcd_version="3.6.16")


@dataclass(kw_only=True, eq=False)
class Claim:
    """owner: UID of the EtcdRestore, empty once it is handed over. data, cluster: UIDs of EtcdRestores.

    data: whose data is complete on the volume. cluster: whose etcd cluster it is annotated as.
    """

    name: str
    owner: str = ""
    data: str = ""
    cluster: str = ""
    is_terminating: bool = False


@dataclass(kw_only=True, eq=False)
class Job:
    """member: empty for the one that verifies."""

    name: str
    owner: str
    member: str = ""
    end: JobEnd = JobEnd.RUNS
    is_running: bool = False
    is_terminating: bool = False
    report: JobReport | None = None


@dataclass(kw_only=True, eq=False)
class Restore:
    """An EtcdRestore; `writes` is its resourceVersion."""

    uid: str
    replicas: int
    status: RestoreStatus = field(default_factory=RestoreStatus)
    writes: int = 0

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(f"db-{number}" for number in range(self.replicas))


@dataclass(kw_only=True)
class Cluster:
    """The EtcdCluster `db`. restore: UID of the EtcdRestore that created it; empty for a user's."""

    restore: str = ""
    is_terminating: bool = False


class World:
    """One namespace, and all EtcdRestores to the cluster `db` in it.

    created: UIDs of the EtcdRestores whose cluster was created. losses: what must never happen.
    """

    def __init__(self) -> None:
        self.restores: dict[str, Restore] = {}
        self.claims: dict[str, Claim] = {}
        self.jobs: dict[str, Job] = {}
        self.cluster: Cluster | None = None
        self.created: set[str] = set()
        self.has_backup = True
        self.losses: list[str] = []
        self.waited = 0.0
        self._numbers = count(1)

    # users and Kubernetes

    def create_restore(self, replicas: int) -> None:
        """Another EtcdRestore to the same cluster."""
        uid = f"restore-{next(self._numbers)}"
        self.restores[uid] = Restore(uid=uid, replicas=replicas)

    def delete_restore(self, uid: str) -> None:
        """Kubernetes deletes what it owns."""
        del self.restores[uid]
        for name in [name for name, job in self.jobs.items() if job.owner == uid]:
            del self.jobs[name]
        for claim in list(self.claims.values()):
            if claim.owner == uid:
                self.delete_claim(claim.name)

    def delete_claim(self, name: str) -> None:
        """As `kubectl delete`: it is there as long as a pod uses it."""
        if name in self.claims:
            self.claims[name].is_terminating = True
        self.finish_deletions()

    def finish_deletions(self) -> None:
        """What nothing uses any more goes."""
        self.jobs = {name: job for name, job in self.jobs.items() if not job.is_terminating}
        used = {job.member for job in self.jobs.values() if job.is_running}
        self.claims = {n: c for n, c in self.claims.items() if not c.is_terminating or n in used}
        if self.cluster is not None and self.cluster.is_terminating:
            self.cluster = None

    # Jobs

    def start_jobs(self) -> None:
        """Pods start where their claims are there."""
        for job in self.jobs.values():
            claim = self.claims.get(job.member)
            can_start = not job.member or (claim is not None and not claim.is_terminating)
            if job.end is JobEnd.RUNS and can_start and not job.is_terminating:
                job.is_running = True

    def end_jobs(self) -> None:
        """All pods that run end."""
        for job in self.jobs.values():
            self.end_job(job)

    def end_job(self, job: Job, *, fails: bool = False) -> None:
        """Its pod ends, if it runs: with data, or with a report why not."""
        if not job.is_running or job.end is not JobEnd.RUNS:
            return
        claim = self.claims.get(job.member)
        is_foreign = claim is not None and claim.data not in ("", job.owner)
        if fails or is_foreign or not self.has_backup:
            job.end, job.is_running = JobEnd.FAILED, False
            job.report = JobReport(error="it failed", reason="RestoreError")
            return
        job.end, job.is_running = JobEnd.SUCCEEDED, False
        job.report = JobReport(snapshot=SNAPSHOT)
        if claim is not None:
            claim.data = job.owner
