"""How far a restore is, as its status shows it, and when it last made progress."""

from dataclasses import replace

import pytest

from etcd_operator.api.restores import MemberRestore, RestoreStatus, Verified
from etcd_operator.controllers.etcd_restore.decide.progress import (
    RestoreMemory,
    done,
    of_member,
    published,
    remembered,
)
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
        for bytes_done in range(SIZE + 1):
            new = published(
                status, state(running(step, bytes_done), running(step, bytes_done), running(step, bytes_done))
            )
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


NOW = 1_800_000_000.0
STARTED, STARTED_AT = "2026-11-22T12:00:00Z", 1795348800.0
NOTHING = state(snapshot=None)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (NOTHING, 0),
        (replace(NOTHING, check=JobState(name="v")), 0),
        (replace(NOTHING, check=VERIFYING), 500),
        (replace(state(), check=VERIFYING), SIZE),
        (state(running("fetching", 400), running("restoring", 10)), SIZE + 400 + SIZE + 10),
        (state(DONE, DONE), 5 * SIZE),
    ],
)
def test_what_is_done_grows_with_each_byte(found: RestoreState, expected: int) -> None:
    assert done(found) == expected


@pytest.mark.parametrize(
    ("found", "started", "at"),
    [
        (NOTHING, STARTED, STARTED_AT),
        (NOTHING, "", NOW),
        (NOTHING, "yesterday", NOW),
        (state(), STARTED, NOW),
    ],
    ids=["nothing yet", "not started", "edited", "something"],
)
def test_at_first_the_start_counts_if_nothing_is_done(found: RestoreState, started: str, at: float) -> None:
    assert remembered(None, "uid", found, started, NOW) == RestoreMemory(uid="uid", done=done(found), at=at)


def test_only_more_than_ever_before_is_progress() -> None:
    kept = remembered(None, "uid", state(running("fetching", 400)), STARTED, NOW)
    again = remembered(kept, "uid", state(running("fetching", 300)), STARTED, NOW + 10.0)
    assert again == kept, "another pod began again"
    more = remembered(again, "uid", state(running("fetching", 401)), STARTED, NOW + 20.0)
    assert (more.done, more.at) == (SIZE + 401, NOW + 20.0)
    other = remembered(more, "other", NOTHING, STARTED, NOW + 30.0)
    assert other == RestoreMemory(uid="other", done=0, at=STARTED_AT)
