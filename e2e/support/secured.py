"""The certificates of a cluster with TLS: what its Secrets have, and what its CAs could issue."""

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from e2e.support.clusters import Document
from e2e.support.waiting import answered
from etcd_operator.controllers.etcd_cluster.manifests.authorities import CA_LABEL
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.kube import resources
from etcd_operator.pki import profiles
from etcd_operator.pki.authority import KeyPair, issue

if TYPE_CHECKING:
    from e2e.support.space import Space

Content = dict[str, bytes]


def server_name(space: "Space", document: Document) -> str:
    """The name of the Service for clients, for which the certificates of all members are valid, too."""
    return f"{document['metadata']['name']}.{space.namespace}.svc"


def content(space: "Space", secret: str) -> Content:
    """What a Secret of the namespace has; empty if there is none."""
    return _decoded(space.api.get(resources.SECRETS, space.namespace, secret))


def pair(found: Content, name: str = "tls") -> KeyPair:
    """A certificate in a Secret, with its key."""
    return KeyPair(found[f"{name}.crt"], found[f"{name}.key"])


def credentials(space: "Space", document: Document, secret: str) -> TlsCredentials | None:
    """With what a client connects that mounts this Secret; None if there is none."""
    found = content(space, secret)
    if not found:
        return None
    return _credentials(space, document, pair(found), found["ca.crt"])


def root(space: "Space", document: Document) -> TlsCredentials | None:
    """With what the operator connects; None for a cluster whose clients use no TLS."""
    tls = document.get("spec", {}).get("tls") or {}
    if "client" not in tls:
        return None
    ca = answered(lambda: issuer(space, document, "client"), "the cluster has CAs")
    leaf = issue(ca, profiles.client("root"), now=datetime.now(UTC), duration=timedelta(days=1))
    return _credentials(space, document, leaf, ca.certificate)


def authorities(space: "Space", document: Document) -> Document:
    """The Secret with the CAs of a cluster, where the operator lives."""
    uid = space.stored(document)["metadata"]["uid"]
    found = space.api.all_of(resources.SECRETS, selector=f"{CA_LABEL}={uid}")
    assert found, f"{document['metadata']['name']} has no CAs"
    return found[0]


def issuer(space: "Space", document: Document, side: str) -> KeyPair:
    """The CA that signs, for `client` or `peer`."""
    return pair(_decoded(authorities(space, document)), f"{side}-issuer")


def _credentials(space: "Space", document: Document, leaf: KeyPair, ca: bytes) -> TlsCredentials:
    name = server_name(space, document)
    return TlsCredentials(ca=ca, certificate=leaf.certificate, key=leaf.key, server_name=name)


def _decoded(secret: Document | None) -> Content:
    data = (secret or {}).get("data", {})
    return {name: base64.b64decode(text) for name, text in data.items()}
