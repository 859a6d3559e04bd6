"""Rules for every manifest, independent of its golden file."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining, Resuming, Start
from etcd_operator.controllers.etcd_cluster.manifests import (
    ephemeral,
    persistent,
    persistent_pod,
    persistent_services,
    tls_pod,
)
from etcd_operator.controllers.etcd_cluster.manifests.options import as_environment, as_flags, etcd_options
from etcd_operator.controllers.shared.manifests.affinity import (
    PREFERRED,
    members_affinity,
    preferred_apart,
    selects,
)
from etcd_operator.controllers.shared.manifests.pod import STOP_SECONDS, go_max_procs
from etcd_operator.controllers.shared.manifests.urls import endpoint, host_of, url
from unit.controllers.manifests.cases import (
    BOOTSTRAPPING,
    EPHEMERAL_BOOTSTRAPPING,
    FULL_PERSISTENT,
    IMAGE,
    JOINING,
    PERSISTENT_SEEDING,
    PLAIN_EPHEMERAL,
    PLAIN_PERSISTENT,
    RESUMING,
    TAKEN_OVER,
    peer_of,
    with_resources,
)
from unit.controllers.manifests.pods import POD_SPECS, PODS, environment_in

MEMBERS = {"matchLabels": {"cluster": "db"}}

EACH_POD = pytest.mark.parametrize("spec", POD_SPECS.values(), ids=POD_SPECS)


@EACH_POD
def test_what_every_pod_of_a_member_is(spec: dict[str, Any]) -> None:
    assert spec["restartPolicy"] == "Always", "a crash or a missing image never ends it"
    is_linked = spec["enableServiceLinks"], spec["automountServiceAccountToken"]
    assert is_linked == (False, False), "variables of Services cannot become configuration of etcd"
    assert spec["terminationGracePeriodSeconds"] == STOP_SECONDS >= 30, "to transfer leadership"
    (container,) = spec["containers"]
    assert container["command"][0] == "/usr/local/bin/etcd", "it is started without a shell"
    assert not [key for key in container if key.endswith("Probe")], "no probe makes members unready"
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError", "why etcd refused to start"


@EACH_POD
def test_the_data_directory_is_on_the_mounted_volume(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    (volume,) = (each for each in spec["volumes"] if each["name"] != tls_pod.VOLUME)
    (mount,) = (each for each in container["volumeMounts"] if each["name"] != tls_pod.VOLUME)
    written = [word.removeprefix("--data-dir=") for word in container["command"] if "data-dir" in word]
    written += [e["value"] for e in container["env"] if e["name"] == "ETCD_DATA_DIR"]

    assert volume["name"] == mount["name"]
    assert [path.startswith(mount["mountPath"]) for path in written] == [True]


def test_only_a_pod_whose_volumes_are_never_made_again_has_a_volume_for_certificates_that_may_come() -> None:
    def of_certificates(kind: str) -> list[dict[str, Any]]:
        return [each["secret"] for each in POD_SPECS[kind]["volumes"] if each["name"] == tls_pod.VOLUME]

    assert [secret["optional"] for secret in of_certificates("ephemeral")] == [True]
    assert of_certificates("persistent") == []


def test_optional_pod_fields_are_absent_by_default() -> None:
    optional = {"nodeSelector", "tolerations", "topologySpreadConstraints", "priorityClassName"}

    assert not optional & set(POD_SPECS["ephemeral"])
    assert not optional & set(POD_SPECS["persistent"])
    assert optional <= set(POD_SPECS["persistent full"])
    assert "resources" not in POD_SPECS["persistent"]["containers"][0]


@pytest.mark.parametrize("kind", ["ephemeral", "persistent"])
def test_members_prefer_zones_and_nodes_without_another_member_of_their_cluster(kind: str) -> None:
    terms = POD_SPECS[kind]["affinity"]["podAntiAffinity"][PREFERRED]
    labels = PODS[f"{kind} pod"]["metadata"]["labels"]

    assert [term["podAffinityTerm"]["topologyKey"].rpartition("/")[2] for term in terms] == [
        "zone",
        "hostname",
    ]
    for term in terms:
        selector = term["podAffinityTerm"]["labelSelector"]
        assert selects(selector, labels)
        assert not selects(selector, {**labels, "etcd_cluster": "x", "etcd.improbable.io/cluster-name": "x"})


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param({"affinity": {"podAntiAffinity": {}}}, {"podAntiAffinity": {}}, id="none, even"),
        pytest.param({"topologySpreadConstraints": [{"maxSkew": 1}]}, {}, id="a spread"),
        pytest.param(
            {"affinity": {"nodeAffinity": {"x": 1}}},
            {"nodeAffinity": {"x": 1}, **preferred_apart(MEMBERS)},
            id="other terms only",
        ),
    ],
)
def test_where_members_run_apart_is_the_users_to_decide(
    template: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert members_affinity(msgspec.convert(template, PodTemplate), MEMBERS) == expected


# Owners


OWNED = {
    "ephemeral pod": ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", EPHEMERAL_BOOTSTRAPPING),
    "ephemeral client service": ephemeral.services(PLAIN_EPHEMERAL)[-1],
    "ephemeral member service": ephemeral.member_service(PLAIN_EPHEMERAL, "db-0001"),
    "persistent peer service": persistent_services.services(PLAIN_PERSISTENT)[0],
    "persistent client service": persistent_services.services(PLAIN_PERSISTENT)[-1],
    "peer": persistent.peer(PLAIN_PERSISTENT, "db-1", BOOTSTRAPPING),
    "ephemeral budget": ephemeral.budget(PLAIN_EPHEMERAL, 2),
    "persistent budget": persistent.budget(PLAIN_PERSISTENT, 2),
}


@pytest.mark.parametrize("manifest", OWNED.values(), ids=OWNED)
def test_the_cluster_owns_and_controls_its_objects(manifest: dict[str, Any]) -> None:
    (owner,) = manifest["metadata"]["ownerReferences"]

    assert (owner["kind"], owner["name"], owner["uid"]) == ("EtcdCluster", "db", "uid-1")
    assert owner["controller"] is True
    assert owner["blockOwnerDeletion"] is True


@pytest.mark.parametrize("name", ["ephemeral budget", "persistent budget"])
def test_a_budget_counts_an_integer_of_the_clusters_own_pods(name: str) -> None:
    spec, labels = OWNED[name]["spec"], PODS[name.replace("budget", "pod")]["metadata"]["labels"]

    assert spec["minAvailable"] == 2
    assert set(spec) == {"minAvailable", "selector"}
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert set(spec["selector"]["matchLabels"].values()) == {"db"}


def test_the_two_spellings_mean_the_same() -> None:
    options = etcd_options(
        name="m", host="h", data_dir="/d", initial_cluster={"m": "h"}, state="new", token="t"
    )

    assert as_flags(options)[0] == "--name=m"
    assert as_environment(options)["ETCD_LISTEN_METRICS_URLS"] == "http://0.0.0.0:2381"
    assert len(as_flags(options)) == len(as_environment(options)) == len(options)


@pytest.mark.parametrize(
    ("resources", "threads"),
    [
        ({"limits": {"cpu": "200m"}}, 1),
        ({"limits": {"cpu": "1000m"}}, 1),
        ({"limits": {"cpu": "1500m"}}, 1),
        ({"limits": {"cpu": "2500m"}}, 2),
        ({"limits": {"cpu": "2"}}, 2),
        ({"limits": {"cpu": 3}}, 3),
        ({"limits": {"cpu": 0.5}}, 1),
        ({"limits": {"cpu": "1.9"}}, 1),
        ({"limits": {"cpu": "0"}}, 1),
        ({"limits": {"cpu": "many"}}, None),
        ({"limits": {"cpu": ""}}, None),
        ({"limits": {"memory": "1Gi"}}, None),
        ({"requests": {"cpu": "4"}}, None),
        ({}, None),
    ],
)
def test_etcds_threads_follow_the_cpu_limit(resources: dict[str, Any], threads: int | None) -> None:
    assert go_max_procs(resources) == threads

    written = environment_in(with_resources(resources)).get("GOMAXPROCS")
    assert written == (None if threads is None else str(threads))


@pytest.mark.parametrize(
    ("host", "address"),
    [("db-0.db.ns.svc", "db-0.db.ns.svc:2379"), ("10.0.0.1", "10.0.0.1:2379"), ("fd00::1", "[fd00::1]:2379")],
)
def test_only_a_literal_ipv6_address_gets_brackets(host: str, address: str) -> None:
    assert endpoint(host, 2379) == address
    assert url(host, 2379) == f"http://{address}"


@pytest.mark.parametrize(
    ("address", "host"),
    [("http://db-0:2380", "db-0"), ("http://[fd00::1]:2380", "fd00::1"), ("", ""), ("db-0", "")],
)
def test_the_host_is_read_out_of_an_url(address: str, host: str) -> None:
    assert host_of(address) == host


# Services


def test_services_select_the_pods_that_are_made() -> None:
    pod = OWNED["ephemeral pod"]["metadata"]["labels"].items()
    template = persistent_pod.replica_set(peer_of(FULL_PERSISTENT), IMAGE)["spec"]["template"]
    labels = template["metadata"]["labels"].items()

    assert OWNED["ephemeral client service"]["spec"]["selector"].items() <= pod
    assert OWNED["ephemeral member service"]["spec"]["selector"].items() <= pod
    assert OWNED["persistent client service"]["spec"]["selector"].items() <= labels


def test_an_ephemeral_member_that_joins_gets_no_clients_yet_and_is_reached_by_its_peers() -> None:
    joins = ephemeral.pod(PLAIN_EPHEMERAL, "db-0001", JOINING)["metadata"]["labels"].items()

    assert not OWNED["ephemeral client service"]["spec"]["selector"].items() <= joins
    assert OWNED["ephemeral member service"]["spec"]["selector"].items() <= joins


@pytest.mark.parametrize("start", [JOINING, RESUMING])
def test_a_persistent_member_that_starts_is_reached_by_its_peers_and_not_by_clients(
    start: Start,
) -> None:
    template = persistent_pod.replica_set(peer_of(PLAIN_PERSISTENT, "db-3", start), IMAGE)["spec"]["template"]
    labels, peers = template["metadata"]["labels"].items(), OWNED["persistent peer service"]

    assert not OWNED["persistent client service"]["spec"]["selector"].items() <= labels
    assert peers["spec"]["selector"].items() <= labels
    assert template["spec"]["subdomain"] == peers["metadata"]["name"]
    assert peers["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("start", [Resuming(token="db"), Joining(members=("db-0", "db-3"), token="db")])
def test_members_that_were_taken_over_are_found_by_the_names_that_etcd_has(start: Start) -> None:
    pod = persistent_pod.replica_set(peer_of(TAKEN_OVER, "db-3", start), IMAGE)["spec"]["template"]
    (service,) = persistent_services.services(TAKEN_OVER)

    assert pod["spec"]["hostAliases"][0]["hostnames"][0] == "db-3.db.ns.svc"
    assert pod["spec"]["subdomain"] == service["metadata"]["name"] == "db"
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["clusterIP"] == "None"


def test_the_seed_of_a_cluster_that_was_taken_over_has_the_names_of_a_new_cluster() -> None:
    seed = peer_of(TAKEN_OVER, "db-3", PERSISTENT_SEEDING).spec.bootstrap

    assert (seed.survivor, seed.static.initial_cluster[0].host) == ("db-2.db.ns.svc", "db-3.db-peer.ns.svc")


# Flags and versions

KNOWN_TO_3_4 = {
    "name", "data-dir", "listen-peer-urls", "listen-client-urls", "listen-metrics-urls",
    "initial-advertise-peer-urls", "advertise-client-urls", "initial-cluster", "initial-cluster-state",
    "initial-cluster-token", "snapshot-count", "quota-backend-bytes", "heartbeat-interval",
}  # fmt: skip
"""From the list of flags in etcd's documentation of 3.4, of which there is no program here."""
RENDERED = etcd_options(name="m", host="h", data_dir="/d", initial_cluster={"m": "h"}, state="new", token="t")


def test_every_flag_is_known_to_3_4() -> None:
    assert set(RENDERED) <= KNOWN_TO_3_4
