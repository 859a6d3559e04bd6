"""The status of both groups; values that cannot be observed keep their last value."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import Condition, ObjectMeta, OwnerReference
from etcd_operator.api.recoveries import ClaimBackup, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.desired import RestoreFrom
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming, Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    entry,
    ephemeral,
    not_bootstrapped,
    persistent,
)
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, coreos_cluster, improbable_cluster

COREOS, IMPROBABLE = CoreosDialect(DEFAULTS), ImprobableDialect(DEFAULTS)
NOW, OLD = "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"
EPHEMERAL_NAMES = ["db-0000", "db-0001", "db-0002"]
PERSISTENT_NAMES = ["db-0", "db-1", "db-2"]


def coreos_status(state: ClusterState, before: coreos.ClusterStatus | None = None) -> dict[str, Any]:
    """The status of a coreos.com cluster, as decoded JSON."""
    cluster = coreos_cluster(status=before or coreos.ClusterStatus())
    return _json(COREOS.status(cluster, state, plan(state), now=NOW))


def improbable_status(state: ClusterState, before: improbable.ClusterStatus | None = None) -> dict[str, Any]:
    """The status of an etcd.improbable.io cluster, as decoded JSON."""
    cluster = improbable_cluster(status=before or improbable.ClusterStatus())
    return _json(IMPROBABLE.status(cluster, state, plan(state), now=NOW))


def _json(value: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def test_the_status_of_a_settled_ephemeral_cluster() -> None:
    status = coreos_status(bootstrapped(ephemeral()))
    conditions = status.pop("conditions")

    assert status == {
        "observedGeneration": 7,
        "phase": "Running",
        "size": 3,
        "selector": "etcd_cluster=db,etcd_node",
        "currentVersion": "3.6.16",
        "members": {"ready": EPHEMERAL_NAMES, "unready": []},
        "endpoints": [f"http://{name}.ns.svc:2379" for name in EPHEMERAL_NAMES],
        "clusterID": CLUSTER_ID,
        "bootstrap": {"members": EPHEMERAL_NAMES, "token": TOKEN, "version": "3.6.16"},
        "nextOrdinal": 3,
    }
    assert [c["type"] for c in conditions] == ["Available", "Progressing", "Degraded"]
    assert {c["lastTransitionTime"] for c in conditions} == {NOW}


def test_the_status_of_a_settled_persistent_cluster() -> None:
    status = improbable_status(replace(bootstrapped(), cluster_version="3.6.0"))
    conditions = status.pop("conditions")

    members: list[dict[str, Any]] = [
        {"name": name, "id": f"id-{name}", "healthy": True, "version": "3.6.16"} for name in PERSISTENT_NAMES
    ]
    members[0]["role"] = "Leader"
    assert status == {
        "observedGeneration": 7,
        "replicas": 3,
        "readyReplicas": 3,
        "selector": "etcd.improbable.io/cluster-name=db",
        "members": members,
        "leader": "db-0",
        "clusterVersion": "3.6.0",
        "currentVersion": "3.6.16",
        "clusterID": CLUSTER_ID,
        "bootstrap": {"members": PERSISTENT_NAMES, "token": TOKEN, "version": "3.6.16"},
        "endpoints": [f"http://{name}.db-peer.ns.svc:2379" for name in PERSISTENT_NAMES],
    }
    assert [c["type"] for c in conditions] == ["Available", "Progressing", "Degraded"]


def test_a_status_is_read_back_as_it_was_written() -> None:
    assert msgspec.convert(improbable_status(bootstrapped()), improbable.ClusterStatus).leader == "db-0"
    assert msgspec.convert(coreos_status(bootstrapped(ephemeral())), coreos.ClusterStatus).next_ordinal == 3


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (not_bootstrapped(ephemeral()), "Creating"),
        (bootstrapping(ephemeral()), "Creating"),
        (bootstrapped(ephemeral()), "Running"),
        (down(bootstrapped(ephemeral(), has_quorum=False), *EPHEMERAL_NAMES), "Running"),
        (not_bootstrapped(ephemeral(problem="no size")), "Failed"),
        (not_bootstrapped(ephemeral(is_paused=True)), "Creating"),
        (not_bootstrapped(ephemeral(), conflict="taken"), "Creating"),
        (bootstrapped(ephemeral(problem="no size")), "Running"),
    ],
    ids=[
        "new",
        "bootstrapping",
        "bootstrapped",
        "quorum lost",
        "invalid",
        "paused",
        "conflict",
        "invalid after bootstrap",
    ],
)
def test_the_phase_of_an_ephemeral_cluster(state: ClusterState, phase: str) -> None:
    assert coreos_status(state)["phase"] == phase


def test_the_phase_is_failed_only_for_a_hold() -> None:
    state = not_bootstrapped(ephemeral())
    status = COREOS.status(coreos_cluster(), state, Plan.wait("InvalidSpec", "?", requeue_after=1), now=NOW)
    assert status["phase"] == "Creating"


def test_the_columns_of_a_cluster_without_members_show_zeros() -> None:
    """A column is blank where its field is missing. What was stored without the field is no other status."""
    assert coreos_status(not_bootstrapped(ephemeral(), conflict="taken"))["size"] == 0
    assert improbable_status(bootstrapping(persistent()))["readyReplicas"] == 0
    assert msgspec.to_builtins(coreos.ClusterStatus())["size"] == 0
    assert msgspec.to_builtins(improbable.ClusterStatus())["readyReplicas"] == 0


def test_members_that_do_not_serve_are_listed() -> None:
    status = coreos_status(down(bootstrapped(ephemeral()), "db-0001"))

    assert status["members"] == {"ready": ["db-0000", "db-0002"], "unready": ["db-0001"]}
    assert status["size"] == 3


def test_the_size_counts_pods_and_replicas_count_peers() -> None:
    assert coreos_status(changed(bootstrapped(ephemeral()), "db-0001", pod=None))["size"] == 2
    state = improbable_status(changed(bootstrapped(), "db-1", peer=None))
    assert state["replicas"] == 2
    assert improbable_status(down(bootstrapped(), "db-1"))["readyReplicas"] == 2


def test_the_target_version_is_reported_only_during_an_upgrade() -> None:
    newer = ephemeral(version="3.7.3")

    assert coreos_status(bootstrapped(newer))["targetVersion"] == "3.7.3"
    assert "targetVersion" not in coreos_status(bootstrapping(newer))
    assert "targetVersion" not in coreos_status(bootstrapped(ephemeral()))


def test_the_last_known_members_are_kept_while_no_member_answers() -> None:
    silent = down(bootstrapped(has_quorum=False), *PERSISTENT_NAMES)
    silent = replace(silent, members=tuple(replace(m, entry=None) for m in silent.members))
    before = msgspec.convert(
        improbable_status(replace(bootstrapped(), cluster_version="3.6.0")), improbable.ClusterStatus
    )
    status = improbable_status(silent, before)

    assert status["members"] == _json(before.members)
    assert (status["clusterVersion"], status["currentVersion"]) == ("3.6.0", "3.6.16")
    assert status["endpoints"] == list(before.endpoints)
    assert "leader" not in status
    by_type = {c["type"]: c for c in status["conditions"]}
    assert by_type["Available"]["status"] == "False"
    assert by_type["Degraded"]["reason"] == "QuorumLost"


def test_endpoints_of_an_ephemeral_cluster_are_those_of_listed_members() -> None:
    state = changed(bootstrapped(ephemeral()), "db-0001", entry=None)
    assert coreos_status(state)["endpoints"] == ["http://db-0000.ns.svc:2379", "http://db-0002.ns.svc:2379"]
    silent = replace(state, members=tuple(replace(member, entry=None) for member in state.members))
    before = coreos.ClusterStatus(endpoints=("http://db-0000.ns.svc:2379",))
    assert coreos_status(silent, before)["endpoints"] == ["http://db-0000.ns.svc:2379"]
    assert "endpoints" not in coreos_status(bootstrapping(ephemeral()))


def test_the_last_known_version_of_an_ephemeral_cluster_is_kept() -> None:
    silent = down(bootstrapped(ephemeral(version="3.7.3"), has_quorum=False), *EPHEMERAL_NAMES)
    status = coreos_status(silent, coreos.ClusterStatus(current_version="3.6.9"))

    assert (status["currentVersion"], status["targetVersion"]) == ("3.6.9", "3.7.3")


def test_times_of_conditions_are_kept_in_both_groups() -> None:
    old = Condition(type="Available", status="True", reason="QuorumHealthy", last_transition_time=OLD)
    for status in (
        improbable_status(bootstrapped(), improbable.ClusterStatus(conditions=(old,))),
        coreos_status(bootstrapped(ephemeral()), coreos.ClusterStatus(conditions=(old,))),
    ):
        assert [c["lastTransitionTime"] for c in status["conditions"]] == [OLD, NOW, NOW]


def test_members_are_reported_as_etcd_lists_them() -> None:
    listed = (
        entry("db-1"),
        entry("db-0"),
        entry("db-2", is_learner=True),
        EtcdMember(id="9", name="", peer_urls=()),
    )
    state = replace(bootstrapped(), unknown_members=(listed[3],))
    for name in ("db-0", "db-1"):
        state = changed(state, name, answer=answer(name, listed))
    state = changed(state, "db-2", entry=listed[2], answer=None)
    assert improbable_status(state)["members"] == [
        {"name": "", "id": "9"},
        {"name": "db-0", "id": "id-db-0", "healthy": True, "version": "3.6.16"},
        {"name": "db-1", "id": "id-db-1", "role": "Leader", "healthy": True, "version": "3.6.16"},
        {"name": "db-2", "id": "id-db-2", "role": "Learner"},
    ]


def test_a_member_that_has_not_started_has_the_name_of_its_objects() -> None:
    nameless = EtcdMember(id="id-db-2", name="", peer_urls=("http://db-2:2380",))
    listed = (entry("db-0"), entry("db-1"), nameless)
    state = changed(bootstrapped(), "db-0", answer=answer("db-0", listed, committed=99))
    state = changed(state, "db-2", entry=nameless, answer=None)

    assert improbable_status(state)["members"][0] == {"name": "db-2", "id": "id-db-2"}


# Hosts and manifests


def test_an_ephemeral_member_cannot_resume() -> None:
    with pytest.raises(TypeError, match="db-0000: an ephemeral member cannot resume"):
        COREOS.member(ephemeral(), "db-0000", Resuming(token="t"))


EPHEMERAL_LABELS = {"app": "etcd", "etcd_cluster": "c", "etcd_node": "c-0000"}
PERSISTENT_LABELS = {"etcd.improbable.io/cluster-name": "c", "etcd.improbable.io/peer-name": "c-0"}


@pytest.mark.parametrize(
    ("owner", "is_theirs"),
    [
        pytest.param("coreos.com/v1", False, id="ours"),
        pytest.param("etcd.database.coreos.com/v1beta2", True, id="CoreOS' operator's"),
        pytest.param("", True, id="without an owner"),
    ],
)
def test_an_ephemeral_members_pod_is_ours_by_its_owner(owner: str, is_theirs: bool) -> None:
    owners = (OwnerReference(api_version=owner, kind="EtcdCluster", name="c", uid="1"),) if owner else ()
    pod = ObjectMeta(labels=EPHEMERAL_LABELS, owner_references=owners)
    assert CoreosDialect(DEFAULTS).is_of_other_operator(pod) is is_theirs


def test_a_pod_with_the_label_of_a_cluster_that_runs_no_member_is_nobodys() -> None:
    assert not CoreosDialect(DEFAULTS).is_of_other_operator(ObjectMeta(labels={"etcd_cluster": "c"}))
    labels = {"etcd.improbable.io/cluster-name": "c"}
    assert not ImprobableDialect(DEFAULTS).is_of_other_operator(ObjectMeta(labels=labels))


@pytest.mark.parametrize(
    ("token", "is_theirs"), [({"etcd.improbable.io/cluster-token": "t"}, False), ({}, True)]
)
def test_a_persistent_members_pod_is_ours_by_its_token(token: dict[str, str], is_theirs: bool) -> None:
    pod = ObjectMeta(labels={**PERSISTENT_LABELS, **token})
    assert ImprobableDialect(DEFAULTS).is_of_other_operator(pod) is is_theirs


FROM_BACKUP = Seeding(token="t", source=ClaimBackup(cluster="old"))
FROM_SURVIVOR = Seeding(token="t", source=Survivor(name="db-0002"))
CLUSTER = replace(ephemeral(), restore=RestoreFrom(cluster="old"))


def test_a_seed_that_needs_the_image_is_not_rendered_without_one() -> None:
    with pytest.raises(RuntimeError, match="no image of the operator"):
        CoreosDialect(DEFAULTS).member(CLUSTER, "db-0003", FROM_BACKUP)


def test_one_that_does_not_need_it_is() -> None:
    pod = CoreosDialect(DEFAULTS).member(CLUSTER, "db-0003", FROM_SURVIVOR)
    assert all(container["image"] for container in pod["spec"]["initContainers"])


def test_the_image_is_that_of_the_operator() -> None:
    pod = CoreosDialect(DEFAULTS, lambda: "operator:1").member(CLUSTER, "db-0003", FROM_BACKUP)
    assert "operator:1" in {container["image"] for container in pod["spec"]["initContainers"]}
