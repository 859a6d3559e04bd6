"""Where a backup is read from: the members of an EtcdCluster, or a URL."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from etcd_operator.api.backups import BackupSource
from etcd_operator.api.persisted import AnyCluster
from etcd_operator.controllers.etcd_backup.decide.state import SourceCluster
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Resolves sources. clusters: the caches of EtcdClusters of both groups."""

    clusters: tuple[Informer[Any], ...]

    def find(self, source: BackupSource, namespace: str) -> SourceCluster:
        """The endpoints of a source, or why there are none.

        A URL with the name of a Service of an EtcdCluster means all members of that cluster, so that the
        best of them is chosen: a connection to the Service may end at any member.
        """
        if source.cluster_name:
            key = Key(namespace, source.cluster_name)
            return self._unreadable(key) or _state(key, self._cluster(key))
        host, address = _address(source.cluster_url)
        found = self._cluster(Key(namespace, host))
        endpoints = _endpoints(found) if found is not None else ()
        return SourceCluster(endpoints=endpoints or (address,))

    def find_live(self, source: BackupSource, objects: Objects) -> SourceCluster:
        """The same for a source with a name, read from the API server. Raises the errors of `Client`."""
        key = objects.key(source.cluster_name)
        found = (objects.find(informer.resource, key.name, AnyCluster) for informer in self.clusters)
        return _state(key, next((cluster for cluster in found if cluster is not None), None))

    def _unreadable(self, key: Key) -> SourceCluster | None:
        found = (informer.store.unreadable_at(key) for informer in self.clusters)
        error = next((each.error for each in found if each is not None), "")
        message = f"EtcdCluster {key.name} exists and cannot be read: {error}"
        return SourceCluster(reason="SourceNotReady", message=message) if error else None

    def _cluster(self, key: Key) -> Any:
        found: Iterable[Any] = (informer.store.get(key) for informer in self.clusters)
        return next((cluster for cluster in found if cluster is not None), None)


def _state(key: Key, found: Any) -> SourceCluster:
    """What a source with a name means for an EtcdCluster, None if there is none."""
    if found is None:
        return SourceCluster(
            reason="UnknownCluster",
            message=f"there is no EtcdCluster {key.name} in the namespace {key.namespace}: check "
            "spec.source.clusterName",
        )
    if found.metadata.is_deleting:
        return SourceCluster(reason="UnknownCluster", message=f"EtcdCluster {key.name} is being deleted")
    if not found.status.cluster_id or not found.status.endpoints:
        return SourceCluster(reason="SourceNotReady", message=f"EtcdCluster {key.name} has not served yet")
    return SourceCluster(endpoints=_endpoints(found))


def _endpoints(cluster: Any) -> tuple[str, ...]:
    return tuple(_address(url)[1] for url in cluster.status.endpoints)


def _address(url: str) -> tuple[str, str]:
    """The host of a valid URL, and `host:port`."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts.hostname or "", host if parts.port is not None else f"{host}:{CLIENT_PORT}"
