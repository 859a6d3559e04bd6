"""Who gets what from members that require certificates and users: each role, at the ports 2379 and 2380."""

import http.client
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.keys import KeyClient
from e2e.support.resizing import members_of
from e2e.support.secured import content, issuer, pair, server_name
from e2e.support.space import Space
from e2e.test_authentication import BOTH, declare
from e2e.test_tls import settled
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.handshake import shake
from etcd_operator.pki.authority import KeyPair, issue
from etcd_operator.pki.profiles import PEER_DIALING, client
from unit.pki.handshakes import context

DAY = timedelta(days=1)
CLIENTS, PEERS = 2379, 2380
PATIENCE = 30.0
"""Seconds for one answer."""

SERVED = {"status": "", "members": "", "read": "", "write": ""}
REFUSED = dict.fromkeys([*SERVED, "read of others", "write to others", "snapshot"], "Unavailable")
DENIED = {"read of others": "PermissionDenied", "write to others": "PermissionDenied"}
APPLICATION = {**SERVED, **DENIED, "snapshot": "PermissionDenied"}
NO_USER = {**APPLICATION, "read": "PermissionDenied", "write": "PermissionDenied", "snapshot": "UserNotFound"}
"""What each request ends with, by the class of its error. etcd shows its members to all of the client CA."""


@dataclass(frozen=True)
class Role:
    """A certificate, how each port refuses it (empty: it does not), and what clients get."""

    pair: KeyPair | None
    at_clients: str
    at_peers: str
    gets: dict[str, str]


def roles(space: Space, cluster: Document, user: str, other: Document, other_user: str) -> dict[str, Role]:
    clients, peers = issuer(space, cluster, "client"), issuer(space, cluster, "peer")
    member, foreign = (content(space, f"{members_of(space, each)[0]}-tls") for each in (cluster, other))
    now = datetime.now(UTC)
    nobody = issue(clients, client("nobody"), now=now, duration=DAY)
    wrong_name = issue(peers, client(user), now=now, duration=DAY)
    expired = issue(clients, client(user), now=now - 2 * DAY, duration=DAY)
    expired_peer = issue(peers, PEER_DIALING, now=now - 2 * DAY, duration=DAY)
    application, others = (pair(content(space, f"{each}-etcd-connection")) for each in (user, other_user))
    none, unknown, late, unfit = (
        "certificate required",
        "unknown ca",
        "certificate expired",
        "bad certificate",
    )
    return {
        "no certificate": Role(None, none, none, REFUSED),
        "an application": Role(application, "", unknown, APPLICATION),
        "a client that is no user": Role(nobody, "", unknown, NO_USER),
        "a member that dials": Role(pair(member, "peer-dial"), unknown, "", REFUSED),
        "the listener for members": Role(pair(member, "peer"), unknown, unfit, REFUSED),
        "the listener for clients": Role(pair(member, "server"), unfit, unknown, REFUSED),
        "a user with a certificate of the peer CA": Role(wrong_name, unknown, unfit, REFUSED),
        "an expired application": Role(expired, late, late, REFUSED),
        "an expired member": Role(expired_peer, late, late, REFUSED),
        "an application of another cluster": Role(others, unknown, unknown, REFUSED),
        "a member of another cluster": Role(pair(foreign, "peer-dial"), unknown, unknown, REFUSED),
    }


def ending(call: Callable[[], object]) -> str:
    """The class of its error; empty if there is none."""
    try:
        call()
    except OperatorError as error:
        return type(error).__name__
    return ""


def requests(at: str, credentials: TlsCredentials) -> dict[str, str]:
    """What each request of a client ends with."""
    channels = Channels(credentials)
    etcd = KeyClient(channels, f"{at}:{CLIENTS}", deadline=PATIENCE)
    try:
        return {
            "status": ending(etcd.status),
            "members": ending(lambda: etcd.member_list(linearizable=True)),
            "read": ending(lambda: etcd.get(b"/app/key")),
            "write": ending(lambda: etcd.put(b"/app/key", b"2")),
            "read of others": ending(lambda: etcd.get(b"/other")),
            "write to others": ending(lambda: etcd.put(b"/other", b"2")),
            "snapshot": ending(lambda: list(etcd.snapshot(stall=PATIENCE))),
        }
    finally:
        channels.close()


def get(connection: socket.socket, path: str) -> int:
    """The status of the answer to a GET."""
    request = http.client.HTTPConnection("localhost")
    request.sock = connection
    request.request("GET", path)
    return request.getresponse().status


def play(space: Space, cluster: Document, all_roles: dict[str, Role]) -> None:
    (at,), name = space.addresses(cluster), server_name(space, cluster)
    cas = {
        CLIENTS: issuer(space, cluster, "client").certificate,
        PEERS: issuer(space, cluster, "peer").certificate,
    }
    found, expected = {}, {}
    for role, each in all_roles.items():
        own = (None, None) if each.pair is None else (each.pair.certificate, each.pair.key)
        given = {
            port: TlsCredentials(ca=ca, certificate=own[0], key=own[1], server_name=name)
            for port, ca in cas.items()
        }
        shaken = [shake(f"{at}:{port}", given[port], deadline=PATIENCE) for port in (CLIENTS, PEERS)]
        assert [hands.distrust for hands in shaken] == ["", ""]
        found[role] = (*(hands.refusal for hands in shaken), requests(at, given[CLIENTS]))
        expected[role] = (each.at_clients, each.at_peers, each.gets)
    assert found == expected
    for port in cas:
        with socket.create_connection((at, port), PATIENCE) as plain, pytest.raises(ConnectionResetError):
            get(plain, "/version")
    dialing = context(ssl.Purpose.SERVER_AUTH, ca=cas[PEERS], leaf=all_roles["a member that dials"].pair)
    with (
        socket.create_connection((at, PEERS), PATIENCE) as plain,
        dialing.wrap_socket(plain, server_hostname=name) as secured,
    ):
        assert get(secured, "/members") == 200


def test_each_role_gets_what_it_is_for_and_no_other_gets_anything(space: Space) -> None:
    """Of two clusters in one namespace, each of which is the other one's stranger."""
    clusters = {
        "one": ephemeral(size=1, version="3.5.35", tls=BOTH, auth={"enabled": True}),
        "two": persistent(replicas=1, tls=BOTH, auth={"enabled": True}),
    }
    for user, cluster in clusters.items():
        space.create(cluster)
        permissions = [{"prefix": "/app/", "access": "ReadWrite"}]
        declare(space, cluster, "EtcdRole", user, permissions=permissions)
        declare(space, cluster, "EtcdUser", user, roles=[user], authentication="certificate")
    for cluster in clusters.values():
        settled(space, cluster)
        space.wait_condition(cluster, "AuthenticationEnabled", "Enabled")
    for (user, cluster), (other_user, other) in zip(clusters.items(), [*clusters.items()][::-1], strict=True):
        play(space, cluster, roles(space, cluster, user, other, other_user))

    account = f"--as=system:serviceaccount:{space.namespace}:default"
    assert space.kubectl("auth", "can-i", "get", "secrets", account, check=False).strip() == "no"
