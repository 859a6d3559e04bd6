"""What we rely on, shown on real etcd of every supported version."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trustme
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from etcd_operator.errors import Unavailable
from etcd_operator.etcd import errors, methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.probe import Answered, NoAnswer, Probe, Refused, probe
from etcd_operator.etcd.values import Alarm, AlarmKind
from unit.etcd.real import RealEtcdCluster, free_address
from unit.etcd.support import eventually

pytestmark = pytest.mark.etcd

T = TypeVar("T")


def ready(cluster: RealEtcdCluster, channels: Channels) -> None:
    """Wait until every member answers and quorum is proven."""

    def all_answer() -> bool:
        result = probe(channels, cluster.endpoints)
        return result.quorum is True and all(
            isinstance(answer, Answered) for answer in result.replies.values()
        )

    eventually(all_answer)


def insisting(change: Callable[[], T]) -> T:
    """The outcome of a change of members, asked for again while it is unknown, as the next pass does.

    raft drops such a change without a word as long as it has not noted the one before as applied, which may
    be shortly after etcd has acknowledged that: the caller learns of it from the deadline only.
    """
    again = retry_if_exception_type(errors.Timeout)
    return Retrying(retry=again, stop=stop_after_attempt(5), reraise=True)(change)


def test_a_cluster_grows_by_a_learner_and_shrinks_again(real: RealEtcdCluster, channels: Channels) -> None:
    real.found("m0")
    ready(real, channels)
    first = EtcdClient(channels, real.endpoint("m0"))
    first.put(b"key", b"value")

    peer_url = f"http://{free_address()}"
    learner = first.member_add((peer_url,), learner=True)
    with pytest.raises(errors.NotInSync):
        first.member_promote(learner.id)
    with pytest.raises(errors.TooManyLearners):
        insisting(lambda: first.member_add((f"http://{free_address()}",), learner=True))
    with pytest.raises(errors.PeerURLExists):
        insisting(lambda: first.member_add((peer_url,), learner=True))

    real.join("m1", peer_url)
    second = EtcdClient(channels, real.endpoint("m1"))
    eventually(lambda: second.status().is_learner)
    with pytest.raises(errors.NotForLearner):
        second.member_list(linearizable=False)
    assert not second.has_quorum(deadline=1.0)
    answer = probe(channels, real.endpoints).replies[real.endpoint("m1")]
    assert isinstance(answer, Answered)
    assert answer.members is None

    eventually(lambda: first.member_promote(learner.id))
    assert insisting(lambda: first.member_promote(learner.id)) is False
    ready(real, channels)
    assert second.get(b"key") is not None

    with pytest.raises(errors.NotLeader):
        second.move_leader(learner.id)
    first.move_leader(learner.id)
    assert second.status().is_leader
    revision = first.status().revision
    assert first.hash_kv(revision).hash == second.hash_kv(revision).hash

    # A voter that young may not be removed, nor one be added; a learner may go at any time.
    with pytest.raises(errors.UnhealthyCluster):
        second.member_remove(first.status().member_id)
    with pytest.raises(errors.UnhealthyCluster):
        second.member_add((f"http://{free_address()}",), learner=True)


def test_removing_a_member_twice_is_success(real: RealEtcdCluster, channels: Channels) -> None:
    real.found("m0")
    ready(real, channels)
    client = EtcdClient(channels, real.endpoint("m0"))
    peer_url = f"http://{free_address()}"
    learner = client.member_add((peer_url,), learner=True)
    insisting(lambda: client.member_remove(learner.id))
    assert learner.id not in {member.id for member in client.member_list(linearizable=True).members}
    assert insisting(lambda: client.member_remove(learner.id)) is False


def test_a_snapshot_is_whole_and_a_status_is_full(
    real: RealEtcdCluster, channels: Channels, binaries: Path
) -> None:
    real.found("m0")
    ready(real, channels)
    client = EtcdClient(channels, real.endpoint("m0"))
    client.put(b"big", bytes(300_000))
    chunks = list(client.snapshot(deadline=10))
    assert max(map(len, chunks)) <= 32 * 1024
    assert len(b"".join(chunks)) % 512 == 32
    client.defragment(deadline=10)
    assert client.alarms() == ()
    status = client.status()
    assert f"etcd-{status.version}" == binaries.name
    assert status.is_leader
    assert status.raft_applied_index <= status.raft_index
    assert 0 < status.db_size_in_use <= status.db_size
    assert status.cluster_id == client.member_list(linearizable=True).cluster_id


def test_the_probe_keeps_its_deadline_when_members_stop(real: RealEtcdCluster, channels: Channels) -> None:
    real.found("m0", "m1", "m2")
    ready(real, channels)
    survivor = EtcdClient(channels, real.endpoint("m0"), deadline=1.0)
    with pytest.raises(errors.UnhealthyCluster):
        survivor.member_add((f"http://{free_address()}",), learner=True)

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
    assert not survivor.has_quorum(deadline=0.3)
    with pytest.raises(Unavailable):
        survivor.member_list(linearizable=True)
    assert survivor.get(b"any", serializable=True) is None

    real.kill("m2")
    real.thaw("m1")
    eventually(lambda: probe(channels, real.endpoints).quorum is True)


def timed(channels: Channels, cluster: RealEtcdCluster) -> Probe:
    """A probe of 1 s that has kept to it, as far as a busy machine can."""
    begin = time.monotonic()
    result = probe(channels, cluster.endpoints, deadline=1.0)
    assert time.monotonic() - begin < 3.0
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
    real.found("m0", "m1")
    ready(real, channels)
    endpoint = real.endpoint("m0")
    real.ctl("user", "add", "root:secret", endpoint=endpoint)
    real.ctl("user", "grant-role", "root", "root", endpoint=endpoint)
    real.ctl("auth", "enable", endpoint=endpoint)
    anonymous = EtcdClient(channels, endpoint)
    with pytest.raises(errors.AuthRequired):
        anonymous.put(b"a", b"b")
    with pytest.raises(errors.AuthRequired):
        anonymous.authenticate("root", "wrong")
    with pytest.raises(errors.AuthRequired):
        EtcdClient(channels, endpoint, token="stale").put(b"a", b"b")
    token = anonymous.authenticate("root", "secret")
    EtcdClient(channels, endpoint, token=token).put(b"a", b"b")

    eventually(lambda: answers_of(probe(channels, real.endpoints, token=token)) == {Answered})
    eventually(lambda: proven_by_refusals(probe(channels, real.endpoints)))
    eventually(lambda: serving(probe(channels, real.endpoints)) == set(real.endpoints))
    assert anonymous.has_quorum(deadline=10.0)
    real.freeze("m1")
    assert not anonymous.has_quorum(deadline=0.5)
    result = timed(channels, real)
    assert result.quorum is False
    assert isinstance(result.replies[endpoint], Refused)
    assert serving(result) == set()


def test_a_learner_that_wants_a_user_does_not_serve(real: RealEtcdCluster, channels: Channels) -> None:
    real.found("m0")
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


def test_an_alarm_of_corrupt_data_stops_writes_and_outlives_the_member(
    real: RealEtcdCluster, channels: Channels
) -> None:
    real.found("m0", "m1", "m2")
    ready(real, channels)
    first = EtcdClient(channels, real.endpoint("m0"))
    last = EtcdClient(channels, real.endpoint("m2")).status().member_id
    revision = first.put(b"key", b"value")
    alarm = Alarm(member_id=last, kind=AlarmKind.CORRUPT)
    raise_alarm(channels, real.endpoint("m0"), last)
    raise_alarm(channels, real.endpoint("m0"), 0)

    everybody = Alarm(member_id=0, kind=AlarmKind.CORRUPT)
    clients = [EtcdClient(channels, endpoint) for endpoint in real.endpoints]
    eventually(lambda: all(set(client.status().alarms) == {alarm, everybody} for client in clients))
    first.disarm(everybody)
    assert first.alarms() == (alarm,)
    with pytest.raises(errors.Corrupt):
        first.put(b"key", b"other")
    assert first.has_quorum(deadline=5.0)
    assert len({client.hash_kv(revision).hash for client in clients}) == 1

    def is_out() -> bool:
        first.member_remove(last)  # refused until the others have been connected for 5 s
        return last not in {member.id for member in first.member_list(linearizable=True).members}

    eventually(is_out)
    # If it led, the others elect another first, and what is proposed meanwhile is dropped.
    eventually(lambda: first.alarms() == (alarm,))
    with pytest.raises(errors.Corrupt):
        first.put(b"key", b"other")
    first.disarm(alarm)
    assert first.put(b"key", b"other") == revision + 1


def raise_alarm(channels: Channels, endpoint: str, member_id: int) -> None:
    """As the leader of an etcd that checks for corruption does."""
    request = pb.AlarmRequest(action=pb.AlarmRequest.ACTIVATE, memberID=member_id, alarm=pb.AlarmType.CORRUPT)
    channels.connection(endpoint).unary(methods.ALARM_DISARM)(request, timeout=5.0)


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
        cluster.found("m0")
        ready(cluster, channels)
        client = EtcdClient(channels, cluster.endpoint("m0"), deadline=2.0)
        assert client.status().is_leader
        channels.renew(TlsCredentials(ca=trusted.ca, server_name=trusted.server_name))
        with pytest.raises(Unavailable):
            client.status()
        channels.renew(TlsCredentials(ca=trusted.ca, certificate=trusted.certificate, key=trusted.key))
        with pytest.raises(Unavailable):
            client.status()
    finally:
        channels.close()
        cluster.close()


def test_empty_entries_grow_the_log_and_change_nothing(real: RealEtcdCluster, channels: Channels) -> None:
    real.found("m0")
    ready(real, channels)
    client = EtcdClient(channels, real.endpoint("m0"))
    client.put(b"key", b"value")
    before = client.status()

    client.append_nothing(250, within=20.0)

    after = client.status()
    assert after.raft_index - before.raft_index >= 250
    assert after.revision == before.revision

    client.append_nothing(250, within=0.0)
    assert client.status().raft_index - after.raft_index < 10
