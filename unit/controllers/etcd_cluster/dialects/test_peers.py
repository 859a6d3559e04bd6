"""Which EtcdPeers are acted on."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.improbable import EtcdCluster, EtcdPeer
from etcd_operator.api.persisted import AdoptedMember, Adoption, Bootstrap, TlsRecord
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.api.tls import MemberTls, PeerMode
from etcd_operator.controllers.etcd_cluster.decide.starts import (
    Bootstrapping,
    Joining,
    Resuming,
    Seeding,
    Start,
)
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.manifests import persistent
from etcd_operator.controllers.etcd_peer.decide.ownership import content_problem, ownership_problem
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, META, improbable_cluster

TOKEN = "uid-0"
RECOVERY = Recovery(
    generation=2,
    source=Survivor(name="db-0"),
    authority="Proven",
    revision=1,
    version="3.6.16",
    seed="db-3",
    token="uid-1-2",
    replaces="c0de",
)
CLUSTER = improbable_cluster()
RESUMED = msgspec.structs.replace(
    CLUSTER,
    status=msgspec.structs.replace(
        CLUSTER.status,
        bootstrap=Bootstrap(members=("db-0",), token=TOKEN),
        recovery=RECOVERY,
        adoption=Adoption(
            members=(AdoptedMember(id="c0de", endpoint="old:2379", peer_urls=("http://old:2380",)),)
        ),
    ),
)
BOOTSTRAPPING = Bootstrapping(members=("db-0", "db-1", "db-2"), token="uid-1")


def made(start: Start = BOOTSTRAPPING, cluster: EtcdCluster = CLUSTER) -> dict[str, Any]:
    """An EtcdPeer as the operator writes it."""
    return persistent.peer(ImprobableDialect(DEFAULTS).desired(cluster), "db-1", start)


def stored(body: dict[str, Any]) -> EtcdPeer:
    return msgspec.convert(body, EtcdPeer)


@pytest.mark.parametrize(
    "start",
    [
        BOOTSTRAPPING,
        Joining(members=("db-0", "db-1"), token=TOKEN),
        Resuming(token="uid-1"),
        Resuming(token=TOKEN),
        Seeding(source=Survivor(name="db-0"), token=RECOVERY.token),
        Joining(members=("db-1",), token=TOKEN, external=(("c0de", "http://old:2380"),)),
        Joining(members=("db-1",), token=TOKEN, external=(("a", "https://db-0.db-peer.ns.svc:2380"),)),
        pytest.param(Resuming(token="uid-1-1"), id="a recovery that a later one has replaced"),
    ],
)
def test_what_the_operator_makes_is_acted_on(start: Start) -> None:
    peer = stored(made(start, RESUMED))
    assert ownership_problem(peer, RESUMED) == ""
    assert content_problem(peer, RESUMED) == ""


def test_a_peer_without_a_live_cluster_is_left_alone() -> None:
    assert "its EtcdCluster 'db' does not exist" in ownership_problem(stored(made()), None)


@pytest.mark.parametrize("uid", ["uid-0", ""])
def test_a_peer_of_another_cluster_is_left_alone(uid: str) -> None:
    other = msgspec.structs.replace(CLUSTER, metadata=msgspec.structs.replace(META, uid=uid or "x"))
    assert "is not its controller" in ownership_problem(stored(made()), other)


def test_an_owner_that_is_no_controller_proves_nothing() -> None:
    body = made()
    body["metadata"]["ownerReferences"][0]["controller"] = False
    assert "is not its controller" in ownership_problem(stored(body), CLUSTER)


def test_a_peer_with_a_name_that_no_member_has_is_left_alone() -> None:
    body = made()
    body["metadata"]["name"] = "db-one"
    assert "named db-<number>" in ownership_problem(stored(body), CLUSTER)


def with_bootstrap(**changes: Any) -> dict[str, Any]:
    body = made()
    body["spec"]["bootstrap"] |= changes
    return body


def with_host(name: str, host: str) -> dict[str, Any]:
    return with_bootstrap(static={"initialCluster": [{"name": name, "host": host}]})


def with_metadata(**metadata: Any) -> dict[str, Any]:
    body = made()
    body["spec"]["podTemplate"] = {"metadata": metadata}
    return body


def with_spec(**changes: Any) -> dict[str, Any]:
    body = made()
    body["spec"] |= changes
    return body


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (with_spec(clusterName="other"), "spec.clusterName"),
        (with_spec(version="latest"), "spec.version"),
        (with_spec(tls={"peer": True}), "spec.tls"),
        (
            with_bootstrap(external=[{"id": "c0de", "url": "http://elsewhere:2380"}]),
            "spec.bootstrap.external",
        ),
        *(
            (with_bootstrap(initialClusterToken=token), "initialClusterToken")
            for token in ("", "uid-2", "uid-1-", "uid-1-x", "uid-10")
        ),
        *(
            (with_bootstrap(survivor=host), "survivor")
            for host in (
                "db-0.db-peer.other.svc",
                "db-0.other.ns.svc",
                "other-0.other.ns.svc",
                "db-0",
                "evil.example.com",
                "db-0.db-peer.ns.svc:2379,http://evil",
                ".db-peer.ns.svc",
            )
        ),
        (with_host("db-1", "db-0.db-peer.ns.svc"), "initialCluster"),
        (with_host("db-1", "db-1.db-peer.other.svc"), "initialCluster"),
        (with_host("evil", "evil.db-peer.ns.svc"), "initialCluster"),
        (with_host("", ""), "initialCluster"),
        (with_metadata(labels={"etcd.improbable.io/cluster-name": "x"}), "reserved"),
        (with_metadata(labels={"app.kubernetes.io/name": "x"}), "reserved"),
        (with_metadata(annotations={"etcd.improbable.io/x": "x"}), "reserved"),
    ],
)
def test_a_member_that_differs_is_refused(body: dict[str, Any], wrong: str) -> None:
    problem = content_problem(stored(body), CLUSTER)
    assert wrong in problem
    assert problem.endswith("delete this EtcdPeer; the operator creates it again")


def test_a_token_that_no_status_has_is_refused() -> None:
    assert "initialClusterToken" in content_problem(stored(made(Resuming(token=TOKEN))), CLUSTER)


def test_nobody_is_told_to_delete_a_member_because_the_status_of_its_cluster_lost_its_tls() -> None:
    asks = improbable_cluster({**CLUSTER.spec, "tls": {"peer": {"auto": {}}}})
    problem = content_problem(stored(with_spec(tls={"peer": True})), asks)
    assert "spec.tls" in problem
    assert "delete" not in problem


@pytest.mark.parametrize(
    ("recorded", "tls", "is_refused"),
    [
        ({"mode": "Prefer", "plain_clients": True}, None, False),
        ({"mode": "Prefer", "plain_clients": True}, {"mode": "Prefer"}, False),
        ({"mode": "Prefer", "plain_clients": True}, {"mode": "Require"}, True),
        ({"mode": "Disabled", "plain_clients": True}, None, False),
        ({"mode": "Disabled", "plain_clients": True}, {"mode": "Prefer"}, False),
        ({"mode": "Prefer"}, {"mode": "Require"}, False),
        ({"mode": "Prefer"}, None, True),
    ],
)
def test_a_peer_is_acted_on_if_the_operator_connects_to_its_member_in_that_way(
    recorded: dict[str, Any], tls: dict[str, Any] | None, is_refused: bool
) -> None:
    record = TlsRecord(client_ca="c", client_cert_auth=True, **recorded)
    status = msgspec.structs.replace(CLUSTER.status, tls=record)
    asks = improbable_cluster({**CLUSTER.spec, "tls": {"client": {"auto": {}}}}, status=status)
    member = MemberTls(client=True, client_cert_auth=True, **tls) if tls else MemberTls()
    problem = content_problem(stored(with_spec(tls=msgspec.to_builtins(member))), asks)
    assert ("spec.tls" in problem) is is_refused


def test_a_peer_that_was_made_before_clients_were_to_be_served_otherwise_is_acted_on() -> None:
    recorded = TlsRecord(client_ca="c", client_cert_auth=True, mode="Prefer", min_version="TLS1.3")
    status = msgspec.structs.replace(CLUSTER.status, tls=recorded)
    asks = improbable_cluster({**CLUSTER.spec, "tls": {"client": {"auto": {}}}}, status=status)
    served: dict[str, Any] = {"client": True, "client_cert_auth": True}
    for tls, is_refused in ((served, False), ({**served, "peer": True}, True), ({"client": True}, False)):
        problem = content_problem(stored(with_spec(tls=msgspec.to_builtins(MemberTls(**tls)))), asks)
        assert ("spec.tls" in problem) is is_refused


@pytest.mark.parametrize(
    ("recorded", "admitted"),
    [
        (None, {"Disabled"}),
        ("Dial", {"Disabled", "Dial", "Require"}),
        ("Disabled", {"Disabled", "Dial"}),
        ("Require", {"Dial", "Require"}),
    ],
)
def test_a_member_may_be_one_step_behind_the_record_of_its_peers(
    recorded: PeerMode | None, admitted: set[str]
) -> None:
    record = TlsRecord(peer_ca="p", peer_mode=recorded) if recorded is not None else None
    status = msgspec.structs.replace(CLUSTER.status, tls=record)
    asks = improbable_cluster({**CLUSTER.spec, "tls": {"peer": {"auto": {}}}}, status=status)
    members = (MemberTls(), MemberTls(peer=True, plain_peers=True), MemberTls(peer=True))
    found = {
        member.peer_mode
        for member in members
        if "spec.tls" not in content_problem(stored(with_spec(tls=msgspec.to_builtins(member))), asks)
    }
    # Without a record of TLS the status of the cluster says why.
    assert found == admitted - ({"Disabled"} if recorded is None else set())
