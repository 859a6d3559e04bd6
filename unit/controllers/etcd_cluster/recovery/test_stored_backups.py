"""What the observation reports of EtcdBackups while their cache is not complete."""

from types import SimpleNamespace
from typing import Any

import pytest

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts
from etcd_operator.controllers.etcd_cluster.recovery.stored_backups import StoredBackups
from etcd_operator.errors import Forbidden, NotFound, OperatorError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.decode import Unreadable
from etcd_operator.kube.store import Store
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import lost
from unit.fakes.clock import FakeClock

CLUSTER = EtcdCluster(metadata=ObjectMeta(name="db", namespace="ns", uid="uid-1"))


def seen(
    error: OperatorError | None,
    *,
    has_started: bool = True,
    has_synced: bool = False,
    unreadable: tuple[Key, ...] = (),
) -> BackupFacts:
    """Of a cluster without a quorum. error: of the last request to list them."""
    store = Store[EtcdBackup]()
    store.replace([], "1", unreadable=[Unreadable(key=key, labels={}, error="why") for key in unreadable])
    backups: Any = SimpleNamespace(
        has_synced=has_synced,
        is_listing=has_started and not has_synced,
        reflector=SimpleNamespace(last_error=error),
        store=store,
    )
    caches: Any = SimpleNamespace(services=SimpleNamespace(store={}))
    nothing: Any = None
    observed = StoredBackups(caches=caches, backups=backups, jobs=nothing, writes=nothing, clock=FakeClock())
    return observed(CLUSTER, lost())


@pytest.mark.parametrize("error", [None, Unavailable("no answer")])
def test_a_list_that_may_still_come_is_awaited(error: OperatorError | None) -> None:
    assert seen(error) == BackupFacts(is_awaited=True)


@pytest.mark.parametrize("error", [Forbidden("no permission"), NotFound("no definition")])
def test_a_list_that_is_refused_is_not(error: OperatorError) -> None:
    assert seen(error) == BackupFacts(refusal=str(error))


def test_those_that_cannot_be_read_are_named() -> None:
    keys = tuple(Key("ns", f"b{number:02}") for number in range(11))
    named = ", ".join(f"b{number:02} (why)" for number in range(10))
    found = seen(None, has_synced=True, unreadable=(*keys, Key("other", "b00")))
    assert found == BackupFacts(is_listed=True, unreadable=f"EtcdBackup {named} and others cannot be read")
    found = seen(None, has_synced=True, unreadable=(keys[0], Key("other", "b00")))
    assert found == BackupFacts(is_listed=True, unreadable="EtcdBackup b00 (why) cannot be read")


def test_a_list_that_came_once_counts() -> None:
    assert seen(Unavailable("no answer"), has_synced=True) == BackupFacts(is_listed=True)
    assert seen(None, has_started=False) == BackupFacts()
