"""What the operator gives to members, and dials them with, in the hands of real etcd and of gRPC."""

import base64
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from etcd_operator.api.tls import Auto, CipherSuite, ClientTls, MemberTls, PeerTls, Tls, UserSecret
from etcd_operator.controllers.etcd_auth.decide.enabling import AuthSwitch
from etcd_operator.controllers.etcd_auth.switch import switch
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import tls, tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.authorities import Authorities, new_authorities
from etcd_operator.errors import Forbidden, Unavailable
from etcd_operator.etcd.auth import AuthClient
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.errors import UnhealthyCluster
from etcd_operator.etcd.values import EtcdMember
from etcd_operator.pki.authority import issue
from etcd_operator.pki.profiles import client as client_leaf
from etcd_operator.pki.profiles import server
from unit.controllers.etcd_cluster.decide.builders import ephemeral
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster, free_address
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.pki.samples import Issuer
from unit.waiting import eventually

HOUR = timedelta(hours=1)
ADDRESS = free_address().rpartition(":")[0]
GUIDE = Path(__file__).parents[2] / "docs" / "users.md"
CLUSTER: DesiredCluster = ephemeral(
    tls=Tls(peer=PeerTls(auto=Auto()), client=ClientTls(auto=Auto(), extra_ips=(ADDRESS,)))
)


def now() -> datetime:
    return datetime.now(UTC)


def credentials(made: Authorities, ca: bytes | None = None) -> TlsCredentials:
    """Of the user root; ca: that it trusts, if it is another one."""
    pair = issue(made.client.issuer, client_leaf(tls.USER), now=now(), duration=HOUR)
    trusted = ca or made.client.bundle
    return TlsCredentials(ca=trusted, certificate=pair.certificate, key=pair.key, by_name=True)


@pytest.fixture
def made() -> Authorities:
    return new_authorities(CLUSTER, now(), "cluster.local")


@pytest.fixture
def served(made: Authorities) -> Iterator[FakeEtcdCluster]:
    """A member `db-0` that requires certificates of clients."""
    names = tls.member_names(CLUSTER, ("db-0",), "cluster.local")
    pair = issue(made.client.issuer, server(names), now=now(), duration=HOUR)
    cluster = FakeEtcdCluster()
    cluster.bootstrap({"db-0": "https://db-0:2380"})
    requires = grpc.ssl_server_credentials([(pair.key, pair.certificate)], made.client.bundle, True)
    cluster.start("db-0", peer_url="https://db-0:2380", address="127.0.0.1:0", credentials=requires)
    yield cluster
    cluster.close()


def test_each_server_has_to_have_its_name(made: Authorities, served: FakeEtcdCluster) -> None:
    at = served.members[0].endpoint
    channels = Channels(credentials(made))
    client = EtcdClient(channels, at)
    with pytest.raises(Unavailable, match="the name of the server at"):
        client.status()
    channels.identify({at: "db-0"})
    assert client.status().member_id
    channels.identify({at: "db-1"})
    with pytest.raises(Unavailable, match="Hostname Verification"):
        client.status()
    channels.identify({at: "db-0"})
    assert client.status().member_id
    channels.retain([])
    with pytest.raises(Unavailable, match="not known"):
        client.status()
    channels.close()


def test_only_the_cluster_of_the_credentials_is_called(made: Authorities, served: FakeEtcdCluster) -> None:
    other = new_authorities(CLUSTER, now(), "cluster.local")
    at = served.members[0].endpoint
    for given in (credentials(other), credentials(other, made.client.bundle), None):
        channels = Channels(given)
        channels.identify({at: "db-0"})
        with pytest.raises(Unavailable) as refused:
            EtcdClient(channels, at, deadline=3.0).status()
        assert not isinstance(refused.value, Forbidden)
        channels.close()


