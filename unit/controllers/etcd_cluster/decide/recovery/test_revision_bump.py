"""A cluster that is restored later begins with higher revisions, whatever it begins with."""

import pytest

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import PER_SECOND, bump_at


@pytest.mark.parametrize(
    ("created", "bump"),
    [
        ("", REVISION_BUMP),
        ("2020-05-05T05:05:05Z", REVISION_BUMP),
        ("2026-01-01T00:00:01Z", REVISION_BUMP + PER_SECOND),
        ("2026-01-02T00:00:00Z", REVISION_BUMP + 86400 * PER_SECOND),
    ],
)
def test_revisions_rise_with_the_time_of_the_request(created: str, bump: int) -> None:
    assert bump_at(created) == bump


def test_they_are_exact_for_readers_that_know_only_floating_point() -> None:
    assert float(bump_at("2299-12-31T23:59:59Z")) < 2**53


def test_what_is_restored_later_begins_higher_whichever_backup_it_is() -> None:
    oldest = 1_000
    first = oldest + bump_at("2026-11-20T00:00:00Z", oldest)
    newer = first + 5_000  # a backup of the restored cluster
    second = newer + bump_at("2026-11-20T00:00:20Z", newer)
    third = oldest + bump_at("2026-11-20T00:00:40Z", oldest)  # the newer one is bad, too
    assert oldest < first < newer < second < third


def test_a_backup_whose_differences_have_added_up_is_raised_all_the_same() -> None:
    above = 2 * bump_at("2026-11-20T00:00:00Z")
    assert bump_at("2026-11-20T00:00:00Z", above) == bump_at("2026-11-20T00:00:00Z")
