"""The metadata of what belongs to a cluster."""

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.shared.manifests.owner import owned_by


def metadata_of(cluster: DesiredCluster, name: str, labels: dict[str, str]) -> RawObject:
    """The metadata of an object that belongs to a cluster."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels,
        "ownerReferences": owned_by(cluster.api_version, "EtcdCluster", name=cluster.name, uid=cluster.uid),
    }
