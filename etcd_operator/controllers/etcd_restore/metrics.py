"""What metrics show of EtcdRestores, as passes over them find it."""

from dataclasses import dataclass, field

from etcd_operator.api.restores import COMPLETED, FAILED, KIND, PENDING, EtcdRestore
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_restore.decide.progress import RestoreMemory, remembered
from etcd_operator.controllers.etcd_restore.decide.state import RestoreState
from etcd_operator.formats import instant, moment
from etcd_operator.keys import Key
from etcd_operator.object_metrics import OnMetrics, OnRestoreEnd, RestoreMetrics


@dataclass(eq=False, kw_only=True)
class RestoreMetricsReporter:
    """Passes on the metrics of each EtcdRestore. Only passes over a key call this with it."""

    clock: Clock
    on_metrics: OnMetrics
    on_end: OnRestoreEnd
    _kept: dict[Key, RestoreMemory] = field(default_factory=dict)
    _ending: dict[Key, str] = field(default_factory=dict)

    def begun(self, restore: EtcdRestore) -> None:
        """A pass over it begins, which may fail before it knows how far it is: also such a restore hangs."""
        metadata = restore.metadata
        known = self._kept.get(metadata.key)
        is_over = metadata.is_deleting or restore.status.phase in (COMPLETED, FAILED)
        if is_over or (known is not None and known.uid == metadata.uid):
            return
        began = moment(restore.status.start_time) or instant(metadata.creation_timestamp)
        self._show(restore, PENDING, began.timestamp())

    def observed(self, restore: EtcdRestore, state: RestoreState) -> None:
        """It is under way."""
        metadata, now = restore.metadata, self.clock.now().timestamp()
        key = metadata.key
        kept = remembered(self._kept.get(key), metadata.uid, state, restore.status.start_time, now)
        self._kept[key] = kept
        self._show(restore, PENDING, kept.at)

    def ending(self, restore: EtcdRestore) -> None:
        """This process is about to write its end: the reply may be lost."""
        self._ending[restore.metadata.key] = restore.metadata.uid

    def ended(self, restore: EtcdRestore) -> None:
        """Its end is in its status, and counted by the process that wrote it; or it is being deleted."""
        metadata, phase = restore.metadata, restore.status.phase
        key = metadata.key
        if phase in (COMPLETED, FAILED) and self._ending.pop(key, "") == metadata.uid:
            self.on_end(phase)
        if metadata.is_deleting:
            self.forget(key)
            return
        self._kept.pop(key, None)
        self._show(restore, phase)

    def forget(self, key: Key) -> None:
        """It is deleted."""
        self._kept.pop(key, None)
        self._ending.pop(key, None)
        self.on_metrics(KIND, key, None)

    def _show(self, restore: EtcdRestore, phase: str, last_progress: float | None = None) -> None:
        metrics = RestoreMetrics(cluster=_cluster_of(restore), phase=phase, last_progress=last_progress)
        self.on_metrics(KIND, restore.metadata.key, metrics)


def _cluster_of(restore: EtcdRestore) -> str:
    """The name in its template, which may be invalid."""
    template = restore.spec.get("clusterTemplate")
    name = template.get("clusterName") if isinstance(template, dict) else ""
    return name if isinstance(name, str) else ""
