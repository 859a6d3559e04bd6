"""Status as both groups render it; what is not seen now keeps its last value."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import Condition
from etcd_operator.core.actions import Plan
from etcd_operator.core.plan import plan
from etcd_operator.core.replies import EtcdMember
from etcd_operator.core.starts import Bootstrapping, Resuming
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from unit.core.builders import (
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
from unit.dialects.builders import DEFAULTS, bare, durable

COREOS, IMPROBABLE = CoreosDialect(DEFAULTS), ImprobableDialect(DEFAULTS)
NOW, OLD = "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"
BARE_NAMES = ["db-0000", "db-0001", "db-0002"]
DURABLE_NAMES = ["db-0", "db-1", "db-2"]


def told_bare(state: ClusterState, before: coreos.ClusterStatus | None = None) -> dict[str, Any]:
    """The status of a coreos.com cluster, as JSON has it."""
    cluster = bare(status=before or coreos.ClusterStatus())
    return _json(COREOS.status(cluster, state, plan(state), now=NOW))


def told(state: ClusterState, before: improbable.ClusterStatus | None = None) -> dict[str, Any]:
    """The status of an etcd.improbable.io cluster, as JSON has it."""
    cluster = durable(status=before or improbable.ClusterStatus())
    return _json(IMPROBABLE.status(cluster, state, plan(state), now=NOW))


def _json(value: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def test_the_status_of_a_settled_ephemeral_cluster() -> None:
    status = told_bare(bootstrapped(ephemeral()))
    conditions = status.pop("conditions")

    assert status == {
        "observedGeneration": 7,
        "phase": "Running",
        "size": 3,
        "selector": "etcd_cluster=db",
        "currentVersion": "3.6.16",
        "members": {"ready": BARE_NAMES, "unready": []},
        "endpoints": [f"http://{name}.ns.svc:2379" for name in BARE_NAMES],
        "clusterID": CLUSTER_ID,
        "bootstrap": {"members": BARE_NAMES, "token": TOKEN, "version": "3.6.16"},
        "nextOrdinal": 3,
    }
    assert [c["type"] for c in conditions] == ["Available", "Progressing", "Degraded"]
    assert {c["lastTransitionTime"] for c in conditions} == {NOW}


def test_the_status_of_a_settled_persistent_cluster() -> None:
    status = told(replace(bootstrapped(), cluster_version="3.6.0"))
    conditions = status.pop("conditions")

    members: list[dict[str, Any]] = [
        {"name": name, "id": f"id-{name}", "healthy": True, "version": "3.6.16"} for name in DURABLE_NAMES
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
        "bootstrap": {"members": DURABLE_NAMES, "token": TOKEN, "version": "3.6.16"},
        "endpoints": [f"http://{name}.db.ns.svc:2379" for name in DURABLE_NAMES],
    }
    assert [c["type"] for c in conditions] == ["Available", "Progressing", "Degraded"]


def test_a_status_is_read_back_as_it_was_written() -> None:
    assert msgspec.convert(told(bootstrapped()), improbable.ClusterStatus).leader == "db-0"
    assert msgspec.convert(told_bare(bootstrapped(ephemeral())), coreos.ClusterStatus).next_ordinal == 3


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (not_bootstrapped(ephemeral()), "Creating"),
        (bootstrapping(ephemeral()), "Creating"),
        (bootstrapped(ephemeral()), "Running"),
        (down(bootstrapped(ephemeral(), has_quorum=False), *BARE_NAMES), "Running"),
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
    assert told_bare(state)["phase"] == phase


def test_a_spec_with_no_size_fails_only_by_its_own_hold() -> None:
    state = not_bootstrapped(ephemeral())
    status = COREOS.status(bare(), state, Plan.wait("InvalidSpec", "?", requeue_after=1), now=NOW)
    assert status["phase"] == "Creating"


def test_members_that_do_not_serve_are_named() -> None:
    status = told_bare(down(bootstrapped(ephemeral()), "db-0001"))

    assert status["members"] == {"ready": ["db-0000", "db-0002"], "unready": ["db-0001"]}
    assert status["size"] == 3


def test_the_size_counts_pods_and_replicas_count_peers() -> None:
    assert told_bare(changed(bootstrapped(ephemeral()), "db-0001", pod=None))["size"] == 2
    state = told(changed(bootstrapped(), "db-1", peer=None))
    assert state["replicas"] == 2
    assert told(down(bootstrapped(), "db-1"))["readyReplicas"] == 2


def test_the_target_version_stands_there_only_on_the_way() -> None:
    newer = ephemeral(version="3.7.3")

    assert told_bare(bootstrapped(newer))["targetVersion"] == "3.7.3"
    assert "targetVersion" not in told_bare(bootstrapping(newer))
    assert "targetVersion" not in told_bare(bootstrapped(ephemeral()))


def test_stale_data_stays_visible_while_nobody_answers() -> None:
    silent = down(bootstrapped(has_quorum=False), *DURABLE_NAMES)
    silent = replace(silent, members=tuple(replace(m, entry=None) for m in silent.members))
    before = msgspec.convert(told(replace(bootstrapped(), cluster_version="3.6.0")), improbable.ClusterStatus)
    status = told(silent, before)

    assert status["members"] == _json(before.members)
    assert (status["clusterVersion"], status["currentVersion"]) == ("3.6.0", "3.6.16")
    assert status["endpoints"] == list(before.endpoints)
    assert "leader" not in status
    by_type = {c["type"]: c for c in status["conditions"]}
    assert by_type["Available"]["status"] == "False"
    assert by_type["Degraded"]["reason"] == "QuorumLost"


def test_endpoints_of_an_ephemeral_cluster_are_of_members_that_etcd_lists() -> None:
    state = changed(bootstrapped(ephemeral()), "db-0001", entry=None)
    assert told_bare(state)["endpoints"] == ["http://db-0000.ns.svc:2379", "http://db-0002.ns.svc:2379"]
    silent = replace(state, members=tuple(replace(member, entry=None) for member in state.members))
    before = coreos.ClusterStatus(endpoints=("http://db-0000.ns.svc:2379",))
    assert told_bare(silent, before)["endpoints"] == ["http://db-0000.ns.svc:2379"]
    assert "endpoints" not in told_bare(bootstrapping(ephemeral()))


def test_the_last_known_version_of_an_ephemeral_cluster_stays_visible() -> None:
    silent = down(bootstrapped(ephemeral(version="3.7.3"), has_quorum=False), *BARE_NAMES)
    status = told_bare(silent, coreos.ClusterStatus(current_version="3.6.9"))

    assert (status["currentVersion"], status["targetVersion"]) == ("3.6.9", "3.7.3")


def test_times_of_conditions_are_kept_in_both_groups() -> None:
    old = Condition(type="Available", status="True", reason="QuorumHealthy", last_transition_time=OLD)
    for status in (
        told(bootstrapped(), improbable.ClusterStatus(conditions=(old,))),
        told_bare(bootstrapped(ephemeral()), coreos.ClusterStatus(conditions=(old,))),
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
    assert told(state)["members"] == [
        {"name": "", "id": "9"},
        {"name": "db-0", "id": "id-db-0", "healthy": True, "version": "3.6.16"},
        {"name": "db-1", "id": "id-db-1", "role": "Leader", "healthy": True, "version": "3.6.16"},
        {"name": "db-2", "id": "id-db-2", "role": "Learner"},
    ]


def test_a_member_that_has_not_started_goes_by_its_objects_name() -> None:
    nameless = EtcdMember(id="id-db-2", name="", peer_urls=("http://db-2:2380",))
    listed = (entry("db-0"), entry("db-1"), nameless)
    state = changed(bootstrapped(), "db-0", answer=answer("db-0", listed, committed=99))
    state = changed(state, "db-2", entry=nameless, answer=None)

    assert told(state)["members"][0] == {"name": "db-2", "id": "id-db-2"}


# What else a dialect does


def test_members_are_reached_by_their_own_service_or_under_the_headless_one() -> None:
    assert COREOS.member_host(ephemeral(), "db-0000") == "db-0000"
    assert IMPROBABLE.member_host(persistent(), "db-0") == "db-0.db.ns.svc"


def test_a_dialect_builds_its_groups_objects() -> None:
    initial_member = Bootstrapping(initial_members=("db-0000",), token="t")

    assert COREOS.member(ephemeral(), "db-0000", initial_member)["kind"] == "Pod"
    assert COREOS.client_service(ephemeral())["metadata"]["name"] == "db"
    assert COREOS.member_service(ephemeral(), "db-0000")["metadata"]["name"] == "db-0000"
    assert IMPROBABLE.member(persistent(), "db-0", Resuming(token="t"))["kind"] == "EtcdPeer"
    assert IMPROBABLE.client_service(persistent())["spec"]["clusterIP"] == "None"


def test_an_ephemeral_member_cannot_resume() -> None:
    with pytest.raises(TypeError, match="db-0000: an ephemeral member cannot resume"):
        COREOS.member(ephemeral(), "db-0000", Resuming(token="t"))


def test_a_persistent_member_has_no_service_of_its_own() -> None:
    with pytest.raises(TypeError, match="persistent member db-0 has no service"):
        IMPROBABLE.member_service(persistent(), "db-0")
