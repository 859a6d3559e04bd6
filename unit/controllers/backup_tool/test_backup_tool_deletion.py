"""What becomes of backups with their cluster."""

import pytest

from unit.controllers.backup_tool.test_backup_tool import BACKUP, CLAIM, TOOL, ask, backed_up, health, made
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SECRETS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral

__all__ = ["made"]

IN_S3 = {"maxBackups": 3, "storageType": "S3", "s3": {"s3Bucket": "my-bucket"}}


def test_a_deleted_cluster_leaves_its_backups_and_another_one_finds_them(made: Bench) -> None:
    claim = made.get(CLAIMS, CLAIM)["metadata"]["uid"]
    made.delete(COREOS, "c")
    made.drain()
    made.run_until(lambda: not made.names(PODS))
    assert made.names(CLAIMS) == [CLAIM]
    assert made.names(SECRETS) == []
    made.create(*ephemeral(size=1, backup=BACKUP))
    made.run_until(lambda: health(made)[0] == "True")
    assert made.get(CLAIMS, CLAIM)["metadata"]["uid"] == claim


def finalizers(made: Bench) -> list[str]:
    return list(made.get(COREOS)["metadata"].get("finalizers") or ())


def test_backups_are_deleted_with_the_cluster_only_if_its_spec_says_so(made: Bench) -> None:
    assert finalizers(made) == []
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) == ["coreos.com/backup-cleanup"])
    ask(made, {"cleanupBackupsOnClusterDelete": False})
    made.run_until(lambda: finalizers(made) == [])
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) != [])
    made.settle()
    made.rest()
    made.delete(COREOS, "c")
    made.run_until(lambda: made.names(COREOS) == [] and made.names(CLAIMS) == [])
    assert "PVCRemoved" in made.event_reasons()


def test_removing_spec_backup_before_the_cluster_keeps_the_backups(made: Bench) -> None:
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) != [])
    ask(made, None)
    made.run_until(lambda: finalizers(made) == [])
    made.delete(COREOS, "c")
    made.run_until(lambda: made.names(COREOS) == [])
    assert made.names(CLAIMS) == [CLAIM]


@pytest.mark.parametrize("problem", ["", "no store"])
def test_a_store_is_cleaned_by_the_tool_and_blocks_no_deletion(problem: str) -> None:
    with bench() as made:
        backed_up(made, {**IN_S3, "cleanupBackupsOnClusterDelete": True})
        assert made.names(CLAIMS) == []
        made.tools.cannot_clean = problem
        begin = made.clock.monotonic()
        made.delete(COREOS, "c")
        made.run_until(lambda: made.names(COREOS) == [])
        assert made.tools.cleaned
        took = made.clock.monotonic() - begin
        assert (took < 10, 60 <= took < 90) == (not problem, bool(problem))
        assert ("CleanupGivenUp" in made.event_reasons()) is bool(problem)


def test_a_tool_that_is_gone_blocks_no_deletion_either() -> None:
    with bench() as made:
        backed_up(made, {**IN_S3, "cleanupBackupsOnClusterDelete": True})
        made.world.up.clear()
        made.delete(REPLICA_SETS, TOOL)
        made.delete(COREOS, "c")
        made.run_until(lambda: made.names(COREOS) == [])
        assert made.tools.cleaned == [] or "CleanupGivenUp" in made.event_reasons()
