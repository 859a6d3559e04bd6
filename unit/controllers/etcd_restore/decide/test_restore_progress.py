"""How far a restore is, as its status shows it."""

from dataclasses import replace

import pytest

from etcd_operator.api.restores import MemberRestore, RestoreStatus, Verified
from etcd_operator.controllers.etcd_restore.decide.progress import of_member, published
from etcd_operator.controllers.etcd_restore.decide.state import ClaimState, MemberState, RestoreState
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState
from etcd_operator.pods.reports import Progress

SIZE = 1000
SNAPSHOT = Verified(revision=7, keys=3, size=SIZE, sha256="ab" * 32, check="manifest")
DONE = MemberState(name="c-0", claim=ClaimState.OURS, job=JobState(name="j", end=JobEnd.SUCCEEDED))
VERIFYING = JobState(name="v", progress=Progress(step="checking", bytes=500, total_bytes=SIZE))


def running(step: str = "", done: int = 0) -> MemberState:
    progress = Progress(step=step, bytes=done, total_bytes=SIZE) if step else None
    job = JobState(name="j", is_running=True, progress=progress)
    return MemberState(name="c-0", claim=ClaimState.OURS, job=job)


def state(*members: MemberState, snapshot: Verified | None = SNAPSHOT) -> RestoreState:
    return RestoreState(phase="Pending", snapshot=snapshot, members=members)


@pytest.mark.parametrize(
    ("member", "phase", "fetched", "restored"),
    [
        (MemberState(name="c-0"), "Pending", 0, 0),
        (running(), "Restoring", 0, 0),
        (running("fetching", 400), "Restoring", 400, 0),
        (running("restoring", 400), "Restoring", SIZE, 400),
        (running("restoring", 5000), "Restoring", SIZE, SIZE),
        (DONE, "Restored", SIZE, SIZE),
    ],
)
def test_the_bytes_of_a_member(member: MemberState, phase: str, fetched: int, restored: int) -> None:
    assert of_member(member, SIZE) == MemberRestore(
        name="c-0", phase=phase, fetched_bytes=fetched, restored_bytes=restored, total_bytes=SIZE
    )


@pytest.mark.parametrize(
    ("found", "progress"),
    [
        (state(snapshot=None), "0%"),
        (replace(state(snapshot=None), check=JobState(name="v")), "0%"),
        (replace(state(snapshot=None), check=VERIFYING), "15%"),
        (state(running(), running()), "30%"),
        (state(DONE, running("fetching", 1000)), "80%"),
        (state(DONE, DONE), "100%"),
        (state(), "30%"),
    ],
)
def test_the_percentage_counts_three_passes_over_the_data(found: RestoreState, progress: str) -> None:
    assert published(RestoreStatus(), found).progress == progress


def test_it_is_written_twenty_times_at_most_whatever_the_number_of_reports() -> None:
    status, writes = RestoreStatus(), 0
    for step in ("fetching", "restoring"):
        for done in range(SIZE + 1):
            new = published(status, state(running(step, done), running(step, done), running(step, done)))
            writes += new != status
            status = new
    assert 10 < writes <= 20
    assert status.members[0].restored_bytes == SIZE


def test_the_bytes_are_those_of_the_last_step_that_was_written() -> None:
    first = published(RestoreStatus(), state(running("fetching", 400)))
    assert published(first, state(running("fetching", 401))) is first
    assert published(first, state(running("fetching", 600))).members[0].fetched_bytes == 600
    again = published(first, state(running("fetching", 10)))
    assert again.members[0].fetched_bytes == 10, "a pod that was killed begins again"


def test_a_member_that_reaches_another_phase_is_written_at_once() -> None:
    first = published(RestoreStatus(), state(MemberState(name="c-0"), DONE))
    assert published(first, state(running(), DONE)).members[0].phase == "Restoring"
