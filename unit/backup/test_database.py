"""The scan of a snapshot: what it finds, in chunks of any size, and what it refuses."""

import pytest

from etcd_operator.backup.database import DatabaseScan, DatabaseSummary
from etcd_operator.backup.errors import Damaged


def scanned(data: bytes, *, chunk: int = 32768) -> DatabaseSummary:
    scan = DatabaseScan()
    for at in range(0, len(data), chunk):
        scan.feed(data[at : at + chunk])
    return scan.finish()


@pytest.mark.parametrize("data", [b"", b"\0" * 31, b"\0" * 8192, b"\0" * (1 << 19)])
def test_what_is_no_database_is_refused(data: bytes) -> None:
    with pytest.raises(Damaged, match="does not begin with a valid meta page"):
        scanned(data)
