"""The client's promises, against the scripted etcd."""

import hashlib
import threading

import grpc
import pytest

from e2e.support.keys import KeyClient
from etcd_operator.errors import AlreadyExists, Conflict, Unavailable
from etcd_operator.etcd import errors
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.values import Alarm, AlarmKind
from etcd_operator.formats import hex_id
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.refusals import Refusal


@pytest.fixture
def client(fake: FakeEtcdCluster, channels: Channels) -> EtcdClient:
    """A client of the first of three founded members, all running."""
    names = ("m0", "m1", "m2")
    fake.bootstrap({name: f"http://{name}:2380" for name in names})
    endpoints = [fake.start(name, peer_url=f"http://{name}:2380").endpoint for name in names]
    return EtcdClient(channels, endpoints[0], deadline=30.0)


def test_removing_twice_is_success_with_a_result_of_its_own(
    fake: FakeEtcdCluster, client: EtcdClient
) -> None:
    gone = hex_id(fake.member("m2").id)
    assert client.member_remove(gone) is True
    assert client.member_remove(gone) is False


def test_promoting_twice_is_success_with_a_result_of_its_own(
    fake: FakeEtcdCluster, client: EtcdClient
) -> None:
    added = client.member_add(("http://m3:2380",), learner=True)
    assert added.name == ""
    with pytest.raises(errors.NotInSync):
        client.member_promote(added.id)
    fake.start("m3", peer_url="http://m3:2380")
    assert client.member_promote(added.id) is True
    assert client.member_promote(added.id) is False


def test_a_second_add_of_one_peer_url_is_distinct_from_other_refusals(client: EtcdClient) -> None:
    client.member_add(("http://m3:2380",), learner=True)
    with pytest.raises(AlreadyExists):
        client.member_add(("http://m3:2380",), learner=True)
    with pytest.raises(Conflict, match="too many learner members"):
        client.member_add(("http://m4:2380",), learner=True)


def test_an_add_within_the_second_of_a_removal_is_a_conflict(
    fake: FakeEtcdCluster, client: EtcdClient
) -> None:
    def refuse(_method: str, _applied: bool) -> None:
        raise Refusal(grpc.StatusCode.NOT_FOUND, "etcdserver: member not found")

    fake.on_write = refuse
    with pytest.raises(Conflict, match="within this second"):
        client.member_add(("http://m3:2380",), learner=True)


def test_a_lost_reply_is_in_doubt_and_not_repeated(fake: FakeEtcdCluster, client: EtcdClient) -> None:
    def lose(_method: str, applied: bool) -> None:
        if applied:
            raise Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    fake.on_write = lose
    with pytest.raises(Unavailable) as caught:
        client.member_add(("http://m3:2380",), learner=True)
    assert caught.value.maybe_applied
    assert fake.writes == ["MemberAdd"]
    assert len(fake.members) == 4


def test_a_frozen_member_ends_in_a_timeout_that_is_in_doubt_for_a_write(
    fake: FakeEtcdCluster, client: EtcdClient, channels: Channels
) -> None:
    fake.freeze("m0")
    hasty = EtcdClient(channels, fake.member("m0").endpoint, deadline=1.0)
    with pytest.raises(errors.Timeout) as read:
        hasty.status()
    with pytest.raises(errors.Timeout) as write:
        hasty.member_remove("1")
    assert (read.value.maybe_applied, write.value.maybe_applied) == (False, True)


def test_quorum_is_proven_by_a_read_and_not_by_status(fake: FakeEtcdCluster, client: EtcdClient) -> None:
    assert client.has_quorum(deadline=30.0)
    fake.stop("m1")
    fake.stop("m2")
    assert not client.has_quorum(deadline=1.0)
    assert client.status().errors == ("etcdserver: no leader",)
    assert len(client.member_list(linearizable=False).members) == 3


def test_a_learner_proves_no_quorum(fake: FakeEtcdCluster, client: EtcdClient, channels: Channels) -> None:
    client.member_add(("http://m3:2380",), learner=True)
    learner = EtcdClient(channels, fake.start("m3", peer_url="http://m3:2380").endpoint)
    assert not learner.has_quorum(deadline=1.0)
    with pytest.raises(errors.NotForLearner):
        learner.member_list(linearizable=False)


