"""The configuration of etcd, in its forms: flags, environment, and annotations of the pod."""

from collections.abc import Iterable, Mapping

from etcd_operator.api.meta import RawObject
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.tls import PLAIN, ClientMode, MemberTls, PeerMode
from etcd_operator.controllers.etcd_cluster.decide.serving import Serving
from etcd_operator.controllers.etcd_cluster.manifests import tls_pod
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, url
from etcd_operator.pods.contract import METRICS_PORT

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 -- inside a pod, whose network is its own
"""Not only IPv4: for Go an unspecified address of either family means all addresses, including IPv6, and only
IPv4 where the kernel supports nothing else. `[::]` has the same effect. So one manifest works with IPv4, with
IPv6 and with both (tested in `unit/etcd/test_families.py`)."""

Options = dict[str, str]

DOWNWARD_API_OPTIONS = ("initial-cluster", "initial-cluster-state")
"""The options that decide what etcd does with an empty data directory; they can change in a running pod."""

LISTEN, ADVERTISE, MIN_VERSION = "listen-client-urls", "advertise-client-urls", "tls-min-version"

SERVING_OPTIONS = (LISTEN, ADVERTISE, MIN_VERSION, *tls_pod.CLIENT_OPTIONS)
"""The options that decide how clients are served."""

LISTEN_PEERS, ADVERTISE_PEERS = "listen-peer-urls", "initial-advertise-peer-urls"

PEERING_OPTIONS = (LISTEN_PEERS, ADVERTISE_PEERS, *tls_pod.PEER_OPTIONS)
"""The options that decide how members connect to each other."""


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
    external: a name and a peer URL for each member of a cluster that is adopted (`starts.Joining`).
    secured: its TLS; the pod has the volume of `manifests.tls` then. version: of etcd.
    """
    serving, peering = _serving(host, secured), _peering(host, secured)
    own = (
        (member, url(at, PEER_PORT, is_secure=secured.has_secure_peers))
        for member, at in initial_cluster.items()
    )
    return {
        "name": name,
        "data-dir": data_dir,
        LISTEN_PEERS: peering[LISTEN_PEERS],
        LISTEN: serving[LISTEN],
        "listen-metrics-urls": url(ALL_ADDRESSES, METRICS_PORT),
        ADVERTISE_PEERS: peering[ADVERTISE_PEERS],
        ADVERTISE: serving[ADVERTISE],
        "initial-cluster": ",".join(f"{member}={at}" for member, at in (*own, *external)),
        "initial-cluster-state": state,
        "initial-cluster-token": token,
        **tls_pod.options(secured),
        **tls_pod.name_options(secured, version),
    }


def _serving(host: str, secured: MemberTls) -> Options:
    return {
        LISTEN: listen_client_urls(secured),
        ADVERTISE: url(host, CLIENT_PORT, is_secure=secured.client),
        **tls_pod.client_options(secured),
    }


def _peering(host: str, secured: MemberTls) -> Options:
    is_secure = secured.has_secure_peers
    return {
        LISTEN_PEERS: url(ALL_ADDRESSES, PEER_PORT, is_secure=is_secure),
        ADVERTISE_PEERS: url(host, PEER_PORT, is_secure=is_secure),
        **tls_pod.peer_options(secured),
    }


def listen_client_urls(secured: MemberTls) -> str:
    """Where a member serves clients: on one port with both schemes, which etcd tells apart, for Prefer."""
    schemes = (False, True) if secured.client and secured.mode == "Prefer" else (secured.client,)
    return ",".join(url(ALL_ADDRESSES, CLIENT_PORT, is_secure=scheme) for scheme in schemes)


def as_annotations(options: Options, keys: PodKeys, names: Iterable[str]) -> dict[str, str]:
    """Some options as annotations of the pod (see `api.podkeys`)."""
    return {keys.of(name): options.get(name, "") for name in names}


def serving_annotations(host: str, secured: MemberTls, keys: PodKeys) -> dict[str, str]:
    """Those that say how clients are served."""
    return as_annotations(_serving(host, secured), keys, SERVING_OPTIONS)


def peering_annotations(host: str, secured: MemberTls, keys: PodKeys) -> dict[str, str]:
    """Those that say how a member connects to the others."""
    return as_annotations(_peering(host, secured), keys, PEERING_OPTIONS)


def restart_annotations(host: str, secured: MemberTls, version: str, keys: PodKeys) -> dict[str, str]:
    """The annotations with which the container of a pod starts again, at this version of etcd."""
    named = tls_pod.name_options(secured, version)
    return {
        **serving_annotations(host, secured, keys),
        **peering_annotations(host, secured, keys),
        **{keys.of(name): value for name, value in named.items()},
    }


def serving_of(annotations: Mapping[str, str], keys: PodKeys | None) -> Serving | None:
    """What such annotations say; None without them. keys: None for a pod of another operator."""
    urls = annotations.get(keys.of(LISTEN)) if keys is not None else None
    if keys is None or urls is None:
        return None
    mode: ClientMode = "Prefer" if "," in urls else "Require"
    if "https://" not in urls:
        mode = "Disabled"
    cert_auth = annotations.get(keys.of(tls_pod.CERT_AUTH))
    suites = annotations.get(keys.of(tls_pod.CIPHER_SUITES))
    return Serving(
        mode=mode,
        min_version=annotations.get(keys.of(MIN_VERSION), ""),
        client_cert_auth=None if cert_auth is None else cert_auth == "true",
        cipher_suites=None if suites is None else tuple(filter(None, suites.split(","))),
    )


def peers_of(annotations: Mapping[str, str], keys: PodKeys | None) -> PeerMode | None:
    """How a member connects to the others, as such annotations say; None without them."""
    urls = annotations.get(keys.of(LISTEN_PEERS)) if keys is not None else None
    if keys is None or urls is None:
        return None
    if urls.startswith("https://"):
        return "Require"
    return "Dial" if annotations.get(keys.of("peer-cert-file")) else "Disabled"


def fixed(options: Options, names: Iterable[str]) -> Options:
    """The options with other names: they never change in a pod."""
    return {name: value for name, value in options.items() if name not in names}


def downward_api_env(keys: PodKeys, names: Iterable[str]) -> list[RawObject]:
    """Environment that the kubelet sets from the pod's annotations at every start of the container.

    etcd ignores variables that are empty.
    """
    return [from_annotation(_variable(name), keys.of(name)) for name in names]


def in_place(options: Options) -> tuple[str, ...]:
    """The options that can change where etcd is started again in the same pod."""
    return (
        *DOWNWARD_API_OPTIONS,
        *SERVING_OPTIONS,
        *PEERING_OPTIONS,
        *(name for name in tls_pod.NAME_OPTIONS if name in options),
    )


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
