"""What a schedule reads of its EtcdBackups."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.observe import scheduled_backup

DUE = datetime(2026, 11, 22, 3, 30, tzinfo=UTC)


def stored(**fields: Any) -> EtcdBackup:
    metadata = {"name": "s-1", "uid": "u", **fields.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, **fields}, EtcdBackup)


@pytest.mark.parametrize(
    ("annotation", "due"),
    [
        ("2026-11-22T03:30:00Z", DUE),
        ("2026-11-22T04:30:00+01:00", DUE.astimezone(timezone(timedelta(hours=1)))),
        ("2026-11-22T03:30:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_time_of_an_annotation_that_anybody_may_have_changed(
    annotation: str, due: datetime | None
) -> None:
    annotations = {"etcd.improbable.io/scheduled-time": annotation} if annotation else {}
    assert scheduled_backup(stored(metadata={"annotations": annotations})).due == due


def test_an_etcd_backup_that_was_not_accepted_yet_has_not_ended() -> None:
    found = scheduled_backup(stored())
    assert (found.name, found.uid, found.phase, found.has_ended) == ("s-1", "u", "", False)
    assert (found.reason, found.message, found.is_deleting) == ("", "", False)


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_the_verdict_on_one_that_has_ended(phase: str) -> None:
    conditions = [
        {"type": "Other", "status": "True", "reason": "No", "message": "no"},
        {"type": "Complete", "status": "False", "reason": "StoreFull", "message": "the store is full"},
    ]
    status = {
        "phase": phase,
        "url": "s3://b/x",
        "completionTime": "2026-11-22T03:31:00Z",
        "conditions": conditions,
    }
    found = scheduled_backup(stored(metadata={"deletionTimestamp": "2026-11-22T04:00:00Z"}, status=status))
    assert found.has_ended
    assert found.is_deleting
    assert (found.reason, found.message) == ("StoreFull", "the store is full")
    assert (found.url, found.completed_at) == ("s3://b/x", "2026-11-22T03:31:00Z")


@pytest.mark.parametrize(("verdict", "expected"), [("True", True), ("False", False), ("Unknown", False)])
def test_whether_it_is_verified(verdict: str, expected: bool) -> None:
    conditions = [{"type": "Verified", "status": verdict, "reason": "Some", "message": "some"}]
    assert scheduled_backup(stored(status={"conditions": conditions})).is_verified is expected
