"""What a schedule reads of its EtcdBackups."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.state import due_of

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
    assert due_of(stored(metadata={"annotations": annotations})) == due
