"""Where the backup of an EtcdRestore is, and how its pods reach it.

An EtcdBackup is read live until the status records what is needed of it. From then on the record counts: all
members are restored from one snapshot, also if somebody deletes the EtcdBackup or creates another one of its
name.
"""

from etcd_operator.api.backups import COMPLETED, FAILED, BackupSpec, EtcdBackup
from etcd_operator.api.restores import RecordedBackup, RestoreSpec, RestoreStatus
from etcd_operator.controllers.etcd_restore.decide import spec as specs
from etcd_operator.controllers.etcd_restore.decide.state import SourceState
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import parsed
from etcd_operator.kube import resources

FoundSource = tuple[SourceState, BackupSpec | None]
"""Where it is, and how it is reached; None while that is not known."""


def source_of(spec: RestoreSpec, status: RestoreStatus, objects: Objects) -> FoundSource:
    """The backup of a restore with this spec and status. Raises the errors of `Client`."""
    name = spec.source.backup_name
    if not name:
        return SourceState(url=spec.source.url), specs.access(spec)
    if status.backup is not None:
        return _stored(spec, name, status.url, status.backup)
    backup = objects.find(resources.BACKUPS, name, EtcdBackup)
    return _missing(name, status.url) if backup is None else _found(spec, status, backup)


def _found(spec: RestoreSpec, status: RestoreStatus, backup: EtcdBackup) -> FoundSource:
    name, found = backup.metadata.name, backup.status
    if found.phase == FAILED:
        return _none("BackupFailed", f"EtcdBackup {name} has failed: choose another one")
    if found.phase != COMPLETED or not found.url:
        message = f"EtcdBackup {name} is not completed yet"
        return SourceState(reason="BackupNotReady", message=message), None
    if _is_another(status, backup):
        message = f"EtcdBackup {name} is not the one with which this restore began"
        return _none("Replaced", f"{message}: {_instead(status.url)}")
    recorded = RecordedBackup(uid=backup.metadata.uid, sha256=found.sha256, spec=backup.spec)
    return _stored(spec, name, found.url, recorded)


def _is_another(status: RestoreStatus, backup: EtcdBackup) -> bool:
    """Whether an earlier operator, which recorded less, began with something else."""
    snapshot = status.snapshot
    is_other = snapshot is not None and backup.status.sha256 not in ("", snapshot.sha256)
    return is_other or status.url not in ("", backup.status.url)


def _stored(spec: RestoreSpec, name: str, url: str, backup: RecordedBackup) -> FoundSource:
    stored, wrong = parsed(backup.spec, BackupSpec, lambda _: "")
    if stored is None:
        return _none("UnknownBackup", f"EtcdBackup {name}: {wrong}")
    return SourceState(url=url, backup=backup), specs.access_of_backup(spec, stored)


def _missing(name: str, known: str) -> FoundSource:
    """known: where it was, if an earlier operator found it."""
    message = f"there is no EtcdBackup {name} in this namespace: check spec.source.backupName"
    if known:
        message = f"EtcdBackup {name} was deleted: {_instead(known)}"
    return SourceState(reason="UnknownBackup", message=message, is_missing=True, is_final=bool(known)), None


def _instead(url: str) -> str:
    return f"to restore {url}, create another EtcdRestore with this URL as spec.source.objectURL"


def _none(reason: str, message: str) -> FoundSource:
    return SourceState(reason=reason, message=message, is_final=True), None
