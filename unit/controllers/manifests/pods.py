"""The pods of both kinds of member, and the environment of etcd in them."""

from typing import Any

from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, persistent_pod
from unit.controllers.manifests.cases import (
    EPHEMERAL_BOOTSTRAPPING,
    FULL_EPHEMERAL,
    FULL_PERSISTENT,
    IMAGE,
    PLAIN_EPHEMERAL,
    PLAIN_PERSISTENT,
    peer_of,
)


def spec_of(peer: Any) -> dict[str, Any]:
    spec: dict[str, Any] = persistent_pod.replica_set(peer, IMAGE)["spec"]["template"]["spec"]
    return spec


POD_SPECS = {
    "ephemeral": ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING)["spec"],
    "ephemeral full": ephemeral.pod(FULL_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING)["spec"],
    "persistent": spec_of(peer_of(PLAIN_PERSISTENT)),
    "persistent full": spec_of(peer_of(FULL_PERSISTENT)),
}
PODS: dict[str, Any] = {
    "ephemeral pod": ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "persistent pod": persistent_pod.replica_set(peer_of(PLAIN_PERSISTENT), IMAGE)["spec"]["template"],
}
FIXED_NEVER = ("--initial-cluster", "--initial-cluster-state")


def environment_in(peer: Any) -> dict[str, str]:
    return environment_of(persistent_pod.replica_set(peer, IMAGE)["spec"]["template"])


def environment_of(pod: dict[str, Any]) -> dict[str, str]:
    """The environment of etcd as the kubelet sets it."""
    annotations = pod["metadata"]["annotations"]
    filled = {f"metadata.annotations['{name}']": value for name, value in annotations.items()}

    def value(entry: dict[str, Any]) -> str:
        return str(
            entry["value"] if "value" in entry else filled[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        )

    return {entry["name"]: value(entry) for entry in pod["spec"]["containers"][0]["env"]}