class Members:
    """Real members with the flags and files of one Secret."""

    def __init__(
        self, binaries: Path, folder: Path, made: Authorities, cluster: DesiredCluster = CLUSTER
    ) -> None:
        self._made, self._files = made, folder / "tls"
        self._files.mkdir()
        self.write()
        flags = tls_pod.options(cluster.secured)
        flags = {name: value.replace(tls_pod.FOLDER, str(self._files)) for name, value in flags.items()}
        self.etcd = RealEtcdCluster(binaries, folder, tls=tuple(f"--{n}={v}" for n, v in flags.items()))
        self.channels = Channels(credentials(made))

    def write(self) -> None:
        names = tls.member_names(CLUSTER, ("db-0",), "cluster.local")
        body = tls.secret(CLUSTER, tls.leafs(CLUSTER, self._made, "db-0", names), "db-0", now())
        for name, text in body["data"].items():
            (self._files / name).write_bytes(base64.b64decode(text))

    def start(self, *names: str) -> None:
        peers = {name: f"https://{free_address()}" for name in names}
        for name, peer_url in peers.items():
            self.etcd.start(name, peer_url, peers, state="new")
        eventually(lambda: all(self.client(name).has_quorum(deadline=1.0) for name in names))

    def client(self, name: str) -> EtcdClient:
        at = self.etcd.endpoint(name)
        self.channels.identify({at: "db-0.ns.svc"})
        return EtcdClient(self.channels, at)

    def serial(self, name: str) -> str:
        """What the member presents at a handshake."""
        host, port = self.etcd.endpoint(name).split(":")
        return ssl.get_server_certificate((host, int(port)))

    def close(self) -> None:
        self.channels.close()
        self.etcd.close()


@pytest.fixture
def members(binaries: Path, tmp_path: Path, made: Authorities) -> Iterator[Members]:
    running = Members(binaries, tmp_path, made)
    yield running
    running.close()


def added(leader: EtcdClient, url: str) -> EtcdMember:
    """Once the members have been connected for 5 s."""
    again = retry_if_exception_type(UnhealthyCluster)
    waits = Retrying(retry=again, stop=stop_after_delay(30.0), wait=wait_fixed(0.2), reraise=True)
    return waits(lambda: leader.member_add((url,), learner=True))


def test_members_form_a_cluster_and_grow(members: Members) -> None:
    members.start("a", "b", "c")
    leader = next(
        n for n in "abc" if members.client(n).status().member_id == members.client(n).status().leader
    )
    url = f"https://{free_address()}"
    learner = added(members.client(leader), url)
    members.etcd.join("d", url)
    eventually(lambda: members.client(leader).member_promote(learner.id))
    eventually(lambda: members.client("d").has_quorum(deadline=1.0))


class Supplied:
    """Real members with one certificate of a user for all peers."""

    def __init__(self, binaries: Path, folder: Path, environment: Mapping[str, str]) -> None:
        secured = MemberTls(peer=True, peer_secret=UserSecret(name="own"))
        issuer = Issuer(now())
        pair = issuer.leaf("*.db-peer.ns.svc", addresses=(ADDRESS,))
        for name, content in zip(
            tls_pod.PEER_FILES.all, (pair.certificate, pair.key, issuer.pem), strict=True
        ):
            (folder / name).write_bytes(content)
        flags = [
            f"--{n}={v.replace(tls_pod.FOLDER, str(folder))}" for n, v in tls_pod.options(secured).items()
        ]
        self.etcd = RealEtcdCluster(binaries, folder, peer_tls=tuple(flags), environment=environment)
        self.channels = Channels()
        peers = {name: f"https://{free_address()}" for name in "ab"}
        for name, peer_url in peers.items():
            self.etcd.start(name, peer_url, peers, state="new")

    def has_quorum(self) -> bool:
        return EtcdClient(self.channels, self.etcd.endpoint("a")).has_quorum(deadline=1.0)

    def close(self) -> None:
        self.channels.close()
        self.etcd.close()


def test_members_with_one_certificate_for_all_accept_each_other(binaries: Path, tmp_path: Path) -> None:
    """The address from which they dial is in no name of it: etcd is told not to compare them."""
    version = binaries.name.removeprefix("etcd-")
    named = tls_pod.name_options(MemberTls(peer=True, peer_secret=UserSecret(name="own")), version)
    environment = {f"ETCD_{name.upper().replace('-', '_')}": value for name, value in named.items()}
    running = Supplied(binaries, tmp_path, environment)
    try:
        eventually(running.has_quorum)
    finally:
        running.close()


def test_without_that_they_refuse_each_other(tmp_path: Path) -> None:
    running = Supplied(programs("3.6.16"), tmp_path, {})
    try:
        eventually(lambda: "tls" in running.etcd.log("a") or "rejected" in running.etcd.log("a"))
        assert not running.has_quorum()
    finally:
        running.close()


def test_a_leaf_that_is_replaced_is_presented_without_a_restart(members: Members) -> None:
    members.start("a")
    status, before = members.client("a").status(), members.serial("a")
    members.write()
    assert members.serial("a") != before
    assert members.client("a").status().member_id == status.member_id
    members.etcd.kill("a")
    members.etcd.restart("a")
    eventually(lambda: members.client("a").has_quorum(deadline=1.0))


