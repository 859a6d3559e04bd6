"""States of EtcdRestores."""

from dataclasses import replace

from etcd_operator.api.restores import Verified
from etcd_operator.controllers.etcd_restore.decide.actions import RestorePlan
from etcd_operator.controllers.etcd_restore.decide.plan import plan
from etcd_operator.controllers.etcd_restore.decide.state import (
    ClaimState,
    MemberState,
    RestoreState,
    SourceState,
)
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState

SNAPSHOT = Verified(revision=7, keys=3, size=100, sha256="ab" * 32, check="manifest", etcd_version="3.6.16")
DONE = JobState(name="j", end=JobEnd.SUCCEEDED)
RUNS = JobState(name="j", is_running=True)
NAMES = ("c-0", "c-1")


def members(claim: ClaimState, job: JobState | None = None) -> tuple[MemberState, ...]:
    return tuple(MemberState(name=name, claim=claim, job=job) for name in NAMES)


BEGUN = RestoreState(
    created="2026-11-22T13:59:00Z",
    cluster_name="c",
    phase="Pending",
    source=SourceState(url="s3://b/one.db"),
    storage=1000,
    members=members(ClaimState.ABSENT),
)
VERIFIED = replace(BEGUN, snapshot=SNAPSHOT)
ANNOTATED = replace(VERIFIED, members=members(ClaimState.ANNOTATED))


def planned(state: RestoreState) -> RestorePlan:
    made = plan(state)
    assert made is not None
    return made
