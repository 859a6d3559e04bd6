"""What restores under way read: neither a stored backup nor its EtcdBackup is removed beneath them.

Read live, and only before something is removed: that is rare, and a cache may be behind a new EtcdRestore.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.api.persisted import AnyCluster
from etcd_operator.api.restores import COMPLETED, FAILED, EtcdRestore, RestoreSpec
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import parsed
from etcd_operator.errors import NotFound
from etcd_operator.kube import resources


@dataclass(frozen=True, kw_only=True)
class Read:
    """A backup that is being restored. Either may be empty."""

    url: str = ""
    name: str = ""  # of its EtcdBackup


def being_read(objects: Objects) -> tuple[Read, ...]:
    """By the EtcdRestores of a namespace, and by recoveries and restores in place of its clusters.

    Raises the errors of `Client`, and Conflict for objects that cannot be read: what cannot be read may be in
    use.
    """
    return (*_by_restores(objects), *_by_clusters(objects))


def urls_of(found: tuple[Read, ...], objects: Objects) -> list[str]:
    """Where what is read is stored; an EtcdRestore that begins may know only the name of its EtcdBackup."""
    return [url for url in (each.url or _url(each.name, objects) for each in found) if url]


def _by_restores(objects: Objects) -> Iterator[Read]:
    try:
        listed = objects.client.list(resources.RESTORES, EtcdRestore, namespace=objects.namespace)
    except NotFound:
        return  # without its definition there is none
    for restore in listed.whole():
        if restore.status.phase in (COMPLETED, FAILED):
            continue
        spec, _ = parsed(restore.spec, RestoreSpec, lambda _: "")
        if spec is not None:
            url = restore.status.url or spec.source.url
            yield Read(url=url, name=spec.source.backup_name)
        elif restore.status.url:  # another version of the operator has accepted it
            yield Read(url=restore.status.url)


def _by_clusters(objects: Objects) -> Iterator[Read]:
    listed = objects.client.list(resources.IMPROBABLE_CLUSTERS, AnyCluster, namespace=objects.namespace)
    for cluster in listed.whole():
        recovery = cluster.status.recovery
        if recovery is None or not recovery.is_under_way(cluster.status.cluster_id):
            continue
        if recovery.stored_backup is not None:
            yield Read(url=recovery.stored_backup.url, name=recovery.stored_backup.name)


def _url(name: str, objects: Objects) -> str:
    backup = objects.find(resources.BACKUPS, name, EtcdBackup) if name else None
    return backup.status.url if backup is not None else ""
