"""How Kubernetes writes times."""

from datetime import datetime

import pytest

from etcd_operator.formats import instant, moment, timestamp

OLD = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(("text", "year"), [("", 1970), (OLD, 2026)])
def test_a_missing_time_is_the_epoch(text: str, year: int) -> None:
    assert instant(text).year == year
    assert instant(text).utcoffset() is not None


def test_a_time_is_read_as_it_was_written() -> None:
    assert timestamp(instant(OLD)) == OLD
    assert timestamp(datetime.fromisoformat("2026-01-01T02:00:00.9+02:00")) == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "9999-12-31T23:59:59Z"]
)
def test_what_is_no_moment_is_none(text: str) -> None:
    assert moment(text) is None
    assert moment(OLD) == instant(OLD)
