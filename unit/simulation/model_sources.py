"""What seeds of the model world are restored from: a survivor's data, or a backup."""

from collections.abc import Callable

from etcd_operator.api.recoveries import OfflineSurvivor, Source, Survivor, ToolBackup
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from unit.simulation.model_backups import Backup, Tool
from unit.simulation.model_disks import Disk
from unit.simulation.model_etcd import Etcd

NO_BACKUP = PodProblem(reason="CrashLoopBackOff", message="no backup that is whole, or not the one verified")


class Sources(Etcd):
    """All etcd processes, and the backups of their cluster.

    fetched: the backups that clusters were begun with, by the ID of the new cluster.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tool = Tool()
        self.fetched: dict[str, Backup] = {}

    def snapshot_of(self, survivor: str) -> Disk | None:
        """What `etcdctl snapshot save` gets: nothing of a process that has seen no leader yet."""
        found = next((p for p in self.alive() if p.name == survivor and p.has_led), None)
        return None if found is None or found.is_cut_off or self.requires_user else found.disk

    def data_of(self, survivor: str, sha256: str) -> Disk | PodProblem | None:
        """What a reader sends, which ends once its member sees a leader. A seed fails on anything else."""
        found = next((p for p in self.alive() if p.name == survivor), None)
        if found is None or found.is_cut_off:
            return None
        if found.has_led or found.sha256 != sha256:
            return PodProblem(reason="CrashLoopBackOff", message="what was read is not sent any more")
        return found.disk

    def found(self, source: Source) -> Disk | Backup | PodProblem | None:
        """What a seed gets; of backups by name, else the newest; None while nobody answers."""
        match source:
            case Survivor():
                return self.snapshot_of(source.name)
            case OfflineSurvivor():
                return self.data_of(source.name, source.sha256)
            case ToolBackup() if self.tool.is_silent:
                return None
        return self.tool.served(source.name) or NO_BACKUP

    def back_up(self, choose: Callable[[int], int] = lambda _: 0) -> None:
        """Begin a backup of a member that a quorum follows and clients reach; choose: which, of so many."""
        for group in self.groups(led=True):
            able = [process for process in group.up if self.takes_clients(process)]
            if able:
                self.tool.begin(able[choose(len(able))])
