"""The NetworkPolicy of a cluster: who may connect to its members and to its backup tool (decision 040).

It needs no rule for the kubelet: Kubernetes always admits a pod's own node. Nor for `kubectl port-forward`,
which connects inside of the pod.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.shared.manifests.affinity import selects
from etcd_operator.controllers.shared.manifests.job import APP_LABEL, BACKUP_APP
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT
from etcd_operator.pods.contract import BACKUP_TOOL_PORT, METRICS_PORT, READER_PORT

_INGRESS = "Ingress"
_SELECTORS = ("podSelector", "namespaceSelector")


def network_policy(cluster: DesiredCluster, operator: RawObject, *, has_outside_peers: bool) -> RawObject:
    """The NetworkPolicy. operator: the peer that stands for the operator's pods.

    has_outside_peers: other pods than those of this cluster connect to the peer port.
    """
    label, _, name = cluster.selector.partition("=")
    own = {"podSelector": {"matchLabels": {label: name}}}
    of_any = {"podSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
    backups = {"podSelector": {"matchLabels": {APP_LABEL: BACKUP_APP}}}
    network = cluster.network
    clients = network.clients
    rules = (
        _rule((operator, own, backups, *clients) if clients is not None else (), CLIENT_PORT),
        _rule(() if has_outside_peers else (own,), PEER_PORT),
        _rule((operator, *network.metrics), METRICS_PORT),
        _rule((operator, own), READER_PORT),  # the seed that asks for it is a member
        _rule((operator, of_any), BACKUP_TOOL_PORT),  # seeds of other clusters restore its backups
    )
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata_of(cluster, cluster.name, {label: name}),
        "spec": {**own, "policyTypes": [_INGRESS], "ingress": list(rules)},
    }


def isolates(spec: RawObject, labels: Mapping[str, str]) -> bool:
    """Whether a NetworkPolicy decides who connects to a pod with these labels: not one about egress only."""
    return _INGRESS in spec.get("policyTypes", [_INGRESS]) and selects(spec.get("podSelector", {}), labels)


def admits_all_peers(spec: RawObject) -> bool:
    """Whether a NetworkPolicy that `network_policy` made was made for peers from outside."""
    rules = spec.get("ingress", ())
    return any(port.get("port") == PEER_PORT for r in rules if "from" not in r for port in r.get("ports", ()))


def _rule(peers: Iterable[RawObject], *ports: int) -> RawObject:
    """A rule that admits these peers to these ports; without a peer it admits everybody."""
    rule: RawObject = {"ports": [{"port": port, "protocol": "TCP"} for port in ports]}
    admitted = [_as_stored(peer) for peer in peers]
    return rule | ({"from": admitted} if admitted else {})


def _as_stored(value: Any) -> Any:
    """As the API server stores it: without empty lists and maps, but with selectors that select all."""
    if isinstance(value, list):
        return [_as_stored(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _as_stored(each) for key, each in value.items()}
    return {key: each for key, each in found.items() if each not in ([], {}) or key in _SELECTORS}
