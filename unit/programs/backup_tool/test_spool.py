"""The revision of a snapshot, which its name has."""

import io
from dataclasses import replace

import pytest

from etcd_operator.archive.database import DatabaseSummary
from etcd_operator.programs.backup_tool.spool import Spool

SUMMARY = DatabaseSummary(
    revision=0, keys=0, compacted=0, cluster_version="3.6.0", size=0, sha256="ab" * 32, has_hash=True
)


@pytest.mark.parametrize(
    ("last_entry", "compacted", "revision"), [(6, 0, 6), (6, 4, 6), (6, 9, 9), (0, 0, 1), (0, 3, 3)]
)
def test_a_compaction_may_have_removed_the_last_entry(last_entry: int, compacted: int, revision: int) -> None:
    summary = replace(SUMMARY, revision=last_entry, compacted=compacted)
    assert Spool(io.BytesIO(), summary).revision == revision
