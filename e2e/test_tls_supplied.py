"""Clusters with certificates of the user, as a stock client in a pod sees them."""

import base64
from datetime import UTC, datetime
from typing import Any

from e2e.support.clusters import Document, each_kind
from e2e.support.resizing import scale
from e2e.support.space import Space
from e2e.test_tls import etcdctl, settled, start_client
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
        content = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.pem}
        data = {key: base64.b64encode(value).decode() for key, value in content.items()}
        space.kubectl.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": data}
        )


@each_kind()
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
