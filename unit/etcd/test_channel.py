"""The promises of the connections of one cluster."""

import socket

import pytest

from etcd_operator.controllers.shared.manifests.urls import endpoint as endpoint_of
from etcd_operator.errors import Unavailable
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from unit.etcd.support import native_threads, open_files
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.waiting import eventually


@pytest.fixture
def endpoint(fake: FakeEtcdCluster) -> str:
    fake.bootstrap({"m0": "http://m0:2380"})
    return fake.start("m0", peer_url="http://m0:2380").endpoint


def test_a_connection_is_kept_while_it_works(endpoint: str, channels: Channels) -> None:
    first = channels.connection(endpoint)
    EtcdClient(channels, endpoint).status()
    assert channels.connection(endpoint) is first


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_member_at_an_ipv6_address_answers(fake: FakeEtcdCluster, channels: Channels) -> None:
    fake.bootstrap({"m0": "http://m0:2380"})
    port = fake.start("m0", peer_url="http://m0:2380", address="[::1]:0").endpoint.rpartition(":")[2]
    assert EtcdClient(channels, endpoint_of("::1", int(port))).status().version


def test_a_connection_is_dropped_after_unavailable(
    fake: FakeEtcdCluster, endpoint: str, channels: Channels
) -> None:
    first = channels.connection(endpoint)
    fake.stop("m0")
    with pytest.raises(Unavailable):
        EtcdClient(channels, endpoint).status()
    assert channels.connection(endpoint) is not first


def test_discarding_an_old_connection_leaves_the_newer_one(endpoint: str, channels: Channels) -> None:
    old = channels.connection(endpoint)
    channels.discard(old)
    new = channels.connection(endpoint)
    channels.discard(old)
    assert channels.connection(endpoint) is new


def test_only_the_endpoints_to_be_retained_stay_open(channels: Channels) -> None:
    kept, gone = channels.connection("127.0.0.1:1"), channels.connection("127.0.0.1:2")
    channels.retain(["127.0.0.1:1"])
    assert channels.connection("127.0.0.1:1") is kept
    assert channels.connection("127.0.0.1:2") is not gone
    with pytest.raises(ValueError, match="closed channel"):
        gone.unary(methods.STATUS)(pb.StatusRequest(), timeout=1.0)


def test_a_call_over_a_closed_connection_is_unavailable(endpoint: str, channels: Channels) -> None:
    channels.connection(endpoint).close()
    with pytest.raises(Unavailable, match="closed channel"):
        EtcdClient(channels, endpoint).status()


def test_closing_is_for_good(endpoint: str, channels: Channels) -> None:
    channels.close()
    with pytest.raises(Unavailable):
        EtcdClient(channels, endpoint).status()


def test_a_proxy_in_the_environment_is_not_used(
    endpoint: str, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("no_grpc_proxy", "")
    assert EtcdClient(channels, endpoint, deadline=30.0).status().member_id


def test_a_private_key_is_not_shown() -> None:
    assert "secret" not in repr(TlsCredentials(ca=b"ca", certificate=b"cert", key=b"secret"))


def test_sixty_endpoints_need_no_thread_each_and_leave_no_files(channels: Channels) -> None:
    files = open_files()
    fakes = [FakeEtcdCluster() for _ in range(20)]
    try:
        endpoints = []
        for fake in fakes:
            names = ("m0", "m1", "m2")
            fake.bootstrap({name: f"http://{name}:2380" for name in names})
            endpoints += [fake.start(name, peer_url=f"http://{name}:2380").endpoint for name in names]
        # The scripted servers live in this process: let them have their threads first.
        ask_all(channels, endpoints)
        channels.retain(())
        eventually(lambda: open_files() < files + 2 * len(endpoints))
        files, threads = open_files(), native_threads()
        for _ in range(3):
            ask_all(channels, endpoints)
        assert open_files() >= files + len(endpoints)
        assert native_threads() < threads + len(endpoints) // 2  # gRPC has some of its own, more under load
        channels.retain(())
        eventually(lambda: open_files() <= files + 2)
    finally:
        for fake in fakes:
            fake.close()


def ask_all(channels: Channels, endpoints: list[str]) -> None:
    for endpoint in endpoints:
        EtcdClient(channels, endpoint).status()
