"""Clusters to render: with the minimum and with all fields that a user may set."""

from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api import coreos, improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import RawObject
from etcd_operator.api.persisted import Bootstrap, TlsRecord
from etcd_operator.api.recoveries import OfflineSurvivor, Survivor
from etcd_operator.api.tls import UserSecret
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.starts import (
    Bootstrapping,
    Joining,
    Resuming,
    Seeding,
    Start,
)
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.manifests import persistent
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, coreos_cluster, improbable_cluster

IMAGE = "quay.io/coreos/etcd:v3.6.16"

SECURITY: dict[str, Any] = {"runAsUser": 1001, "fsGroup": 1001, "supplementalGroups": [7]}
POD: dict[str, Any] = {"securityContext": SECURITY}

PLAIN_EPHEMERAL = CoreosDialect(DEFAULTS).desired(coreos_cluster())
FULL_EPHEMERAL = CoreosDialect(DEFAULTS).desired(
    coreos_cluster(
        {"size": 5, "version": "v3.5.35", "nodeSelector": {"disk": "ssd"}, "antiAffinity": True, "pod": POD}
    )
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

NETWORK: dict[str, Any] = {
    "clients": [
        {"podSelector": {"matchLabels": {"app": "web"}, "matchExpressions": []}},
        {"podSelector": {}, "namespaceSelector": {"matchLabels": {}}},
    ],
    "metrics": [
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "monitoring", "operator": "Exists", "values": []}]
            }
        }
    ],
}

PLAIN_PERSISTENT = ImprobableDialect(DEFAULTS).desired(improbable_cluster())
FULL_PERSISTENT = ImprobableDialect(DEFAULTS).desired(
    improbable_cluster(
        {
            "replicas": 5,
            "version": "3.5.35",
            "podTemplate": TEMPLATE,
            "storage": CLAIM,
            "networkPolicy": NETWORK,
        }
    )
)
TAKEN_OVER = replace(
    PLAIN_PERSISTENT, persisted=PersistedState(bootstrap=Bootstrap(members=(), token=PLAIN_PERSISTENT.name))
)

TLS: dict[str, Any] = {"peer": {"auto": {}}, "client": {"auto": {}, "minVersion": "TLS1.3"}}
RECORDED = TlsRecord(peer_ca="aa", client_ca="bb", client_cert_auth=True, min_version="TLS1.3")
SECURED_EPHEMERAL = CoreosDialect(DEFAULTS).desired(
    coreos_cluster({"size": 3, "tls": TLS}, status=coreos.ClusterStatus(tls=RECORDED))
)
SECURED_PERSISTENT = ImprobableDialect(DEFAULTS).desired(
    improbable_cluster({"tls": TLS}, status=improbable.ClusterStatus(tls=RECORDED))
)

OWN_PEERS: dict[str, Any] = {"peer": {"secretRef": {"name": "own"}}}
RECORDED_OWN = TlsRecord(peer_secret=UserSecret(name="own", keys="peer"))
SUPPLIED_EPHEMERAL = CoreosDialect(DEFAULTS).desired(
    coreos_cluster(
        {
            "size": 3,
            "version": "v3.6.16",
            "tls": {
                **OWN_PEERS,
                "client": {
                    "secretRef": {"name": "own-server"},
                    "operatorSecretRef": {"name": "own-operator"},
                },
            },
        },
        status=coreos.ClusterStatus(
            cluster_id="c0de",
            tls=TlsRecord(
                client_cert_auth=True,
                peer_secret=UserSecret(name="own"),
                client_secret=UserSecret(name="own-server", keys="server"),
                operator_secret=UserSecret(name="own-operator", keys="etcd-client"),
            ),
        ),
    )
)
OWN_PEERS_EPHEMERAL = CoreosDialect(DEFAULTS).desired(
    coreos_cluster(
        {"size": 3, "version": "v3.5.35", "tls": OWN_PEERS}, status=coreos.ClusterStatus(tls=RECORDED_OWN)
    )
)
OWN_PEERS_PERSISTENT = ImprobableDialect(DEFAULTS).desired(
    improbable_cluster(
        {"tls": {**OWN_PEERS, "client": {"auto": {}}}},
        status=improbable.ClusterStatus(tls=msgspec.structs.replace(RECORDED_OWN, client_ca="bb")),
    )
)

INITIAL_MEMBERS = ("db-0", "db-1", "db-2")
BOOTSTRAPPING: Start = Bootstrapping(members=INITIAL_MEMBERS, token="uid-1")
RESUMING: Start = Resuming(token="uid-1")
JOINING = Joining(members=(*INITIAL_MEMBERS, "db-3"), token="uid-1")
EPHEMERAL_SEEDING = Seeding(source=Survivor(name="db-0002"), token="uid-1-1")
PERSISTENT_SEEDING = Seeding(source=Survivor(name="db-2"), token="uid-1-1")
EPHEMERAL_OFFLINE = Seeding(
    source=OfflineSurvivor(name="db-0002", sha256="ab" * 32), token="uid-1-1", reader="survivor"
)
PERSISTENT_OFFLINE = Seeding(source=OfflineSurvivor(name="db-2", sha256="ab" * 32), token="uid-1-1")
EPHEMERAL_BOOTSTRAPPING = Bootstrapping(members=("db-0000", "db-0001", "db-0002"), token="uid-1")


def peer_of(cluster: DesiredCluster, name: str = "db-1", start: Start = BOOTSTRAPPING) -> EtcdPeer:
    """The EtcdPeer as the API server returns it."""
    body = msgspec.json.decode(msgspec.json.encode(persistent.peer(cluster, name, start)))
    body["metadata"]["uid"] = "uid-peer"
    return msgspec.convert(body, EtcdPeer)


def with_resources(resources: RawObject) -> EtcdPeer:
    """An EtcdPeer whose pod has these resources."""
    template = msgspec.structs.replace(PLAIN_PERSISTENT.pod_template, resources=resources)
    peer = peer_of(PLAIN_PERSISTENT)
    return msgspec.structs.replace(peer, spec=msgspec.structs.replace(peer.spec, pod_template=template))