def test_a_token_opens_what_anonymous_callers_are_refused(
    fake: FakeEtcdCluster, client: EtcdClient, channels: Channels
) -> None:
    fake.auth.require_root("secret")
    endpoint = fake.member("m0").endpoint
    with pytest.raises(errors.AuthRequired):
        KeyClient(channels, endpoint).put(b"a", b"b")
    assert client.has_quorum(deadline=30.0)
    with pytest.raises(errors.AuthRequired):
        client.authenticate("root", "wrong")
    token = client.authenticate("root", "secret")
    known = KeyClient(channels, endpoint, token=token)
    assert known.put(b"a", b"b") == 2
    assert known.get(b"a") is not None


def test_a_snapshot_comes_in_chunks_whose_hash_fits(fake: FakeEtcdCluster, client: EtcdClient) -> None:
    with fake.changed:
        fake.put(b"big", bytes(200_000))
    chunks = list(client.snapshot(stall=3.0))
    assert len(chunks) > 5
    whole = b"".join(chunks)
    assert hashlib.sha256(whole[:-32]).digest() == whole[-32:]


def test_a_snapshot_that_stops_in_the_middle_ends_after_the_limit(
    fake: FakeEtcdCluster, client: EtcdClient
) -> None:
    resume = threading.Event()
    with fake.changed:
        fake.put(b"big", bytes(200_000))
    fake.on_chunk = lambda index: None if index < 3 else _require(resume.wait(30))
    try:
        with pytest.raises(errors.Timeout, match=r"Snapshot at .*: no data for 0.2 s"):
            list(client.snapshot(stall=0.2))
    finally:
        resume.set()


def test_the_time_that_the_caller_takes_does_not_count_as_silence(
    fake: FakeEtcdCluster, client: EtcdClient
) -> None:
    with fake.changed:
        fake.put(b"big", bytes(200_000))
    chunks = client.snapshot(stall=1.5)
    first = next(chunks)
    later = threading.Event()
    timer = threading.Timer(2.0, later.set)
    timer.start()
    later.wait()
    assert len(first + b"".join(chunks)) % 512 == 32


def _require(condition: bool) -> None:
    assert condition


def test_an_alarm_is_listed_until_disarmed(fake: FakeEtcdCluster, client: EtcdClient) -> None:
    alarm = Alarm(member_id=hex_id(fake.member("m1").id), kind=AlarmKind.NOSPACE)
    fake.alarms.add((fake.member("m1").id, alarm.kind.value))
    assert client.alarms() == (alarm,)
    client.disarm(alarm)
    assert client.alarms() == ()


def test_every_call_is_reported(fake: FakeEtcdCluster, client: EtcdClient, channels: Channels) -> None:
    seen: list[tuple[str, str]] = []
    watched = EtcdClient(
        channels, fake.member("m0").endpoint, on_call=lambda name, code, _: seen.append((name, code))
    )
    watched.status()
    watched.member_remove("1")
    list(watched.snapshot(stall=3.0))
    assert seen == [("Status", "OK"), ("MemberRemove", "NOT_FOUND"), ("Snapshot", "OK")]


def test_the_fake_holds_changes_back_for_five_seconds_as_etcd_does(channels: Channels) -> None:
    clock = FakeClock()
    fake = FakeEtcdCluster(clock=clock)
    try:
        fake.bootstrap({"m0": "http://m0:2380", "m1": "http://m1:2380"})
        endpoint = fake.start("m0", peer_url="http://m0:2380").endpoint
        fake.start("m1", peer_url="http://m1:2380")
        client = EtcdClient(channels, endpoint)
        with pytest.raises(errors.UnhealthyCluster):
            client.member_add(("http://m2:2380",), learner=True)
        clock.advance(5.0)
        client.member_add(("http://m2:2380",), learner=True)
    finally:
        fake.close()
