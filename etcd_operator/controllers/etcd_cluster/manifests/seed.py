"""The pod of an ephemeral seed: a member that fetches its data, see `manifests.steps`.

Until it is **opened** to clients, the pod lacks the label `app`, by which the client Service selects:
no client writes to a seed that may still be discarded. (The seed of a persistent cluster is an EtcdPeer
with a survivor, see `manifests.persistent`.)
"""

from collections.abc import Callable

from etcd_operator.api import coreos
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import Backup
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining, Seeding
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, survivor_reader
from etcd_operator.controllers.etcd_cluster.manifests.ephemeral import DATA_DIR
from etcd_operator.controllers.etcd_cluster.manifests.fetch_backup import add_source
from etcd_operator.controllers.etcd_cluster.manifests.steps import RUN_STEPS, add_steps
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, url


def pod(cluster: DesiredCluster, name: str, start: Seeding, *, image: Callable[[], str]) -> RawObject:
    """The seed, with its steps active, and not open to clients.

    image: the operator's own, for what fetches a backup or reads a survivor; raises what it raises.
    """
    body = ephemeral.pod(cluster, name, Joining(members=(name,), token=start.token))
    metadata, spec = body["metadata"], body["spec"]
    del metadata["labels"][coreos.APP_LABEL]
    metadata["annotations"] |= RUN_STEPS
    fetch = None
    if isinstance(start.source, Backup):
        fetch = add_source(spec, cluster, start.source, image=image())
    elif start.reader is not None:
        fetch = survivor_reader.fetch(spec, start.reader, version=cluster.version, image=image())
    add_steps(
        spec,
        survivor=url("" if isinstance(start.source, Backup) else start.source.name, CLIENT_PORT),
        name=name,
        host=name,
        data_dir=DATA_DIR,
        token=start.token,
        fetch=fetch,
        bump=start.bump,
    )
    return body


def opened(cluster: DesiredCluster) -> dict[str, str]:
    """The labels that open the seed to clients."""
    return ephemeral.cluster_labels(cluster)
