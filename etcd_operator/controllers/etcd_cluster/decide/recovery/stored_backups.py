"""Which EtcdBackups a cluster without a quorum can be recovered from.

Those of the recorded etcd cluster with a higher revision than every survivor. The newest one is offered; a
person may name an older one, because only reading it shows whether a backup is whole.
"""

from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.known_backups import CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.versions import can_restore


def backups_newer_than(state: ClusterState, survivor: Member | None) -> tuple[CompletedBackup, ...]:
    """The EtcdBackups that have more than the best survivor (None: there is none), the newest first.

    One whose verification has failed comes after all others.
    """
    least = survivor.revision if survivor is not None else 0
    found = [
        backup
        for backup in state.backups.stored
        if backup.cluster_id == state.persisted.cluster_id
        and backup.revision > least
        and can_restore(backup.etcd_version)
    ]
    return tuple(sorted(found, key=_rank, reverse=True))


def _rank(backup: CompletedBackup) -> tuple[bool, int, str]:
    return not backup.is_damaged, backup.revision, backup.time
