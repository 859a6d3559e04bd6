"""Clusters to build for: as little and as much as a user may ask for."""

from typing import Any

import msgspec

from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import RawObject
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.starts import Bootstrapping, Joining, Resuming, Seeding, Start
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from etcd_operator.render import persistent as build
from unit.dialects.builders import DEFAULTS, bare, durable

IMAGE = "quay.io/coreos/etcd:v3.6.16"

SECURITY: dict[str, Any] = {"runAsUser": 1001, "fsGroup": 1001, "supplementalGroups": [7]}
POD: dict[str, Any] = {"securityContext": SECURITY}

PLAIN_BARE = CoreosDialect(DEFAULTS).desired(bare())
FULL_BARE = CoreosDialect(DEFAULTS).desired(
    bare({"size": 5, "version": "v3.5.35", "nodeSelector": {"disk": "ssd"}, "antiAffinity": True, "pod": POD})
)

TEMPLATE: dict[str, Any] = {
    "metadata": {"annotations": {"team": "storage"}, "labels": {"tier": "data"}},
    "resources": {"limits": {"cpu": "2500m", "memory": "1Gi"}, "requests": {"cpu": "200m"}},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "etcd", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "high",
    "securityContext": SECURITY,
}
CLAIM: dict[str, Any] = {
    "volumeClaimTemplate": {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "8Gi"}},
    }
}

PLAIN = ImprobableDialect(DEFAULTS).desired(durable())
FULL = ImprobableDialect(DEFAULTS).desired(
    durable({"replicas": 5, "version": "3.5.35", "podTemplate": TEMPLATE, "storage": CLAIM})
)

INITIAL_MEMBERS = ("db-0", "db-1", "db-2")
FOUNDING: Start = Bootstrapping(initial_members=INITIAL_MEMBERS, token="uid-1")
RESUMING: Start = Resuming(token="uid-1")
JOINING: Start = Joining(members=(*INITIAL_MEMBERS, "db-3"), token="uid-1")
SEEDING = Seeding(survivor="db-0002", token="uid-1-1")
ASKED_SEEDING = Seeding(survivor="db-2", token="uid-1-1")
BARE_FOUNDING = Bootstrapping(initial_members=("db-0000", "db-0001", "db-0002"), token="uid-1")


def peer_of(cluster: DesiredCluster, name: str = "db-1", start: Start = FOUNDING) -> EtcdPeer:
    """The EtcdPeer as the API server would return it."""
    body = msgspec.json.decode(msgspec.json.encode(build.peer(cluster, name, start)))
    body["metadata"]["uid"] = "uid-peer"
    return msgspec.convert(body, EtcdPeer)


def with_resources(resources: RawObject) -> EtcdPeer:
    """A peer whose pod has these resources."""
    template = msgspec.structs.replace(PLAIN.pod_template, resources=resources)
    peer = peer_of(PLAIN)
    return msgspec.structs.replace(peer, spec=msgspec.structs.replace(peer.spec, pod_template=template))
