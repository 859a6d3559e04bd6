"""Clusters that lose their members and have the backups of a tool."""

from collections.abc import Iterator
from contextlib import contextmanager

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.quorum_losses import lose
from unit.passes.tools import backup, holding, stored

BACKUP = {"backupIntervalInSecond": 600, "maxBackups": 3, "volumeSizeInMB": 1024}


@contextmanager
def backed_up(size: int = 3) -> Iterator[Bench]:
    """A cluster with an acknowledged key, and a tool at work, which has stored that."""
    with bootstrapped(*ephemeral(size=size, backup=BACKUP), alone=False) as made:
        made.run_until(lambda: made.condition(COREOS, "BackupHealthy").get("status") == "True")
        made.tools.report = stored(made.etcd.etcd.revision, cluster_id=made.status(COREOS)["clusterID"])
        made.run_until(lambda: made.status(COREOS)["backup"]["revision"] == made.etcd.etcd.revision)
        made.settle()
        yield made


def store(made: Bench, *, ahead: int = 0) -> str:
    """A backup of what the cluster has now, at a revision that may be `ahead` of it; its name."""
    etcd = made.etcd.etcd
    newest = backup(etcd.revision + ahead, cluster_id=made.status(COREOS)["clusterID"])
    made.etcds.save(newest.name, etcd)
    made.tools.restorable = holding(newest)
    return newest.name


def silent_last_member(made: Bench, named: str) -> None:
    """Two of three are lost, the third is silent, and the status names this backup to a person."""
    made.etcd.etcd.freeze("c-0002")
    lose(made, 0, 1)
    made.run_until(lambda: f"restore the backup {named}" in made.condition(COREOS, "Degraded")["message"])


def members(made: Bench) -> list[str]:
    return [name for name in made.names(PODS) if not name.startswith("c-backup-tool")]


def recovery(made: Bench) -> Json:
    return dict(made.status(COREOS).get("recovery") or {})


def assert_restored(made: Bench, name: str, *numbers: int) -> None:
    """These members form one cluster with what the backup has."""
    assert members(made) == [f"c-{number:04}" for number in numbers]
    assert made.etcd.etcd.keys[b"key"] == (b"value", 2)
    found = recovery(made)
    assert (found["source"]["type"], found["source"]["name"], found["source"]["age"]) == (
        "ToolBackup",
        name,
        60,
    )
    assert found["replaces"] != made.status(COREOS)["clusterID"]
    loss = made.condition(COREOS, "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromBackup")
    assert f"{name} of c, taken at 2026-01-01T00:00:00Z (1 min before)" in loss["message"]
    assert made.get(PODS, found["seed"])["metadata"]["labels"]["app"] == "etcd"
