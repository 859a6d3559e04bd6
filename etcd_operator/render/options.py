"""etcd's configuration, once, in the two spellings it is written in: flags and environment."""

from collections.abc import Mapping

from etcd_operator.api.meta import RawObject
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.render.urls import CLIENT_PORT, METRICS_PORT, PEER_PORT, url

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 -- inside a pod, whose network is its own
"""Not of IPv4 alone: Go takes an unspecified address of either family for all addresses that there are,
IPv6 included, and listens on IPv4 where the kernel knows nothing else. `[::]` does exactly the same. So one
manifest serves clusters with IPv4, with IPv6 and with both (`unit/etcd/test_families.py` runs it there)."""

Options = dict[str, str]

DOWNWARD_API_OPTIONS = ("initial-cluster", "initial-cluster-state")
"""What decides how an empty data directory is taken: kept where a running pod can be told otherwise."""


def etcd_options(
    *, name: str, host: str, data_dir: str, initial_cluster: Mapping[str, str], state: str, token: str
) -> Options:
    """The options of one member by flag name.

    host: DNS name under which peers and clients reach it.
    initial_cluster: host by member name. state: `new` or `existing`.
    """
    return {
        "name": name,
        "data-dir": data_dir,
        "listen-peer-urls": url(ALL_ADDRESSES, PEER_PORT),
        "listen-client-urls": url(ALL_ADDRESSES, CLIENT_PORT),
        "listen-metrics-urls": url(ALL_ADDRESSES, METRICS_PORT),
        "initial-advertise-peer-urls": url(host, PEER_PORT),
        "advertise-client-urls": url(host, CLIENT_PORT),
        "initial-cluster": ",".join(
            f"{member}={url(at, PEER_PORT)}" for member, at in initial_cluster.items()
        ),
        "initial-cluster-state": state,
        "initial-cluster-token": token,
    }


def from_pod(options: Options, keys: PodKeys) -> dict[str, str]:
    """The options that a running pod can be told anew, as annotations (see `api.podkeys`)."""
    return {
        keys.initial_cluster: options["initial-cluster"],
        keys.initial_cluster_state: options["initial-cluster-state"],
    }


def fixed(options: Options) -> Options:
    """The options that a pod keeps for life."""
    return {name: value for name, value in options.items() if name not in DOWNWARD_API_OPTIONS}


def downward_api_env(keys: PodKeys) -> list[RawObject]:
    """Environment that the kubelet fills from the pod's annotations at every start of its container."""
    at = {"initial-cluster": keys.initial_cluster, "initial-cluster-state": keys.initial_cluster_state}
    return [
        {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{at[option]}']"}}}
        for option in DOWNWARD_API_OPTIONS
        for variable in as_environment({option: ""})
    ]


def as_flags(options: Options) -> list[str]:
    """`--name=value` for each option."""
    return [f"--{name}={value}" for name, value in options.items()]


def as_environment(options: Options) -> dict[str, str]:
    """`ETCD_NAME: value` for each option: etcd reads its flags from there too."""
    return {f"ETCD_{name.upper().replace('-', '_')}": value for name, value in options.items()}
