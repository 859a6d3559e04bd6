"""What the observation reports of EtcdBackups while their cache is not complete."""

from types import SimpleNamespace
from typing import Any

import pytest

from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.core.stock import BackupFacts
from etcd_operator.errors import Forbidden, NotFound, OperatorError, Unavailable
from etcd_operator.reconcile.restores.stored import StoredBackups
from unit.core.manual_recoveries import lost
from unit.fakes.clock import FakeClock

CLUSTER = EtcdCluster(metadata=ObjectMeta(name="db", namespace="ns", uid="uid-1"))


def seen(error: OperatorError | None, *, has_started: bool = True, has_synced: bool = False) -> BackupFacts:
    """Of a cluster without a quorum. error: of the last request to list them."""
    backups: Any = SimpleNamespace(
        has_synced=has_synced, is_listing=has_started and not has_synced, last_error=error, store={}
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


def test_a_list_that_came_once_counts() -> None:
    assert seen(Unavailable("no answer"), has_synced=True) == BackupFacts(is_listed=True)
    assert seen(None, has_started=False) == BackupFacts()
