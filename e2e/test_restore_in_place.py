"""A cluster that serves, or all of whose volumes are gone, is restored from an EtcdBackup on Kubernetes."""

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document
from e2e.support.load import Load
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import wait_until
from e2e.support.watching import assert_compacted
from e2e.test_backups import backed_up, status_of
from etcd_operator.kube import resources

NAME = "my-cluster"
RESTORE = "etcd.improbable.io/restore"
RECOVER = "etcd.improbable.io/recover"
SELECTOR = f"etcd.improbable.io/cluster-name={NAME}"


def annotate(space: Space, annotation: str, value: str) -> None:
    """As a user does."""
    space.kubectl("annotate", "--overwrite", "etcdclusters.etcd.improbable.io", NAME, f"{annotation}={value}")


def named(space: Space, document: Document, annotation: str, *reasons: str) -> str:
    """The name that the operator prints."""
    found = space.wait_condition(document, "Degraded", *reasons)
    return str(found["message"].partition(f"{annotation}=")[2].split()[0].rstrip(";"))


def assert_restored(space: Space, document: Document, before: str) -> Document:
    """One cluster, with the data of the backup, beside the kept claims of the one before; its recovery."""
    space.wait_for(document, lambda: space.status(document)["clusterID"] != before, "it is restored")
    space.wait_settled(document)
    assert assert_consistent(space, document) != before
    status, stored = space.status(document), status_of(space, "one")
    recovery: Document = status["recovery"]
    assert (recovery["source"]["name"], recovery["revision"]) == ("one", stored["revision"])
    loss = condition(space.stored(document), "DataLossPossible")
    assert (loss["status"], f"revision {stored['revision']}" in loss["message"]) == ("True", True)
    assert set(space.values(document, b"greeting")) == {b"hello"}
    return recovery


@pytest.mark.capability("restore in place")
def test_a_backup_takes_the_place_of_the_data_of_a_cluster_under_load(space: Space) -> None:
    document = backed_up(space, 3)
    before = assert_consistent(space, document)
    claims = space.names(resources.CLAIMS, SELECTOR)
    with Load(lambda: space.addresses(document)) as load:
        load.go_on(20)
        seen = load.newest
        annotate(space, RESTORE, "one")
        name = named(space, document, RESTORE, "RestoreRefused")
        assert name == f"{before}/one/1"
        annotate(space, RESTORE, name)
        recovery = assert_restored(space, document, before)
    now = space.addresses(document)
    assert load.judge(space.testbed, now, recovery["revision"]) > 20
    # Clients that stay connected write until the old members end: these writes are given up, too.
    last = max(load.acknowledged[key] for key in load.lost(recovery["revision"]))
    assert (recovery["authority"], seen < last, seen < recovery["givenUp"]) == ("InPlace", True, True)
    assert set(claims) <= set(space.status(document)["keptClaims"]) <= set(space.names(resources.CLAIMS))
    assert_compacted(space, now[0], seen)
    space.wait_events(NAME, ("Normal", "RestoreStarted"), ("Normal", "Restored"))


@pytest.mark.long
def test_all_volumes_gone_are_recovered_from_a_backup_by_name(space: Space) -> None:
    document = backed_up(space, 3)
    before = assert_consistent(space, document)
    space.kubectl("delete", "pvc", "--selector", SELECTOR, "--wait=false")
    space.kubectl("delete", "pods", "--selector", SELECTOR)
    wait_until(lambda: not space.names(resources.CLAIMS, SELECTOR), "all volumes are gone")
    name = named(space, document, RECOVER, "QuorumLost")
    assert name == f"{before}/backup:one/1"
    annotate(space, RECOVER, name)
    recovery = assert_restored(space, document, before)
    assert recovery["authority"] == "Requested"
    assert condition(space.stored(document), "DataLossPossible")["reason"] == "RecoveredFromBackup"
