"""Clusters with certificates of the user, as a stock client in a pod sees them."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind
from e2e.support.load import Load
from e2e.support.resizing import scale
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.test_tls import etcdctl, settled, start_client
from etcd_operator.pki.authority import KeyPair
from unit.pki.samples import Issuer

OWN: dict[str, Any] = {
    "peer": {"secretRef": {"name": "own-peer"}},
    "client": {"secretRef": {"name": "own-server"}, "operatorSecretRef": {"name": "own-operator"}},
}


def supply(space: Space, name: str) -> None:
    """The Secrets of the user, and one for the client of the test."""
    ca, namespace = Issuer(datetime.now(UTC)), space.namespace
    hosts = (f"*.{name}-peer.{namespace}.svc", f"*.{namespace}.svc")
    leafs = {
        "own-peer": ca.leaf(*hosts),
        "own-server": ca.leaf(*hosts, name, f"{name}.{namespace}.svc"),
        "own-operator": ca.leaf(),
        f"{name}-client-tls": ca.leaf(),
    }
    for secret, pair in leafs.items():
        apply(space, secret, pair, ca.pem)


def apply(space: Space, name: str, pair: KeyPair, cas: bytes) -> None:
    content = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": cas}
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    space.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})


@each_kind(ephemerals=pytest.mark.long)
def test_a_cluster_with_certificates_of_the_user_is_resized_and_upgraded(space: Space, kind: Any) -> None:
    """The option by which members accept one certificate for all has another name in 3.6."""
    document: Document = kind(version="3.5.35", tls=OWN)
    supply(space, document["metadata"]["name"])
    document = space.create(document)
    settled(space, document)
    start_client(space, document)
    etcdctl(space, document, "put", "key", "value")
    document = scale(space, document, 5)
    settled(space, document)
    document["spec"]["version"] = "3.6.16"
    space.kubectl.apply(document)
    settled(space, document)
    assert etcdctl(space, document, "endpoint", "status", "--cluster").count("3.6.16") == 5
    assert etcdctl(space, document, "get", "key").split() == ["key", "value"]


@pytest.mark.long
@each_kind()
def test_a_ca_of_the_user_for_peers_is_replaced_while_clients_write(space: Space, kind: Any) -> None:
    """First all members load both CAs, then the certificate is changed, and the former CA goes."""
    document: Document = kind(tls={"peer": OWN["peer"]})
    now, hosts = datetime.now(UTC), (f"*.my-cluster-peer.{space.namespace}.svc", f"*.{space.namespace}.svc")
    former, following = Issuer(now), Issuer(now, name="the next CA")
    leaf = former.leaf(*hosts)
    apply(space, "own-peer", leaf, former.pem)
    document = space.create(document)
    settled(space, document)
    with Load(lambda: space.addresses(document)) as load:
        for pair, cas in ((leaf, former.pem + following.pem), (following.leaf(*hosts), following.pem)):
            load.go_on()
            apply(space, "own-peer", pair, cas)
            space.wait_for(document, lambda: is_rotating(space, document), "it is read", within=READ)
            space.wait_for(document, lambda: not is_rotating(space, document), "all load it", within=LOADED)
            settled(space, document)
        load.go_on()
    load.judge(space.testbed, space.addresses(document), load.newest)


READ, LOADED = 400.0, 1200.0
"""Seconds until the operator has read a Secret that has changed, and until members have loaded its CAs."""


def is_rotating(space: Space, document: Document) -> bool:
    return bool(condition(space.stored(document), "TLSRotating")["status"] == "True")
