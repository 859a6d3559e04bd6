"""What `spec.tls` asks for, and which of it is refused where the definitions have other rules."""

from typing import Any

import pytest

from etcd_operator.api import coreos, improbable
from etcd_operator.api.definitions import tls_validations
from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import Auto, ClientTls, IssuerRef, PeerTls, Tls, UserSecret
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.shared.decide import tls_spec
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS, coreos_cluster, improbable_cluster

BOTH: dict[str, Any] = {"peer": {"auto": {}}, "client": {"auto": {}}}
RECORD = TlsRecord(peer_ca="p", client_ca="c", client_cert_auth=True)
OWN_CLIENT: dict[str, Any] = {"secretRef": {"name": "own"}, "operatorSecretRef": {"name": "operator"}}
ECDSA, RSA = tls_validations.EITHER_KEY
ECDSA_256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
OWN_PEERS = TlsRecord(peer_secret=UserSecret(name="own", keys="peer"), client_ca="c", client_cert_auth=True)
OWN_CLIENTS = TlsRecord(
    peer_ca="p",
    client_secret=UserSecret(name="own", keys="tls"),
    operator_secret=UserSecret(name="operator", keys="tls"),
    client_cert_auth=True,
)
ISSUED: dict[str, Any] = {"certManager": {"issuerRef": {"name": "ours"}}}
OTHER_ISSUER: dict[str, Any] = {"certManager": {"issuerRef": {"name": "other"}}}
SHARED: dict[str, Any] = {"certManager": {"issuerRef": {"name": "all", "kind": "ClusterIssuer"}}}
OF_ISSUER = TlsRecord(
    peer_ca="p",
    client_ca="c",
    peer_issuer=IssuerRef(name="ours"),
    client_issuer=IssuerRef(name="ours"),
    client_cert_auth=True,
)
ONLY_CLIENT = TlsRecord(client_ca="c", client_cert_auth=True)


def problem(tls: Any, record: TlsRecord | None = None, cluster_id: str = "", **spec: Any) -> str:
    """Of a persistent cluster."""
    status = improbable.ClusterStatus(cluster_id=cluster_id, tls=record)
    return problem_of(status, tls=tls, **spec)


def problem_of(status: improbable.ClusterStatus | None = None, **spec: Any) -> str:
    asked = improbable_cluster(spec, status=status or improbable.ClusterStatus())
    return ImprobableDialect(DEFAULTS).desired(asked).problem


def test_what_is_asked_for() -> None:
    wanted = Tls(peer=PeerTls(auto=Auto()), client=ClientTls(auto=Auto()))
    assert ImprobableDialect(DEFAULTS).desired(improbable_cluster({"tls": BOTH})).tls == wanted
    assert CoreosDialect(DEFAULTS).desired(coreos_cluster({"size": 3, "tls": BOTH})).tls == wanted
    assert ImprobableDialect(DEFAULTS).desired(improbable_cluster()).tls is None
    disabled: dict[str, Any] = {"client": {"auto": {}, "mode": "Disabled"}}
    assert ImprobableDialect(DEFAULTS).desired(improbable_cluster({"tls": disabled})).tls is None
    found = ImprobableDialect(DEFAULTS).desired(improbable_cluster({"tls": {**BOTH, **disabled}})).tls
    assert found == Tls(peer=PeerTls(auto=Auto()))


