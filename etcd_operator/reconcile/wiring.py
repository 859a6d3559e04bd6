"""What a group is: caches and controllers that start together; and what all groups share.

A group starts working when its own caches are complete. Groups do not wait for each
other's resources to be installed: a missing CRD stops only its own group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etcd_operator.clock import Clock
from etcd_operator.dialects.base import Defaults
from etcd_operator.engine.controller import Controller, Reconcile
from etcd_operator.etcd.client import OnCall
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder
from etcd_operator.kube.informer import Informer
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.quorum_check import QuorumCheck
from etcd_operator.reconcile.upgrade import Seconds

NewController = Callable[[str, Reconcile], Controller]


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What all groups share.

    probe_deadline, resync: in seconds. may_act: whether this process leads right now; leads_for: whether it
    leads and no other process can within so many seconds (a process without leader election always does).
    on_upgrade, on_leaderless: see `UpgradeWatch`. backup_image: of the pods of backups, see `OwnImage`.
    """

    client: Client
    clock: Clock
    recorder: Recorder
    defaults: Defaults
    new_controller: NewController
    on_call: OnCall
    probe_deadline: float
    resync: float
    on_upgrade: Seconds
    on_leaderless: Seconds
    backup_image: Callable[[], str]
    may_act: Callable[[], bool] = lambda: True
    leads_for: Callable[[float], bool] = lambda _seconds: True


@dataclass(frozen=True, kw_only=True)
class Group:
    """Running parts that start together, once their caches are complete.

    others: informers of other groups that have to be complete, or of kinds that are not defined, before its
    controllers start.
    """

    name: str
    informers: tuple[Informer[Any], ...]
    controllers: tuple[Controller, ...]
    others: tuple[Informer[Any], ...]

    @property
    def has_synced(self) -> bool:
        """Whether every cache holds a complete list."""
        return all(informer.has_synced for informer in self.informers)


@dataclass(frozen=True, kw_only=True)
class ClusterGroup(Group):
    """One API group with its clusters: it queries their etcd."""

    prober: Prober
    quorum_check: QuorumCheck
