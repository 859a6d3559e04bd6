"""What leafs are for: subject, usage and names of each kind.

Two kinds for peers: a listener checks the addresses of a dialing member against the names in its leaf, by
reverse DNS, and accepts a leaf without names (measured in etcd 3.5, 3.6 and 3.7). So members dial with a leaf
that has none, and is no good for a server.

etcd takes the common name of a client's leaf as its user. The leaf of the client port has no common name.
"""

from dataclasses import dataclass
from enum import StrEnum

from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import Names

PEER = "etcd-peer"
"""The common name of all leafs of peers, for `--peer-cert-allowed-cn`."""

LONGEST_COMMON_NAME = 64
"""Bytes, as X.509 has it."""


NO_NAMES = Names()


class Usage(StrEnum):
    """An extended key usage."""

    SERVER = "serverAuth"
    CLIENT = "clientAuth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """What is certified of a leaf."""

    usage: Usage
    common_name: str = ""
    organization: str = ""  # so that a subject without a common name is not empty
    names: Names = NO_NAMES


PEER_DIALING = Leaf(usage=Usage.CLIENT, common_name=PEER)
"""With which a member dials others."""


def server(names: Names) -> Leaf:
    """The leaf of the client port."""
    return Leaf(usage=Usage.SERVER, organization="etcd server", names=names)


def peer_server(names: Names) -> Leaf:
    """The leaf of the peer port."""
    return Leaf(usage=Usage.SERVER, common_name=PEER, names=names)


def client(user: str) -> Leaf:
    """The leaf of a user of etcd. Raises `BadCertificate` if the name does not fit in a certificate."""
    return Leaf(usage=Usage.CLIENT, common_name=common_name(user))


def common_name(text: str) -> str:
    """A common name. Raises `BadCertificate` if it is none."""
    if not text or not text.isprintable():
        raise BadCertificate("a common name must not be empty, nor have control characters")
    if len(text.encode()) > LONGEST_COMMON_NAME:
        raise BadCertificate(
            f"the name {text[:20]}... is too long for a certificate: at most {LONGEST_COMMON_NAME} bytes"
        )
    return text
