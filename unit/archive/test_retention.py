"""The rules of retention: what is surplus, by count and age."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.retention import Policy, StoredBackup, surplus

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = 3600.0
MANIFEST = Manifest(
    etcd_version="3.6.16",
    cluster_id="a" * 16,
    member_id="1" * 16,
    revision=1,
    keys=1,
    size=1,
    sha256="0" * 64,
    stored_size=1,
    stored_sha256="0" * 64,
    time=NOON,
)


def backup(
    revision: int,
    hours: float,
    *,
    cluster: str = "a",
    modified: float | None = None,
    is_doubtful: bool = False,
) -> StoredBackup:
    time = NOON + timedelta(hours=hours)
    written = time if modified is None else NOON + timedelta(hours=modified)
    manifest = msgspec.structs.replace(
        MANIFEST, cluster_id=cluster * 16, revision=revision, time=time, corrupt_alarm=is_doubtful
    )
    return StoredBackup(name=f"{cluster}-{revision}", manifest=manifest, modified=written)


DAY = [backup(9, -4), backup(10, -3), backup(100, -2), backup(101, -1)]


@pytest.mark.parametrize(
    ("policy", "removed"),
    [
        (Policy(max_count=4), []),
        (Policy(max_count=2), ["a-9", "a-10"]),
        (Policy(max_count=1), ["a-9", "a-10", "a-100"]),
        (Policy(max_age=3 * HOUR), []),
        (Policy(max_age=2 * HOUR), ["a-9"]),
        (Policy(max_age=1), ["a-9", "a-10", "a-100"]),
        (Policy(max_count=3, max_age=2 * HOUR), ["a-9"]),
        (Policy(max_count=1, max_age=9 * HOUR), ["a-9", "a-10", "a-100"]),
        (Policy(max_count=9, max_age=1.5 * HOUR), ["a-9", "a-10"]),
        (Policy(), []),
    ],
)
def test_by_count_and_by_age_the_oldest_first(policy: Policy, removed: list[str]) -> None:
    for given in (DAY, DAY[::-1]):
        assert [each.name for each in surplus(given, policy, keep=(), now=NOON)] == removed


def names(
    given: list[StoredBackup], policy: Policy, *, keep: tuple[str, ...] = (), now: float = 0
) -> list[str]:
    at = NOON + timedelta(hours=now)
    return [each.name for each in surplus(given, policy, keep=keep, now=at)]


def test_what_is_named_is_kept_and_counts_only_where_it_is_new() -> None:
    assert names(DAY, Policy(max_count=2), keep=("a-9",)) == ["a-10"]
    assert names(DAY, Policy(max_count=2), keep=("a-100",)) == ["a-9", "a-10"]
    assert names(DAY, Policy(max_age=1), keep=("a-10", "gone")) == ["a-9", "a-100"]


@pytest.mark.parametrize("now", [-9999, -1, 0, 9999])
def test_a_wrong_clock_of_who_removes_makes_nothing_old(now: float) -> None:
    assert set(names(DAY, Policy(max_age=2 * HOUR), now=now)) <= {"a-9"}
    assert names(DAY, Policy(max_count=2), now=now) == ["a-9", "a-10"]


def test_a_clock_that_was_ahead_at_the_newest_backup_makes_nothing_old() -> None:
    ahead = backup(102, 9999)
    assert names([*DAY, ahead], Policy(max_age=5 * HOUR)) == []
    ahead = backup(102, 9999, modified=0)
    assert names([*DAY, ahead], Policy(max_age=5 * HOUR), now=9999) == [], "the clock of the store is right"


def test_a_clock_that_is_set_back_an_hour_removes_neither_the_newest_nor_its_neighbours() -> None:
    given = [backup(5, 0), backup(6, 0.5), backup(7, -0.4), backup(8, 0.1)]
    assert names(given, Policy(max_count=2)) == ["a-5"], "the store has the same clock: one too many"
    assert names(given, Policy(max_age=HOUR / 2)) == []
    given = [backup(5, 0, modified=0), backup(6, 0.5, modified=0.5)]
    given += [backup(7, -0.4, modified=0.6), backup(8, 0.1, modified=1.1)]
    assert names(given, Policy(max_count=2)) == ["a-5", "a-6"]


def test_a_member_that_was_restored_in_place_does_not_lose_what_it_backs_up_since() -> None:
    """The ID of the etcd cluster is the same, the revisions have gone back."""
    since = [backup(11, 0), backup(12, 1), backup(13, 2)]
    assert names([*DAY, *since[:1]], Policy(max_count=1), now=2) == ["a-9", "a-10", "a-100"]
    assert names([*DAY, *since], Policy(max_count=3), now=2) == ["a-9", "a-10"]
    assert not {each.name for each in since} & set(names([*DAY, *since], Policy(max_age=1), now=2))


def test_a_recovered_cluster_whose_clock_is_far_behind_keeps_its_backups() -> None:
    behind = [
        backup(1_000_000_000 + number, -9999 + number, cluster="b", modified=number) for number in (1, 2)
    ]
    assert names([*DAY, *behind], Policy(max_count=2), now=2) == ["a-10"]
    assert "b-1000000002" not in names([*DAY, *behind], Policy(max_age=HOUR), now=2)


def test_retention_goes_on_over_a_recovery() -> None:
    after = [backup(1_000_000_000 + number, number, cluster="b") for number in range(3)]
    assert names([*DAY, after[0]], Policy(max_count=3)) == ["a-9", "a-10"]
    assert names([*DAY, *after], Policy(max_count=3)) == ["a-9", "a-10", "a-100"]


@pytest.mark.parametrize("policy", [Policy(max_count=2), Policy(max_age=HOUR)])
def test_the_newest_backup_of_a_former_cluster_is_kept_for_thirty_days(policy: Policy) -> None:
    """It was created again without its data, or with that of the wrong backup."""
    begin = [*DAY, backup(1, 0, cluster="b"), backup(2, 24, cluster="b")]
    after = [backup(3, 30 * 24 - 1, cluster="b"), backup(4, 30 * 24, cluster="b")]
    assert names([*begin, *after], policy, now=9999) == ["a-9", "a-10", "a-100", "b-2"]
    late = backup(5, 30 * 24 + 0.5, cluster="b")
    later = set(names([*begin, *after, late], policy, now=9999))
    assert {"a-101", "b-1"} <= later, "counted from the first backup of the next cluster, by the store"


def test_clusters_that_share_a_folder_or_are_recovered_again_and_again_do_not_fill_the_store() -> None:
    given = [backup(1, number, cluster=cluster) for number, cluster in enumerate("abcdef")]
    assert names(given, Policy(max_count=1), now=9) == ["a-1", "b-1"]
    given = [backup(9 + number, number, cluster="ab"[number % 2]) for number in range(8)]
    assert names(given, Policy(max_count=2), now=9) == ["a-9", "b-10", "a-11", "b-12", "a-13", "b-14"]


def test_the_only_backup_is_never_removed() -> None:
    for policy in (Policy(max_count=1, max_age=1), Policy(max_count=0)):
        assert names([backup(5, -9999)], policy) == []
    assert names([], Policy(max_count=1)) == []


def test_nothing_is_removed_while_the_newest_was_taken_under_an_alarm_corrupt() -> None:
    doubtful = backup(101, 0, is_doubtful=True)
    for policy in (Policy(max_count=1), Policy(max_age=1)):
        assert names([*DAY, doubtful], policy) == []
    late = backup(101, 0, modified=-5, is_doubtful=True)
    assert names([*DAY, late], Policy(max_count=1)) == [], "it has the highest revision"
    restored = backup(11, 1, is_doubtful=True)
    assert names([*DAY, restored], Policy(max_count=1)) == [], "it was written last"


def test_what_was_taken_under_an_alarm_corrupt_displaces_nothing() -> None:
    given = [*DAY, *(backup(102 + number, number, is_doubtful=True) for number in range(5)), backup(200, 9)]
    assert names(given, Policy(max_count=3)) == ["a-9", "a-10"]
    later = names([*given, backup(201, 10)], Policy(max_count=2))
    assert later == ["a-9", "a-10", "a-100", "a-103", "a-104", "a-105", "a-106"]


@pytest.mark.parametrize("policy", [Policy(max_count=1), Policy(max_age=HOUR)])
def test_the_last_backup_before_an_alarm_corrupt_is_kept_for_thirty_days(policy: Policy) -> None:
    doubtful = backup(102, 0, is_doubtful=True)
    given = [*DAY, doubtful, backup(103, 30 * 24)]
    assert names(given, policy, now=9999) == ["a-9", "a-10", "a-100"]
    assert {"a-101", "a-102"} <= set(names([*given, backup(104, 30 * 24 + 2)], policy, now=9999))
