"""Status, snapshots, hashes, alarms and users: what the operator reads of a member's data."""

import hashlib

import pytest

from etcd_operator.errors import RetryableError
from etcd_operator.etcd import errors
from etcd_operator.etcd.values import ANYBODY, Alarm, AlarmKind
from unit.etcd.contract.harness import Subject


def test_a_status_is_full(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.client("m0")
    status = client.status()
    assert status.is_leader
    assert status.errors == ()
    assert 0 < status.raft_applied_index <= status.raft_index
    assert status.db_size > 0
    assert status.cluster_id == client.member_list(linearizable=True).cluster_id
    subject.until(lambda: subject.page("m0").cluster_version == status.version.rpartition(".")[0] + ".0")


def test_a_snapshot_is_whole(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.client("m0")
    client.put(b"big", bytes(300_000))
    chunks = list(client.snapshot(stall=10))
    assert max(map(len, chunks)) <= 32 * 1024
    whole = b"".join(chunks)
    assert hashlib.sha256(whole[:-32]).digest() == whole[-32:]
    assert client.alarms() == ()


def test_members_with_equal_data_have_equal_hashes_at_each_revision(subject: Subject) -> None:
    subject.bootstrap("m0", "m1")
    first, second = subject.client("m0"), subject.client("m1")
    earlier, later = first.put(b"a", b"1"), first.put(b"b", b"2")
    subject.until(lambda: second.status().revision == later)
    assert first.hash_kv(earlier).hash == second.hash_kv(earlier).hash
    assert first.hash_kv(later).hash == second.hash_kv().hash != first.hash_kv(earlier).hash
    with pytest.raises(RetryableError, match="future revision"):
        first.hash_kv(later + 1)


def test_empty_entries_grow_the_log_and_change_nothing(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.client("m0")
    before = client.status()

    client.append_nothing(250, within=20.0)

    after = client.status()
    assert after.raft_index - before.raft_index >= 250
    assert after.revision == before.revision

    client.append_nothing(250, within=0.0)
    assert client.status().raft_index - after.raft_index < 10


def test_an_alarm_of_corrupt_data_stops_writes_and_outlives_the_member(subject: Subject) -> None:
    subject.bootstrap("m0", "m1", "m2")
    clients = [subject.client(name) for name in ("m0", "m1", "m2")]
    first, last = clients[0], clients[2].status().member_id
    revision = first.put(b"key", b"value")
    alarm = Alarm(member_id=last, kind=AlarmKind.CORRUPT)
    subject.raise_corrupt(last, at="m0")
    subject.raise_corrupt(ANYBODY, at="m0")

    everybody = Alarm(member_id=ANYBODY, kind=AlarmKind.CORRUPT)
    subject.until(lambda: all(set(client.status().alarms) == {alarm, everybody} for client in clients))
    assert {client.status().other_errors for client in clients} == {()}
    first.disarm(everybody)
    assert first.alarms() == (alarm,)
    with pytest.raises(errors.Corrupt):
        first.put(b"key", b"other")
    assert first.has_quorum(deadline=30.0)
    assert len({client.hash_kv(revision).hash for client in clients}) == 1

    def is_out() -> bool:
        first.member_remove(last)  # refused until the others have been connected for 5 s
        return last not in {member.id for member in first.member_list(linearizable=True).members}

    subject.until(is_out)
    # If it led, the others elect another first, and what is proposed meanwhile is dropped.
    subject.until(lambda: first.alarms() == (alarm,))
    with pytest.raises(errors.Corrupt):
        first.put(b"key", b"other")
    first.disarm(alarm)
    assert first.put(b"key", b"other") == revision + 1


def test_only_users_are_answered_once_authentication_is_on(subject: Subject) -> None:
    subject.bootstrap("m0", "m1")
    subject.enable_auth("m0", "secret")
    anonymous = subject.client("m0")
    subject.until(lambda: not _may_write(subject))
    with pytest.raises(errors.AuthRequired):
        anonymous.status()
    with pytest.raises(errors.AuthRequired):
        anonymous.authenticate("root", "wrong")
    with pytest.raises(errors.AuthRequired):
        subject.client("m0", token="stale").put(b"a", b"b")
    subject.client("m0", token=anonymous.authenticate("root", "secret")).put(b"a", b"b")
    assert anonymous.has_quorum(deadline=30.0), "a refusal of a linearizable read proves the quorum"
    subject.freeze("m1")
    assert not anonymous.has_quorum(deadline=0.5)


def _may_write(subject: Subject) -> bool:
    try:
        subject.client("m0").put(b"a", b"b")
    except errors.AuthRequired:
        return False
    return True
