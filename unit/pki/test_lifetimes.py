"""When certificates are renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.pki import profiles
from etcd_operator.pki.authority import issue, new_ca
from etcd_operator.pki.description import describe
from etcd_operator.pki.lifetimes import is_due, refusal, renewal

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("life", [timedelta(minutes=1), timedelta(hours=1), 90 * DAY, 3650 * DAY])
def test_a_certificate_is_renewed_at_two_thirds_of_its_life(life: timedelta) -> None:
    ca = new_ca("a CA", now=NOW, duration=3 * life)
    leaf = describe(issue(ca, profiles.client("root"), now=NOW, duration=life).certificate)
    assert renewal(leaf) == NOW + life * 2 / 3
    assert not is_due(leaf, NOW + life * 2 / 3 - SECOND)
    assert is_due(leaf, NOW + life * 2 / 3)
    assert is_due(leaf, NOW + 2 * life)


def test_a_life_that_is_to_be_shorter_ends_earlier() -> None:
    ca = describe(new_ca("a CA", now=NOW, duration=300 * DAY).certificate)
    for lasts, renewed in ((None, 200), (600 * DAY, 200), (300 * DAY, 200), (30 * DAY, 20)):
        assert renewal(ca, lasts) == NOW + renewed * DAY
        assert is_due(ca, NOW + 21 * DAY, lasts) is (renewed == 20)


def test_what_is_issued_until_the_ca_is_renewed_has_its_whole_life() -> None:
    ca = new_ca("a CA", now=NOW, duration=3 * DAY)
    last = renewal(describe(ca.certificate))
    leaf = describe(issue(ca, profiles.client("root"), now=last, duration=DAY).certificate)
    assert leaf.not_after - last == DAY


def test_a_ca_lives_three_times_as_long_as_its_leafs() -> None:
    assert refusal(DAY, 3 * DAY) == ""
    assert refusal(DAY, 3 * DAY - SECOND) == (
        "a CA must live at least 3 times as long as its leafs: 2 d 23 h is less than 3 times 1 d"
    )
