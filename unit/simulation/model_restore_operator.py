"""Operators of the model world of EtcdRestores, and what must hold of what they write.

The rules are the real ones; what surrounds them follows `controllers.etcd_restore`: claims, clusters and the
EtcdRestore are read live, Jobs come from a cache, and the status is written before each act. Assumed: a slow
operator acts on what it decided, but not for longer than a lease lasts after another one has taken over.
"""

from dataclasses import dataclass, field, replace

from etcd_operator.api.restores import COMPLETED, FAILED
from etcd_operator.controllers.etcd_restore.decide.actions import Act, RestorePlan
from etcd_operator.controllers.etcd_restore.decide.plan import plan
from etcd_operator.controllers.etcd_restore.decide.state import (
    ClaimState,
    MemberState,
    RestoreState,
    SourceState,
    TargetCluster,
)
from etcd_operator.controllers.etcd_restore.decide.status import status
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState
from unit.simulation.model_restores import Claim, Cluster, Job, Restore, World


class Stopped(Exception):
    """The API server refused, or the operator was killed: the pass ends."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one pass has decided, and the objects that it saw."""

    restore: Restore
    writes: int
    state: RestoreState
    plan: RestorePlan
    claims: dict[str, Claim]


@dataclass
class Operator:
    """One operator: its cache of Jobs, and its passes."""

    world: World
    jobs: dict[str, Job] = field(default_factory=dict)

    def catch_up(self) -> None:
        """The cache of Jobs does: copies, as they are now."""
        self.jobs = {name: replace(job) for name, job in self.world.jobs.items()}

    def decide(self, uid: str) -> Decision | None:
        """Observe and plan; None if there is nothing to do any more."""
        restore = self.world.restores.get(uid)
        if restore is None:
            return None
        state, claims = self._observe(restore)
        made = plan(state)
        if made is None:
            return None
        return Decision(restore=restore, writes=restore.writes, state=state, plan=made, claims=claims)

    def _observe(self, restore: Restore) -> tuple[RestoreState, dict[str, Claim]]:
        world = self.world
        seen = {n: c for n, c in world.claims.items() if n.startswith("db-")}
        ours = {n: c for n, c in seen.items() if restore.uid in (c.owner, c.cluster) and n in restore.members}
        others = {n: c for n, c in seen.items() if n not in ours}
        state = RestoreState(
            cluster_name="db",
            phase=restore.status.phase,
            source=SourceState(url="s3://b/one.db"),
            storage=1000,
            waited=world.waited,
            cluster=self._cluster(restore),
            in_the_way=tuple(n for n, c in others.items() if not c.is_terminating),
            going=tuple(n for n, c in others.items() if c.is_terminating),
            snapshot=restore.status.snapshot,
            failure=restore.status.failure,
            check=self._job(restore, "check"),
            members=tuple(
                MemberState(name=n, claim=_claim_state(ours.get(n)), job=self._job(restore, n))
                for n in restore.members
            ),
        )
        return state, ours

    def _cluster(self, restore: Restore) -> TargetCluster:
        found = self.world.cluster
        if found is None:
            return TargetCluster.ABSENT
        if found.restore == restore.uid:
            return TargetCluster.OURS
        return TargetCluster.TERMINATING if found.is_terminating else TargetCluster.FOREIGN

    def _job(self, restore: Restore, what: str) -> JobState | None:
        """From the cache, live where it seems to be missing."""
        name = f"{restore.uid}-{what}"
        job = self.jobs.get(name) or self.world.jobs.get(name)
        if job is None:
            return None
        return JobState(
            name=name,
            end=job.end,
            is_terminating=job.is_terminating,
            is_running=job.is_running,
            waited=0.0 if job.is_running else self.world.waited,
            report=job.report,
        )

    # acting

    def act(self, decision: Decision, *, stop_after: int = 99) -> None:
        """Write the status, then act; it is killed after so many writes."""
        self.left = stop_after
        try:
            self._write(decision)
            self._carry_out(decision)
        except Stopped:
            pass

    def _count(self) -> None:
        if self.left == 0:
            raise Stopped
        self.left -= 1

    def _write(self, decision: Decision) -> None:
        restore = decision.restore
        wanted = status(
            restore.status, decision.state, decision.plan, cluster_id=restore.uid, generation=1, now="now"
        )
        if restore.uid not in self.world.restores:
            return
        if wanted == restore.status:
            return
        if restore.writes != decision.writes:
            raise Stopped
        self._count()
        restore.status, restore.writes = wanted, restore.writes + 1
        _judge_end(self.world, restore)

    def _carry_out(self, decision: Decision) -> None:
        match decision.plan.act:
            case Act.CREATE_CHECK:
                self._create_job(decision.restore, "")
            case Act.CREATE_CLAIMS:
                self._create_claims(decision)
            case Act.CREATE_JOBS:
                for member in decision.state.members:
                    if member.job is None and not member.is_restored:
                        self._create_job(decision.restore, member.name)
            case Act.ANNOTATE:
                self._mark(decision)
            case Act.REMOVE_JOBS:
                self._remove_jobs(decision)
            case Act.CREATE_CLUSTER:
                self._create_cluster(decision)
            case Act.CLEAN_UP:
                self._clean_up(decision)
            case _:
                pass

    def _create_job(self, restore: Restore, member: str) -> None:
        self._count()
        name = f"{restore.uid}-{member or 'check'}"
        if restore.uid in self.world.restores:  # else it is deleted at once
            self.world.jobs.setdefault(name, Job(name=name, owner=restore.uid, member=member))

    def _create_claims(self, decision: Decision) -> None:
        uid = decision.restore.uid
        for name in decision.restore.members:
            if name in decision.claims or uid not in self.world.restores:
                continue
            self._count()
            found = self.world.claims.setdefault(name, Claim(name=name, owner=uid))
            if found.owner != uid:
                self._fail(decision, found)

    def _fail(self, decision: Decision, taken: Claim) -> None:
        """Somebody else's claim has the name."""
        restore = decision.restore
        if not taken.is_terminating and restore.uid in self.world.restores:
            failed = plan(replace(decision.state, in_the_way=(taken.name,)))
            assert failed is not None
            self._write(replace(decision, plan=failed, writes=restore.writes))
        raise Stopped

    def _mark(self, decision: Decision) -> None:
        uid = decision.restore.uid
        for member in decision.state.members:
            if member.claim is not ClaimState.OURS:
                continue
            self._count()
            claim = self.world.claims.get(member.name)
            if claim is None or claim is not decision.claims[member.name]:
                raise Stopped  # another one, by its UID
            if claim.cluster not in ("", uid):
                self.world.losses.append(f"{claim.name} is taken from {claim.cluster}")
            if claim.data != uid:
                self.world.losses.append(f"{claim.name} is annotated without its data")
            claim.cluster, claim.owner = uid, ""

    def _create_cluster(self, decision: Decision) -> None:
        self._count()
        if self.world.cluster is None:
            self.world.cluster = Cluster(restore=decision.restore.uid)
            self.world.created.add(decision.restore.uid)
            _judge_cluster(self.world, decision)

    def _remove_jobs(self, decision: Decision) -> None:
        for seen in decision.state.jobs:
            self._count()
            job = self.world.jobs.get(seen.name)
            if job is not None:
                job.is_terminating, job.is_running = True, False

    def _clean_up(self, decision: Decision) -> None:
        uid = decision.restore.uid
        self._remove_jobs(decision)
        for member in decision.state.members:
            claim = self.world.claims.get(member.name)
            if member.claim is not ClaimState.OURS or claim is None:
                continue
            self._count()
            if claim is not decision.claims[member.name]:
                raise Stopped  # another one, by its UID
            if claim.cluster or claim.owner != uid:
                self.world.losses.append(f"{claim.name} is removed although it was handed over")
            self.world.delete_claim(member.name)


