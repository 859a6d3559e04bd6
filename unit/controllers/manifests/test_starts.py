"""How rendered members start etcd: the list of members, the state, and the switch to existing-only."""

from typing import Any

import pytest

from etcd_operator.api import coreos
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, persistent, persistent_pod
from etcd_operator.controllers.etcd_cluster.manifests.options import DOWNWARD_API_OPTIONS, in_place
from unit.controllers.manifests.cases import (
    FULL_PERSISTENT,
    IMAGE,
    JOINING,
    PLAIN_EPHEMERAL,
    PLAIN_PERSISTENT,
    RESUMING,
    peer_of,
)
from unit.controllers.manifests.pods import FIXED_NEVER, PODS, environment_in, environment_of


def test_an_initial_member_lists_all_initial_members_and_bootstraps() -> None:
    environment = environment_in(peer_of(PLAIN_PERSISTENT))

    assert environment["ETCD_INITIAL_CLUSTER_STATE"] == "new"
    assert environment["ETCD_INITIAL_CLUSTER"] == ",".join(
        f"{name}=http://{name}.db-peer.ns.svc:2380" for name in ("db-0", "db-1", "db-2")
    )
    assert environment["ETCD_INITIAL_CLUSTER_TOKEN"] == "uid-1"


def test_an_existing_only_start_lists_only_the_member_itself() -> None:
    environment = environment_in(peer_of(PLAIN_PERSISTENT, start=RESUMING))

    assert environment["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    assert environment["ETCD_INITIAL_CLUSTER"] == "db-1=http://db-1.db-peer.ns.svc:2380"


def test_a_joining_member_has_the_complete_list_and_never_bootstraps() -> None:
    environment = environment_in(peer_of(PLAIN_PERSISTENT, start=JOINING))

    assert environment["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    assert environment["ETCD_INITIAL_CLUSTER"].count("=") == 4


def test_a_joining_ephemeral_member_never_bootstraps() -> None:
    joining = Joining(members=("db-0001", "db-0003"), token="t")
    environment = environment_of(ephemeral.pod(PLAIN_EPHEMERAL, "db-0003", joining))

    assert environment["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    assert environment["ETCD_INITIAL_CLUSTER"] == "db-0001=http://db-0001:2380,db-0003=http://db-0003:2380"


def test_the_claim_of_a_joining_member_names_no_initial_members() -> None:
    annotations = persistent.claim(peer_of(PLAIN_PERSISTENT, start=JOINING))["metadata"]["annotations"]

    assert annotations == {
        "etcd.improbable.io/cluster-token": "uid-1",
        "etcd.improbable.io/cluster-uid": "uid-1",
        "etcd.improbable.io/non-root": "true",
    }


def test_a_member_advertises_the_url_in_the_initial_cluster() -> None:
    environment = environment_in(peer_of(PLAIN_PERSISTENT))
    listed = dict(entry.split("=", 1) for entry in environment["ETCD_INITIAL_CLUSTER"].split(","))

    assert environment["ETCD_INITIAL_ADVERTISE_PEER_URLS"] == listed["db-1"]


def test_labels_of_users_never_replace_those_of_the_operator() -> None:
    template = persistent_pod.replica_set(peer_of(FULL_PERSISTENT), IMAGE)["spec"]["template"]["metadata"]

    assert template["labels"] == {
        "tier": "data",
        "app.kubernetes.io/name": "etcd",
        "etcd.improbable.io/cluster-name": "db",
        "etcd.improbable.io/peer-name": "db-1",
        "etcd.improbable.io/clients": "uid-1",
        "etcd.improbable.io/cluster-token": "uid-1",
    }
    assert template["annotations"]["team"] == "storage"
    assert len(template["annotations"]) == 3


@pytest.mark.parametrize("manifest", PODS.values(), ids=PODS)
def test_a_running_pod_can_be_switched_to_an_existing_only_start(manifest: dict[str, Any]) -> None:
    container, keys = manifest["spec"]["containers"][0], manifest["spec"]["readinessGates"][0]
    group = keys["conditionType"].partition("/")[0]
    from_annotations = {e["name"]: e["valueFrom"] for e in container["env"] if "valueFrom" in e}

    assert from_annotations == {
        f"ETCD_{name.upper().replace('-', '_')}": {
            "fieldRef": {"fieldPath": f"metadata.annotations['{group}/{name}']"}
        }
        for name in (in_place({}) if group == coreos.GROUP else DOWNWARD_API_OPTIONS)
    }
    assert not [word for word in container["command"] if word.partition("=")[0] in FIXED_NEVER]
    assert environment_of(manifest)["ETCD_INITIAL_CLUSTER_STATE"] == "new"
    assert not PodKeys(group).is_existing_only(manifest["metadata"]["annotations"])


def test_an_existing_only_template_makes_existing_only_pods() -> None:
    template = persistent_pod.replica_set(peer_of(PLAIN_PERSISTENT, start=RESUMING), IMAGE)["spec"][
        "template"
    ]
    annotations = template["metadata"]["annotations"]

    assert PodKeys("etcd.improbable.io").is_existing_only(annotations)
    assert annotations == PodKeys("etcd.improbable.io").existing_only(
        "db-1", "http://db-1.db-peer.ns.svc:2380"
    )


@pytest.mark.parametrize(
    ("members", "state"),
    [("a=http://a:2380", "new"), ("a=http://a:2380,b=http://b:2380", "existing"), ("", "existing")],
)
def test_only_the_state_existing_with_one_member_is_an_existing_only_start(members: str, state: str) -> None:
    keys = PodKeys("g")
    assert not keys.is_existing_only({keys.initial_cluster: members, keys.initial_cluster_state: state})
