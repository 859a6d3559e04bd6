"""The probe and TLS on real etcd of every supported version; etcd itself: unit/etcd/contract."""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.probe import Probe, probe
from etcd_operator.etcd.values import Answered, NoAnswer, Refused
from unit.etcd.real import RealEtcdCluster, free_address
from unit.waiting import eventually

pytestmark = pytest.mark.etcd

MORE_THAN_APPLIED = 8000
"""Entries. etcd refuses requests while 5,000 are not applied; 3.6 and 3.7 send these as a raft snapshot."""


def ready(cluster: RealEtcdCluster, channels: Channels) -> None:
    """Wait until every member answers and quorum is proven."""

    def all_answer() -> bool:
        result = probe(channels, cluster.endpoints)
        return result.quorum is True and all(
            isinstance(answer, Answered) for answer in result.replies.values()
        )

    eventually(all_answer)


def test_the_probe_keeps_its_deadline_when_members_stop(real: RealEtcdCluster, channels: Channels) -> None:
    real.bootstrap("m0", "m1", "m2")
    ready(real, channels)
    real.freeze("m1")
    # The frozen one may have been the leader: until another is elected there is no proof.
    eventually(lambda: timed(channels, real).quorum is True)
    assert isinstance(timed(channels, real).replies[real.endpoint("m1")], NoAnswer)

    real.freeze("m2")
    result = timed(channels, real)
    assert result.quorum is False
    answer = result.replies[real.endpoint("m0")]
    assert isinstance(answer, Answered)
    assert answer.members is not None
    assert len(answer.members) == 3

    real.kill("m2")
    real.thaw("m1")
    eventually(lambda: probe(channels, real.endpoints).quorum is True)


def timed(channels: Channels, cluster: RealEtcdCluster) -> Probe:
    """A probe of 1 s that has kept to it, as far as a busy machine can."""
    begin = time.monotonic()
    result = probe(channels, cluster.endpoints, deadline=1.0)
    assert time.monotonic() - begin < 15.0
    return result


def answers_of(result: Probe) -> set[type]:
    """Which kinds of answers came."""
    return {type(answer) for answer in result.replies.values()}


def serving(result: Probe) -> set[str]:
    """The members that require authentication and proved that they serve."""
    return {at for at, answer in result.replies.items() if isinstance(answer, Refused) and answer.is_serving}


def proven_by_refusals(result: Probe) -> bool:
    """Whether quorum is proven though somebody without a token asked."""
    return result.quorum is True and answers_of(result) <= {Answered, Refused}


def test_a_refused_user_proves_the_quorum_only_while_there_is_one(
    real: RealEtcdCluster, channels: Channels
) -> None:
    real.bootstrap("m0", "m1")
    ready(real, channels)
    endpoint = real.endpoint("m0")
    real.ctl("user", "add", "root:secret", endpoint=endpoint)
    real.ctl("user", "grant-role", "root", "root", endpoint=endpoint)
    real.ctl("auth", "enable", endpoint=endpoint)
    token = EtcdClient(channels, endpoint).authenticate("root", "secret")
    eventually(lambda: answers_of(probe(channels, real.endpoints, token=token)) == {Answered})
    eventually(lambda: proven_by_refusals(probe(channels, real.endpoints)))
    eventually(lambda: serving(probe(channels, real.endpoints)) == set(real.endpoints))
    real.freeze("m1")
    result = timed(channels, real)
    assert result.quorum is False
    assert isinstance(result.replies[endpoint], Refused)
    assert serving(result) == set()


def test_a_learner_that_wants_a_user_does_not_serve(real: RealEtcdCluster, channels: Channels) -> None:
    real.bootstrap("m0")
    ready(real, channels)
    endpoint, peer_url = real.endpoint("m0"), f"http://{free_address()}"
    EtcdClient(channels, endpoint).member_add((peer_url,), learner=True)
    real.join("m1", peer_url)
    learner = EtcdClient(channels, real.endpoint("m1"))
    eventually(lambda: learner.status().is_learner)
    real.ctl("user", "add", "root:secret", endpoint=endpoint)
    real.ctl("user", "grant-role", "root", "root", endpoint=endpoint)
    real.ctl("auth", "enable", endpoint=endpoint)
    eventually(lambda: answers_of(probe(channels, real.endpoints)) == {Refused})
    assert serving(probe(channels, real.endpoints)) == {endpoint}


@pytest.mark.exhaustive
def test_an_entry_lets_a_learner_serve_that_joins_after_many(
    real: RealEtcdCluster, channels: Channels
) -> None:
    """It gets a raft snapshot, and of 3.6 and 3.7 it would wait for another entry for ever (decision 036)."""
    real.bootstrap("m0")
    ready(real, channels)
    voter, peer_url = EtcdClient(channels, real.endpoint("m0")), f"http://{free_address()}"
    voter.append_nothing(MORE_THAN_APPLIED, within=60.0)
    voter.member_add((peer_url,), learner=True)
    real.join("m1", peer_url)
    learner = EtcdClient(channels, real.endpoint("m1"), deadline=0.5)

    def serves() -> bool:
        voter.append_nothing(1, within=1.0)
        return learner.status().is_learner

    eventually(serves, every=0.5)


def test_a_client_certificate_is_shown_and_the_server_name_checked(binaries: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    server = authority.issue_cert("main-client.default.svc")
    user = authority.issue_cert("operator.local", common_name="root")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    server.private_key_pem.write_to_path(tmp_path / "server.key")
    tls = (
        "--client-cert-auth",
        f"--trusted-ca-file={tmp_path / 'ca.pem'}",
        f"--cert-file={tmp_path / 'server.pem'}",
        f"--key-file={tmp_path / 'server.key'}",
    )
    trusted = TlsCredentials(
        ca=authority.cert_pem.bytes(),
        certificate=user.cert_chain_pems[0].bytes(),
        key=user.private_key_pem.bytes(),
        server_name="main-client.default.svc",
    )
    cluster, channels = RealEtcdCluster(binaries, tmp_path, tls=tls), Channels(trusted)
    try:
        cluster.bootstrap("m0")
        ready(cluster, channels)
        client = EtcdClient(channels, cluster.endpoint("m0"), deadline=30.0)
        assert client.status().is_leader
        for lacking in (replace(trusted, certificate=None, key=None), replace(trusted, server_name=None)):
            with closing(Channels(lacking)) as others, pytest.raises(Unavailable):
                EtcdClient(others, cluster.endpoint("m0"), deadline=2.0).status()
    finally:
        channels.close()
        cluster.close()