def _claim_state(claim: Claim | None) -> ClaimState:
    if claim is None:
        return ClaimState.ABSENT
    if claim.cluster:
        return ClaimState.ANNOTATED_TERMINATING if claim.is_terminating else ClaimState.ANNOTATED
    return ClaimState.TERMINATING if claim.is_terminating else ClaimState.OURS


def _judge_cluster(world: World, decision: Decision) -> None:
    """It resumes: on claims of one etcd cluster, all that were observed, with their data.

    One that was deleted since then is missed by the cluster itself (`rules.resume`).
    """
    restore = decision.restore
    observed = {member.name for member in decision.state.members if member.claim is ClaimState.ANNOTATED}
    found = {name: world.claims.get(name) for name in restore.members}
    wrong = [n for n, c in found.items() if c is not None and (c.cluster, c.data) != (restore.uid,) * 2]
    bad = sorted({*wrong, *(name for name in restore.members if name not in observed)})
    if bad:
        world.losses.append(f"the cluster is created without {bad}")


def _may_write(job: Job) -> bool:
    return job.end is JobEnd.RUNS and not job.is_terminating


def _judge_end(world: World, restore: Restore) -> None:
    if restore.status.phase == COMPLETED and restore.uid not in world.created:
        world.losses.append(f"{restore.uid} is Completed without its cluster")
    if restore.status.phase == FAILED:
        left = [claim.name for claim in world.claims.values() if claim.owner == restore.uid]
        left = [name for name in left if not world.claims[name].is_terminating]
        left += [j.name for j in world.jobs.values() if j.owner == restore.uid and _may_write(j)]
        if left:
            world.losses.append(f"{restore.uid} has failed and leaves {left}")
    if restore.status.phase in (COMPLETED, FAILED):
        holding = [j.name for j in world.jobs.values() if j.owner == restore.uid and not j.is_terminating]
        if holding:
            world.losses.append(f"{restore.uid} has ended, and the pods of {holding} hold its claims")