@pytest.mark.parametrize(
    ("tls", "spec", "message"),
    [
        ({}, {}, "spec.tls: set peer, client or both"),
        ({"peer": {}}, {}, "spec.tls.peer: set one source of the certificates"),
        (
            {"peer": {"auto": {}, "secretRef": {"name": "own"}}},
            {},
            "spec.tls.peer: set one source of the certificates",
        ),
        (
            {"peer": {"secretRef": {"name": "own"}, "leafDuration": "90d"}},
            {},
            "spec.tls.peer: leafDuration and caDuration are of certificates that the operator issues",
        ),
        ({"client": {}}, {}, "spec.tls.client: set one source of the certificates"),
        ({"client": {**ISSUED, "auto": {}}}, {}, "spec.tls.client: set one source of the certificates"),
        ({"client": {**ISSUED, "mode": "Disabled"}}, {}, "spec.tls.client: certificates that the operator"),
        ({"peer": {**ISSUED, "caDuration": "3650d"}}, {}, "spec.tls.peer: caDuration is of a CA"),
        ({"peer": {**ISSUED, "leafDuration": "59m"}}, {}, "spec.tls.peer.leafDuration: must be at least 1 h"),
        ({"peer": SHARED}, {}, "spec.tls.peer.certManager: whoever gets a certificate from a shared issuer"),
        ({"client": {"secretRef": {"name": "own"}}}, {}, "spec.tls.client: set operatorSecretRef"),
        ({"client": {**OWN_CLIENT, "clientCertAuth": False}}, {}, "spec.tls.client: set operatorSecretRef"),
        (
            {"client": {"auto": {}, "cipherSuites": [ECDSA], "minVersion": "TLS1.3"}},
            {},
            "spec.tls.client: cipherSuites are of TLS 1.2",
        ),
        ({"client": {"auto": {}, "cipherSuites": [ECDSA, RSA]}}, {}, "spec.tls.client: the operator issues"),
        ({"client": {"auto": {}, "cipherSuites": [ECDSA_256]}}, {}, "spec.tls.client: the operator issues"),
        ({"client": {**OWN_CLIENT, "cipherSuites": [ECDSA]}}, {}, "spec.tls.client: add TLS_ECDHE_ECDSA"),
        ({"client": {**OWN_CLIENT, "extraIPs": ["192.0.2.7"]}}, {}, "spec.tls.client: extraDNSNames and"),
        (
            {"client": {"auto": {}, "leafDuration": "1m"}},
            {},
            "spec.tls.client.leafDuration: must be at least",
        ),
        ({"client": {"auto": {}, "leafDuration": "x"}}, {}, "spec.tls.client.leafDuration: 'x' is not"),
        ({"peer": {"auto": {}, "caDuration": "100d"}}, {}, "spec.tls.peer.caDuration: a CA must live"),
        (
            {"client": {"auto": {}, "extraDNSNames": ["a b"]}},
            {},
            "spec.tls.client.extraDNSNames: 'a b' is not",
        ),
        ({"client": {"auto": {}, "extraIPs": ["a"]}}, {}, "spec.tls.client.extraIPs: 'a' is not an IP"),
        (BOTH, {"version": "3.4.37"}, "spec.tls: TLS requires etcd 3.5"),
        (
            BOTH,
            {"adopt": {"endpoints": ["http://a.b.svc:2379"]}},
            "spec.adopt: a cluster with spec.tls cannot",
        ),
    ],
)
def test_what_cannot_be_is_refused(tls: Any, spec: dict[str, Any], message: str) -> None:
    assert problem(tls, **spec).startswith(message)


NO_CERTIFICATES: dict[str, Any] = {"client": {"auto": {}, "clientCertAuth": False}}
PREFERRED: dict[str, Any] = {"client": {"auto": {}, "mode": "Prefer"}}


@pytest.mark.parametrize(
    ("tls", "auth", "message"),
    [
        (BOTH, {"enabled": True}, ""),
        (None, {"enabled": False}, ""),
        (None, {"enabled": True}, "spec.auth: authentication needs tls.client with clientCertAuth"),
        ({"peer": {"auto": {}}}, {"enabled": True}, "spec.auth: authentication needs tls.client"),
        (NO_CERTIFICATES, {"enabled": True}, "spec.auth: authentication needs tls.client"),
        (PREFERRED, {"enabled": True}, "spec.auth: authentication needs tls.client"),
        (PREFERRED, {"enabled": False}, ""),
        ({"client": OWN_CLIENT}, {"enabled": True}, "spec.auth: authentication needs certificates that the"),
        ({"client": ISSUED}, {"enabled": True}, "spec.auth: authentication needs certificates that the"),
        (BOTH, {}, "spec: Object missing required field `enabled`"),
    ],
)
def test_users_need_certificates(tls: Any, auth: dict[str, Any], message: str) -> None:
    found = problem(tls, auth=auth) if tls is not None else problem_of(auth=auth)
    assert found.startswith(message)
    assert bool(found) is bool(message)


def test_whether_users_are_required_may_be_left_open() -> None:
    for auth, wanted in ((None, None), ({"enabled": True}, True), ({"enabled": False}, False)):
        spec = {"tls": BOTH, **({"auth": auth} if auth is not None else {})}
        assert ImprobableDialect(DEFAULTS).desired(improbable_cluster(spec)).auth is wanted
        assert CoreosDialect(DEFAULTS).desired(coreos_cluster({"size": 3, **spec})).auth is wanted


