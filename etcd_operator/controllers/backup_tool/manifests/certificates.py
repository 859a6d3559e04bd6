"""The certificates of a backup tool of a cluster with TLS for clients, in a Secret that its pod mounts.

One is to reach etcd, as `root`: nobody else may take a snapshot once etcd's authentication is on. The other
is to serve its own HTTP API. The cluster owns the Secret.
"""

from datetime import timedelta

from etcd_operator.controllers.backup_tool.manifests.backup_tool import tool_name
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.authorities import Authorities
from etcd_operator.controllers.etcd_cluster.manifests.tls import USER, Named, client_settings, named
from etcd_operator.controllers.shared.decide.tls_spec import leaf_duration
from etcd_operator.pki.names import names_of
from etcd_operator.pki.profiles import client, server
from etcd_operator.pods.contract import CA_FILE

LASTS = timedelta(days=1)
"""For how long they are valid at most: whoever reads the Secret is root for as long.

A third of it is how long backups go on while no operator runs.
"""


def leafs(cluster: DesiredCluster, made: Authorities) -> tuple[Named, ...]:
    """What the Secret has, under the names of `pods.contract`."""
    lasts = min(LASTS, leaf_duration(client_settings(cluster)))
    names = names_of((tool_name(cluster.name),), namespace=cluster.namespace, zone=made.zone)
    return tuple(
        named(file, "client", made, CA_FILE, leaf, lasts)
        for file, leaf in (("tls", client(USER)), ("server", server(names)))
    )
