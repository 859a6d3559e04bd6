"""A cluster that is restored later begins with higher revisions, whatever it begins with."""

import pytest

from etcd_operator.api.persisted import REVISION_BUMP
from etcd_operator.core.revisions import PER_SECOND, bump_at


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
