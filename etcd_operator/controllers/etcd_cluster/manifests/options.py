"""The configuration of etcd, in its forms: flags, environment, and annotations of the pod."""

from collections.abc import Iterable, Mapping

from etcd_operator.api.cluster_spec import PLAIN, ClientMode, MemberTls
from etcd_operator.api.meta import RawObject
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.controllers.etcd_cluster.decide.members import Serving
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, url
from etcd_operator.pods.contract import METRICS_PORT

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 -- inside a pod, whose network is its own
"""Not only IPv4: for Go an unspecified address of either family means all addresses, including IPv6, and only
IPv4 where the kernel supports nothing else. `[::]` has the same effect. So one manifest works with IPv4, with
IPv6 and with both (tested in `unit/etcd/test_families.py`)."""

Options = dict[str, str]

DOWNWARD_API_OPTIONS = ("initial-cluster", "initial-cluster-state")
"""The options that decide what etcd does with an empty data directory; they can change in a running pod."""

LISTEN, MIN_VERSION = SERVING_OPTIONS = ("listen-client-urls", "tls-min-version")
"""With TLS for clients: the options that can change when etcd is started again in the same pod."""


def etcd_options(  # noqa: PLR0913 -- all that a start depends on
    *,
    name: str,
    host: str,
    data_dir: str,
    initial_cluster: Mapping[str, str],
    state: str,
    token: str,
    external: Iterable[tuple[str, str]] = (),
    secured: MemberTls = PLAIN,
    version: str = "",
) -> Options:
    """The options of a member, by flag name.

    host: DNS name of the member for peers and clients.
    initial_cluster: host by member name. state: `new` or `existing`.
    external: a name and a peer URL for each member of a cluster that is adopted (`actions.Joining`).
    secured: its TLS; the pod has the volume of `manifests.tls` then. version: of etcd.
    """
    peer, client = secured.peer, secured.client
    own = ((member, url(at, PEER_PORT, is_secure=peer)) for member, at in initial_cluster.items())
    return {
        "name": name,
        "data-dir": data_dir,
        "listen-peer-urls": url(ALL_ADDRESSES, PEER_PORT, is_secure=peer),
        LISTEN: listen_client_urls(secured),
        "listen-metrics-urls": url(ALL_ADDRESSES, METRICS_PORT),
        "initial-advertise-peer-urls": url(host, PEER_PORT, is_secure=peer),
        "advertise-client-urls": url(host, CLIENT_PORT, is_secure=client),
        "initial-cluster": ",".join(f"{member}={at}" for member, at in (*own, *external)),
        "initial-cluster-state": state,
        "initial-cluster-token": token,
        **tls.options(secured),
        **tls.name_options(secured, version),
    }


def listen_client_urls(secured: MemberTls) -> str:
    """Where a member serves clients: on one port with both schemes, which etcd tells apart, for Prefer."""
    schemes = (False, True) if secured.client and secured.mode == "Prefer" else (secured.client,)
    return ",".join(url(ALL_ADDRESSES, CLIENT_PORT, is_secure=scheme) for scheme in schemes)


def as_annotations(options: Options, keys: PodKeys) -> dict[str, str]:
    """The options that can change in a running pod, as its annotations (see `api.podkeys`)."""
    return {keys.of(name): options.get(name, "") for name in _changeable(options)}


def serving_annotations(secured: MemberTls, keys: PodKeys) -> dict[str, str]:
    """Those of them that say how clients are served; none without TLS for clients."""
    if not secured.client:
        return {}
    return {keys.of(LISTEN): listen_client_urls(secured), keys.of(MIN_VERSION): secured.min_version or ""}


def restart_annotations(secured: MemberTls, version: str, keys: PodKeys) -> dict[str, str]:
    """The annotations with which the container of a pod starts again, at this version of etcd."""
    named = tls.name_options(secured, version)
    return {**serving_annotations(secured, keys), **{keys.of(name): value for name, value in named.items()}}


def serving_of(annotations: Mapping[str, str], keys: PodKeys) -> Serving | None:
    """What such annotations say; None without TLS for clients."""
    urls = annotations.get(keys.of(LISTEN))
    if urls is None:
        return None
    mode: ClientMode = "Prefer" if "," in urls else "Require"
    return Serving(mode=mode, min_version=annotations.get(keys.of(MIN_VERSION), ""))


def fixed(options: Options) -> Options:
    """The options that never change in a pod."""
    changeable = _changeable(options)
    return {name: value for name, value in options.items() if name not in changeable}


def downward_api_env(options: Options, keys: PodKeys) -> list[RawObject]:
    """Environment that the kubelet sets from the pod's annotations at every start of the container.

    etcd ignores variables that are empty.
    """
    return [from_annotation(_variable(name), keys.of(name)) for name in _changeable(options)]


def _changeable(options: Options) -> tuple[str, ...]:
    named = tuple(name for name in tls.NAME_OPTIONS if name in options)
    return (*DOWNWARD_API_OPTIONS, *(SERVING_OPTIONS if "cert-file" in options else ()), *named)


def from_annotation(variable: str, annotation: str) -> RawObject:
    """An environment variable that the kubelet sets from an annotation of the pod."""
    path = f"metadata.annotations['{annotation}']"
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def as_flags(options: Options) -> list[str]:
    """`--name=value` for each option."""
    return [f"--{name}={value}" for name, value in options.items()]


def as_environment(options: Options) -> dict[str, str]:
    """`ETCD_NAME: value` for each option: etcd also reads its flags from the environment."""
    return {_variable(name): value for name, value in options.items()}


def as_env(variables: Mapping[str, str]) -> list[RawObject]:
    """Environment variables as a container has them."""
    return [{"name": name, "value": value} for name, value in variables.items()]


def _variable(option: str) -> str:
    return f"ETCD_{option.upper().replace('-', '_')}"
