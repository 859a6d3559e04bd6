"""What answers without a quorum, and what a process reports that has not found one yet."""

from contextlib import suppress

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.errors import Throttled, Unavailable
from unit.etcd.contract.harness import Subject, new_peer_url


def test_a_survivor_reports_its_list_and_data_without_a_quorum(subject: Subject) -> None:
    subject.bootstrap("m0", "m1", "m2")
    survivor = subject.client("m0")
    revision = survivor.put(b"key", b"value")
    subject.kill("m1")
    subject.freeze("m2")
    subject.until(lambda: not survivor.status().leader)

    assert not survivor.has_quorum(deadline=0.3)
    with pytest.raises(Unavailable):
        subject.client("m0", deadline=1.0).member_list(linearizable=True)
    assert len(survivor.member_list(linearizable=False).members) == 3
    found = survivor.get(b"key", serializable=True)
    assert found is not None
    assert (found.value, survivor.status().revision) == (b"value", revision)
    status = survivor.status()
    assert status.errors == status.other_errors == ("etcdserver: no leader",)
    assert survivor.hash_kv(revision).hash == survivor.hash_kv().hash
    assert b"".join(survivor.snapshot(stall=10.0))

    subject.thaw("m2")
    subject.until(lambda: survivor.has_quorum(deadline=1.0))


def test_a_frozen_member_accepts_connections_and_answers_nothing(subject: Subject) -> None:
    subject.bootstrap("m0", "m1", "m2")
    subject.freeze("m2")
    with pytest.raises(Unavailable):
        subject.client("m2", deadline=0.3).status()
    subject.until(lambda: subject.client("m0").has_quorum(deadline=1.0))


@pytest.mark.exhaustive
def test_a_member_that_was_away_for_many_entries_accepts_requests_at_the_next_one(subject: Subject) -> None:
    """From 3.6 on it got them as a raft snapshot, and may refuse until then (decision 036)."""
    subject.bootstrap("m0", "m1", "m2")
    away = next(name for name in ("m1", "m2") if not subject.client(name).status().is_leader)
    subject.freeze(away)
    voter, member = subject.client("m0"), subject.client(away)
    subject.until(lambda: voter.has_quorum(deadline=1.0))
    voter.append_nothing(8000, within=120.0)
    written = voter.status().raft_index
    subject.thaw(away)
    subject.until(lambda: member.status().raft_index >= written)

    subject.until(lambda: is_refusing(member) or member.status().raft_applied_index >= written)

    def accepts() -> bool:
        voter.append_nothing(1, within=1.0)
        with suppress(Unavailable):  # a busy machine
            return member.alarms() == ()
        return False

    subject.until(accepts)
    status = member.status()
    assert status.raft_index - status.raft_applied_index < 100


def is_refusing(member: KeyClient) -> bool:
    status = member.status()
    try:
        member.alarms()
    except Throttled:
        return status.raft_index - status.raft_applied_index > 5000
    return False


def test_an_initial_member_alone_answers_nothing_but_that_it_has_seen_no_leader(subject: Subject) -> None:
    peers = {name: new_peer_url() for name in ("m0", "m1", "m2")}
    subject.start("m0", peers["m0"], peers, state="new")
    subject.until(lambda: subject.page("m0").leaders_seen is not None)
    with pytest.raises(Unavailable):
        subject.client("m0", deadline=0.5).status()
    assert subject.page("m0").leaders_seen == 0

    subject.start("m1", peers["m1"], peers, state="new")
    subject.until(lambda: subject.client("m0").has_quorum(deadline=1.0))
    assert subject.page("m0").leaders_seen != 0


def test_a_member_that_restarts_without_a_quorum_answers_nothing(subject: Subject) -> None:
    subject.bootstrap("m0", "m1")
    subject.kill("m0")
    subject.kill("m1")
    subject.restart("m0")
    subject.until(lambda: subject.page("m0").leaders_seen == 0)
    with pytest.raises(Unavailable):
        subject.client("m0", deadline=0.5).status()
    subject.restart("m1")
    subject.until(lambda: subject.client("m0").has_quorum(deadline=1.0))