@pytest.mark.parametrize(
    ("tls", "record", "is_refused"),
    [
        (BOTH, RECORD, False),
        (None, RECORD, False),
        (None, None, False),
        (None, ONLY_CLIENT, False),
        ({"peer": {"auto": {}}}, RECORD, False),
        ({"peer": {"auto": {}}}, ONLY_CLIENT, False),
        ({**BOTH, "peer": {"secretRef": {"name": "own"}}}, ONLY_CLIENT, True),
        (None, OWN_PEERS, True),
        ({"client": {"auto": {}}}, OWN_PEERS, True),
        ({"client": {"auto": {}, "clientCertAuth": False}}, RECORD, False),
        (BOTH, TlsRecord(peer_ca="p"), False),
        ({**BOTH, "client": {"auto": {}, "clientCertAuth": False, "mode": "Disabled"}}, RECORD, False),
        ({**BOTH, "peer": {"secretRef": {"name": "own"}}}, RECORD, True),
        ({**BOTH, "peer": {"secretRef": {"name": "own"}}}, OWN_PEERS, False),
        ({"peer": {"secretRef": {"name": "own"}}}, OWN_PEERS, False),
        ({**BOTH, "peer": {"secretRef": {"name": "other"}}}, OWN_PEERS, True),
        ({"peer": {"secretRef": {"name": "other"}}}, OWN_PEERS, True),
        (BOTH, OWN_PEERS, True),
        ({"peer": ISSUED, "client": ISSUED}, OF_ISSUER, False),
        ({"peer": ISSUED, "client": {**ISSUED, "mode": "Prefer", "leafDuration": "200d"}}, OF_ISSUER, False),
        ({"peer": ISSUED}, OF_ISSUER, True),
        ({"peer": OTHER_ISSUER, "client": ISSUED}, OF_ISSUER, True),
        ({"peer": ISSUED, "client": OTHER_ISSUER}, OF_ISSUER, True),
        (BOTH, OF_ISSUER, True),
        ({"peer": ISSUED, "client": ISSUED}, RECORD, True),
        (None, OF_ISSUER, True),
        ({**BOTH, "client": OWN_CLIENT}, TlsRecord(peer_ca="p"), True),
        ({"peer": {"auto": {}}}, OWN_CLIENTS, True),
        ({"client": {"secretRef": {"name": "s"}, "clientCertAuth": False}}, OWN_CLIENTS, True),
        ({**BOTH, "client": {"auto": {}, "minVersion": "TLS1.3", "mode": "Prefer"}}, RECORD, False),
        ({**BOTH, "client": {"auto": {}, "leafDuration": "30d", "extraDNSNames": ["a.b"]}}, RECORD, False),
    ],
)
def test_what_runs_keeps_its_tls(tls: Any, record: TlsRecord | None, is_refused: bool) -> None:
    assert problem(tls, record, "id").startswith("spec.tls: certificates of your own, or of") is is_refused
    assert problem(tls, record) == ""


def test_an_ephemeral_cluster_with_tls_cannot_join_another_one_yet() -> None:
    other = {"bootMemberClientEndpoint": "http://a.b.svc:2379"}
    asked = coreos_cluster({"size": 3, "tls": BOTH, "selfHosted": other}, status=coreos.ClusterStatus())
    assert (
        CoreosDialect(DEFAULTS).desired(asked).problem.startswith("spec.tls: a cluster with spec.tls cannot")
    )


def test_a_duration_that_is_none_is_one_problem() -> None:
    assert len([*tls_spec.problems(Tls(peer=PeerTls(auto=Auto(), leaf_duration="x")))]) == 1


def test_a_backup_tool_needs_certificates_of_the_operator() -> None:
    for client in (OWN_CLIENT, ISSUED):
        asked = coreos_cluster({"size": 3, "tls": {"client": client}, "backup": {"maxBackups": 3}})
        assert CoreosDialect(DEFAULTS).desired(asked).problem.startswith("spec.backup: the backup tool needs")


STATIC: dict[str, Any] = {
    "member": {"peerSecret": "p", "serverSecret": "s"},
    "operatorSecret": "o",
}


@pytest.mark.parametrize(
    ("static", "spec", "message"),
    [
        (STATIC, {}, ""),
        ({"member": {"peerSecret": "p"}}, {}, ""),
        ({"member": {}}, {}, "spec.TLS.static: set member.peerSecret"),
        ({"member": {"serverSecret": "s"}}, {}, "spec.TLS.static: set member.peerSecret"),
        (
            {"member": {"peerSecret": "p"}, "operatorSecret": "o"},
            {},
            "spec.TLS.static: set member.peerSecret",
        ),
        (STATIC, {"tls": BOTH}, "spec.TLS: spec.TLS cannot be combined with tls"),
        (STATIC, {"backup": {"maxBackups": 3}}, "spec.backup: the backup tool needs"),
        (
            STATIC,
            {"auth": {"enabled": True}},
            "spec.auth: authentication needs certificates that the operator",
        ),
    ],
)
def test_the_form_of_coreos(static: dict[str, Any], spec: dict[str, Any], message: str) -> None:
    asked = coreos_cluster({"size": 3, "TLS": {"static": static}, **spec})
    found = CoreosDialect(DEFAULTS).desired(asked)
    assert found.problem.startswith(message)
    assert (found.tls is None) is bool(message)


@pytest.mark.parametrize(
    "client",
    [
        {"auto": {}, "cipherSuites": [ECDSA, ECDSA_256]},
        {**OWN_CLIENT, "cipherSuites": [ECDSA, RSA]},
    ],
)
def test_suites_that_serve_each_key_in_use_are_taken(client: dict[str, Any]) -> None:
    assert not problem({"client": client})
