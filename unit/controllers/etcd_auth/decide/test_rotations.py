"""When the password of an EtcdUser is replaced, and which users etcd has meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.controllers.etcd_auth.decide.rotation import (
    LONGEST_GRACE,
    Credentials,
    Step,
    grace,
    rotation,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def found(username: str = "app", since: timedelta = timedelta(), following: str = "") -> Credentials:
    return Credentials(
        username=username,
        has_password=True,
        rotated_at=NOW - since,
        next_username=following,
        has_next_password=bool(following),
    )


def test_a_password_is_made_first() -> None:
    made = rotation("app", None, 30 * DAY, NOW)
    assert (made.step, made.current, made.due) == (Step.CREATE, "app", NOW + 30 * DAY)
    assert rotation("app", None, None, NOW).due is None


@pytest.mark.parametrize(
    "broken",
    [
        Credentials(username="other", has_password=True, rotated_at=NOW),
        Credentials(username="", has_password=True, rotated_at=NOW),
        Credentials(username="app", has_password=False, rotated_at=NOW),
        Credentials(username="app", has_password=True, rotated_at=None),
    ],
)
def test_a_secret_that_cannot_be_used_gets_another_password(broken: Credentials) -> None:
    made = rotation("app", broken, None, NOW)
    assert (made.step, made.current) == (Step.REPAIR, "app")
    assert made.retiring == "app_2", "it may be in use"


def test_the_names_of_a_user_follow_each_other() -> None:
    for username, following in (("app", "app_2"), ("app_2", "app")):
        due = rotation("app", found(username, 30 * DAY), 30 * DAY, NOW)
        assert (due.step, due.current, due.following, due.retiring) == (Step.PREPARE, username, following, "")
        prepared = rotation("app", found(username, 30 * DAY, following), 30 * DAY, NOW)
        assert (prepared.step, prepared.current, prepared.following) == (Step.PUBLISH, username, following)
        published = rotation("app", found(following), 30 * DAY, NOW)
        assert (published.step, published.current) == (Step.NOTHING, following)
        assert (published.retiring, published.until) == (username, NOW + DAY)
        over = rotation("app", found(following, DAY), 30 * DAY, NOW)
        assert (over.step, over.retiring, over.until, over.due) == (Step.NOTHING, "", None, NOW + 29 * DAY)


def test_nothing_is_due_a_second_before() -> None:
    assert rotation("app", found(since=DAY - timedelta(seconds=1)), DAY, NOW).step is Step.NOTHING
    assert rotation("app", found(since=DAY), DAY, NOW).step is Step.PREPARE


def test_without_rotation_a_password_remains_and_one_that_is_prepared_is_used() -> None:
    assert rotation("app", found(since=10_000 * DAY), None, NOW).step is Step.NOTHING
    assert rotation("app", found(following="app_2"), None, NOW).step is Step.PUBLISH


def test_a_clock_that_was_ahead_delays_the_next_password_and_no_more() -> None:
    made = rotation("app", found(since=-DAY), DAY, NOW)
    assert (made.step, made.current, made.due) == (Step.NOTHING, "app", NOW + 2 * DAY)


def test_a_next_user_that_is_none_of_the_names_is_not_used() -> None:
    for odd in ("root", "app"):
        assert rotation("app", found(following=odd), None, NOW).step is Step.NOTHING
    half = Credentials(username="app", has_password=True, rotated_at=NOW, next_username="app_2")
    assert rotation("app", half, None, NOW).step is Step.NOTHING


@pytest.mark.parametrize(("after", "expected"), [(HOUR, HOUR / 2), (30 * DAY, DAY), (None, LONGEST_GRACE)])
def test_the_grace_period_is_shorter_than_the_life_of_a_password(
    after: timedelta | None, expected: timedelta
) -> None:
    assert grace(after) == expected