def test_who_has_no_certificate_of_the_cluster_gets_nothing(members: Members, made: Authorities) -> None:
    members.start("a")
    other = new_authorities(CLUSTER, now(), "cluster.local")
    peers = replace(made, client=made.peer)
    bare = replace(credentials(made), certificate=None, key=None)
    for given in (
        bare,
        credentials(other, made.client.bundle),
        credentials(peers, made.client.bundle),
    ):
        channels = Channels(given)
        channels.identify({members.etcd.endpoint("a"): "db-0"})
        with pytest.raises(Unavailable):
            EtcdClient(channels, members.etcd.endpoint("a"), deadline=3.0).status()
        channels.close()


def settings(**client: Any) -> DesiredCluster:
    """A cluster with such settings for clients."""
    return ephemeral(tls=Tls(peer=PeerTls(auto=Auto()), client=ClientTls(auto=Auto(), **client)))


def test_members_that_ask_for_no_certificate_serve_who_has_one_and_who_has_none(
    binaries: Path, tmp_path: Path, made: Authorities
) -> None:
    with closing(Members(binaries, tmp_path, made, settings(client_cert_auth=False))) as members:
        members.start("a")
        status = members.client("a").status()
        with closing(Channels(replace(credentials(made), certificate=None, key=None))) as channels:
            channels.identify({members.etcd.endpoint("a"): "db-0"})
            assert EtcdClient(channels, members.etcd.endpoint("a")).status().member_id == status.member_id


CIPHERS: dict[CipherSuite, str] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
"""OpenSSL's names of those that a member can have with a certificate of the operator."""


def agreed(members: Members, cipher: str) -> str:
    """The cipher of a connection with TLS 1.2, if the client offers only this one; empty if it is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(cipher)
    host, port = members.etcd.endpoint("a").split(":")
    with socket.create_connection((host, int(port)), 5.0) as plain:
        try:
            with context.wrap_socket(plain) as secured:
                return (secured.cipher() or ("",))[0]
        except ssl.SSLError:
            return ""


def test_members_have_the_cipher_suites_that_are_chosen(
    binaries: Path, tmp_path: Path, made: Authorities
) -> None:
    """The operator connects with TLS 1.3, which has others."""
    chosen = tuple(CIPHERS)[:2]
    cluster = settings(client_cert_auth=False, cipher_suites=chosen)
    with closing(Members(binaries, tmp_path, made, cluster)) as members:
        members.start("a")
        assert members.client("a").status().member_id
        for suite, cipher in CIPHERS.items():
            assert agreed(members, cipher) == (cipher if suite in chosen else "")


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ({"cipher_suites": tuple(CIPHERS)[1:]}, "AES_128_GCM_SHA256"),
        ({"cipher_suites": tuple(CIPHERS), "min_version": "TLS1.3"}, "cipher suites cannot be configured"),
    ],
)
def test_etcd_does_not_start_with_cipher_suites_that_are_refused(
    binaries: Path, tmp_path: Path, made: Authorities, refused: dict[str, Any], told: str
) -> None:
    with closing(Members(binaries, tmp_path, made, settings(**refused))) as members:
        url = f"https://{free_address()}"
        members.etcd.start("a", url, {"a": url}, state="new")
        eventually(lambda: told in members.etcd.log("a"))


def test_who_has_the_ca_gets_in_although_all_certificates_are_lost(
    members: Members, made: Authorities, tmp_path: Path
) -> None:
    """With the commands of the guide."""
    members.start("a")
    at = members.etcd.endpoint("a")
    members.client("a")
    state = AuthSwitch(wanted=True, is_enabled=False, requires_certificates=True, root_roles=None)
    switch(AuthClient(members.channels, at), state, lambda _: None)
    (tmp_path / "client-issuer.crt").write_bytes(made.client.issuer.certificate)
    (tmp_path / "client-issuer.key").write_bytes(made.client.issuer.key)
    commands = [line for line in GUIDE.read_text().splitlines() if line.startswith("    openssl ")]
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    found = {name: (tmp_path / name).read_bytes() for name in ("root.crt", "root.key")}
    given = TlsCredentials(
        ca=made.client.issuer.certificate,
        certificate=found["root.crt"],
        key=found["root.key"],
        server_name="localhost",
    )
    channels = Channels(given)
    assert AuthClient(channels, at).users() == ("root",)
    AuthClient(channels, at).auth_disable()
    assert not AuthClient(channels, at).auth_status().is_enabled
    channels.close()
