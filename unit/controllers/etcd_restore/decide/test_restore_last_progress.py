"""When a restore last made progress."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_restore.decide.progress import RestoreMemory, done, remembered
from etcd_operator.controllers.etcd_restore.decide.state import RestoreState
from etcd_operator.controllers.shared.decide.job_state import JobState
from unit.controllers.etcd_restore.decide.test_restore_progress import DONE, SIZE, VERIFYING, running, state

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
