"""Does what the schedule demands, and mends it in time.

Through the API where that is enough; processes, kubelets and links through what is behind `hack/cluster
fault`, so only on a cluster of hack/cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from e2e.support.api import Api
from etcd_operator.errors import NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from localcluster import faults
from localcluster.commands import CommandError
from localcluster.console import RefusalError
from localcluster.instance import Instance

from .health import Watch
from .schedule import FaultKind

DELETE_GRACE_SECONDS = 1
"""As `kubectl delete pod --now`: etcd gets SIGTERM, and a second later SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Something that is broken until it is mended."""

    ends_at: float
    what: str
    is_of_node: bool
    watches: tuple[Watch, ...]
    mend: Callable[[], object]


class Injector:
    """Injects faults in one namespace; `outages` are those that last."""

    def __init__(self, api: Api, namespace: str, instance: Instance | None, outage_seconds: float) -> None:
        self._api = api
        self._namespace = namespace
        self._instance = instance
        self._seconds = outage_seconds
        self.outages: list[Outage] = []

    @property
    def node_out(self) -> str:
        """What is wrong with a node now; empty if nothing is."""
        return next((outage.what for outage in self.outages if outage.is_of_node), "")

    def member(self, kind: FaultKind, pod: str, watch: Watch) -> None:
        """Inject a fault into a member."""
        where = f"{self._namespace}/{pod}"
        if kind is FaultKind.DELETE:
            with suppress(NotFound):
                self._api.client.delete(
                    resources.PODS, Key(self._namespace, pod), grace_seconds=DELETE_GRACE_SECONDS
                )
        elif kind is FaultKind.KILL:
            self.signal(where, faults.CONTAINER)
        else:
            instance = self._local()
            faults.freeze(instance, where, faults.CONTAINER)
            self._keep(
                f"{pod} frozen",
                (watch,),
                lambda: faults.thaw(instance, where, faults.CONTAINER),
                of_node=False,
            )

    def node(self, kind: FaultKind, node: str, watches: Sequence[Watch]) -> None:
        """Inject a fault into a node; `watches` are those of the clusters that have members there."""
        instance = self._local()
        if kind is FaultKind.NODE_STOP:
            faults.stop_node(instance, node)
            self._keep(f"{node} stopped", watches, lambda: faults.start_node(instance, node), of_node=True)
        else:
            faults.cut_node(instance, node)
            self._keep(f"{node} cut off", watches, lambda: faults.mend_node(instance, node), of_node=True)

    def signal(self, pod: str, container: str) -> None:
        """SIGKILL the main process of a container of `NAMESPACE/POD`."""
        faults.kill(self._local(), pod, container)

    def mend(self, *, everything: bool) -> list[str]:
        """Mend what is due, or everything; what was mended. What fails is tried again the next time."""
        mended, left = [], []
        for outage in self.outages:
            if not everything and outage.ends_at > time.monotonic():
                left.append(outage)
                continue
            try:
                outage.mend()
            except CommandError:
                left.append(outage)
                continue
            except RefusalError:
                pass  # the frozen process has ended, and its container with it
            for watch in outage.watches:
                watch.end_fault()
            mended.append(outage.what)
        self.outages = left
        return mended

    def _keep(
        self, what: str, watches: Sequence[Watch], mend: Callable[[], object], *, of_node: bool
    ) -> None:
        ends_at = time.monotonic() + self._seconds
        outage = Outage(ends_at=ends_at, what=what, is_of_node=of_node, watches=tuple(watches), mend=mend)
        self.outages.append(outage)

    def _local(self) -> Instance:
        if self._instance is None:
            raise RefusalError("only a cluster of hack/cluster can get this fault; use --name")
        return self._instance
