"""Clusters whose members serve clients in different ways, with TLS or without."""

from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import Auto, CipherSuite, ClientMode, ClientTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS, Serving
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, ClusterState, TlsFacts
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    changed,
    with_record,
)

RECORD = TlsRecord(client_ca="c", client_cert_auth=True)
REQUIRED = Serving(mode="Require", client_cert_auth=True)
PREFERRED = replace(REQUIRED, mode="Prefer")

MODES: tuple[ClientMode, ...] = ("Disabled", "Prefer", "Require")
ADDING = msgspec.structs.replace(RECORD, mode="Prefer", plain_clients=True)
SUITES: tuple[CipherSuite, ...] = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)
OPEN = msgspec.structs.replace(RECORD, client_cert_auth=False)
OPENED = replace(REQUIRED, client_cert_auth=False)
PREFER = msgspec.structs.replace(RECORD, mode="Prefer")
REMOVING = msgspec.structs.replace(RECORD, mode="Disabled", plain_clients=True)


def asked(
    cluster: DesiredCluster, client: ClientTls, *members: Serving | None, budget: int = 2
) -> ClusterState:
    """A cluster that serves, whose members serve clients like this (default: as is recorded)."""
    state = replace(bootstrapped(replace(cluster, tls=Tls(client=client))), budget=budget)
    for member, serving in zip(state.members, members or (REQUIRED,) * 3, strict=True):
        assert member.pod is not None
        state = changed(state, member.name, pod=replace(member.pod, serving=serving))
    return with_record(state, tls=RECORD)


def client(mode: ClientMode = "Require", **settings: Any) -> ClientTls:
    return ClientTls(auto=Auto(), mode=mode, **settings)


PLAIN = WITHOUT_TLS
CA = replace(NO_TLS, peer_ca="p", client_ca="c")


def switched(
    cluster: DesiredCluster,
    mode: ClientMode,
    record: TlsRecord | None,
    *members: Serving | None,
    tls: TlsFacts = CA,
    cert_auth: bool = True,
) -> ClusterState:
    """A cluster that is asked to serve like this (`Disabled`: without the field), and how its members do."""
    wanted = ClientTls(auto=Auto(), mode=mode, client_cert_auth=cert_auth)
    state = asked(cluster, wanted, *members)
    if mode == "Disabled":
        state = replace(state, desired=replace(state.desired, tls=None))
    return with_record(replace(state, tls=tls), tls=record)
