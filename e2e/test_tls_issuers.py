"""Clusters whose certificates a stand-in of cert-manager issues, as a stock client in a pod sees them."""

import base64
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind, ephemeral
from e2e.support.issuing import CertManager, cert_manager
from e2e.support.resizing import scale
from e2e.support.space import Space
from e2e.test_tls import etcdctl, settled, start_client
from etcd_operator.kube import resources
from etcd_operator.pki.description import describe
from unit.pki.certificates import issued

VOLUMES_FOLLOW = 900.0
"""Seconds: three minutes pass after each write of a Secret, once for a bundle, and once for each member."""

OURS: dict[str, Any] = {side: {"certManager": {"issuerRef": {"name": "ours"}}} for side in ("peer", "client")}


def give_client(space: Space, issuer: CertManager, name: str) -> None:
    """The Secret of a client, from the same issuer."""
    spec = {"duration": "2h0m0s", "usages": ["client auth"], "commonName": "app"}
    files = issued(spec, issuer.ca, datetime.now(UTC))
    data = {file: base64.b64encode(content).decode() for file, content in files.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{name}-client-tls"}, "data": data}
    space.kubectl.create(secret)


def made(space: Space, issuer: CertManager, kind: Any) -> Document:
    """A cluster, and a client with a certificate of the same issuer."""
    document: Document = space.create(kind(tls=deepcopy(OURS)))
    settled(space, document)
    give_client(space, issuer, document["metadata"]["name"])
    start_client(space, document)
    etcdctl(space, document, "put", "key", "value")
    return document


def test_a_client_of_the_same_issuer_is_served_while_members_come(space: Space) -> None:
    with cert_manager(space) as issuer:
        document = made(space, issuer, ephemeral)
        document = scale(space, document, 4)
        settled(space, document)
        assert etcdctl(space, document, "get", "key").split() == ["key", "value"]


@pytest.mark.long
@each_kind()
def test_an_issuer_has_another_ca_while_clients_are_served(space: Space, kind: Any) -> None:
    with cert_manager(space) as issuer:
        document = made(space, issuer, kind)
        issuer.change_ca()
        wanted = describe(issuer.ca.certificate).key_id

        def has_followed() -> bool:
            status = space.status(document)
            told = [each["message"] for each in status["conditions"] if each["type"] == "TLSRotating"]
            is_trusted = any("clients have until" in message for message in told)
            return bool(status["tls"].get("peerCA") == wanted and is_trusted)

        # The operator looks every five minutes, and at once when it asks for something else.
        document["spec"]["tls"]["client"]["extraDNSNames"] = ["etcd.example.com"]
        space.kubectl.apply(document)
        space.wait_for(
            document,
            has_followed,
            "peers have the new CA, and members trust that of clients",
            within=VOLUMES_FOLLOW,
        )
        # The client trusts and presents the former CA, which is kept for it; its own issuer has changed.
        bundle = space.api.all_of(resources.CONFIG_MAPS, space.namespace)
        name = document["metadata"]["name"]
        (published,) = [each["data"]["ca.crt"] for each in bundle if each["metadata"]["name"] == f"{name}-ca"]
        assert published.count("BEGIN CERTIFICATE") == 2
        assert etcdctl(space, document, "get", "key").split() == ["key", "value"]
