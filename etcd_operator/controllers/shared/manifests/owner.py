"""Owner references, so that Kubernetes deletes objects with their owner."""

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster


def metadata_of(cluster: DesiredCluster, name: str, labels: dict[str, str]) -> RawObject:
    """The metadata of an object that belongs to a cluster."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels,
        "ownerReferences": owned_by(cluster.api_version, "EtcdCluster", name=cluster.name, uid=cluster.uid),
    }


def owned_by(api_version: str, kind: str, *, name: str, uid: str) -> list[RawObject]:
    """A single controlling owner.

    `controller: true` matters not only for garbage collection: without it, `kubectl drain` refuses a pod
    without a ReplicaSet.
    """
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
