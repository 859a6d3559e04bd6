"""Changes of members: learners first, one at a time, and what is refused with which error."""

import pytest

from etcd_operator.errors import AlreadyExists, Conflict, RetryableError
from etcd_operator.etcd import errors
from unit.etcd.contract.harness import Subject, insisting, new_peer_url


def grown(subject: Subject) -> str:
    """A cluster of one has a learner that runs, m1; its ID."""
    subject.bootstrap("m0")
    peer_url = new_peer_url()
    learner = subject.client("m0").member_add((peer_url,), learner=True)
    subject.join("m1", peer_url)
    subject.until(lambda: subject.client("m1").status().is_learner)
    return learner.id


def test_one_learner_at_a_time_is_added_and_no_peer_url_twice(subject: Subject) -> None:
    subject.bootstrap("m0")
    client, peer_url = subject.client("m0"), new_peer_url()
    learner = client.member_add((peer_url,), learner=True)
    assert (learner.is_learner, learner.name, learner.peer_urls) == (True, "", (peer_url,))
    with pytest.raises(Conflict, match="too many learner members"):
        insisting(lambda: client.member_add((new_peer_url(),), learner=True))
    with pytest.raises(AlreadyExists, match="already exist"):
        insisting(lambda: client.member_add((peer_url,), learner=True))
    assert learner in client.member_list(linearizable=True).members


def test_a_peer_url_is_replaced_unless_another_member_has_it(subject: Subject) -> None:
    learner = grown(subject)
    client, moved = subject.client("m0"), new_peer_url()
    voter = next(each for each in client.member_list(linearizable=True).members if each.id != learner)
    with pytest.raises(AlreadyExists, match="already exist"):
        insisting(lambda: client.member_update(learner, voter.peer_urls))
    insisting(lambda: client.member_update(learner, (moved,)))
    found = {each.id: each for each in client.member_list(linearizable=True).members}
    assert (found[learner].peer_urls, found[learner].is_learner) == ((moved,), True)
    with pytest.raises(errors.MemberNotFound):
        insisting(lambda: client.member_update("1", (new_peer_url(),)))


def test_a_learner_that_was_never_started_is_not_promoted(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.client("m0")
    learner = client.member_add((new_peer_url(),), learner=True)
    with pytest.raises(errors.NotInSync):
        client.member_promote(learner.id)
    with pytest.raises(errors.MemberNotFound):
        insisting(lambda: client.member_promote("1"))


def test_a_learner_that_runs_is_promoted_once_and_leads_when_it_is_made_to(subject: Subject) -> None:
    learner = grown(subject)
    first, second = subject.client("m0"), subject.client("m1")
    subject.until(lambda: first.member_promote(learner))
    subject.until(lambda: second.has_quorum(deadline=1.0))
    # For a moment the leader takes the new voter for one that is behind.
    subject.until(lambda: first.member_promote(learner) is False)

    with pytest.raises(RetryableError, match="not leader"):
        second.move_leader(learner)
    first.move_leader(learner)
    assert second.status().is_leader


def test_a_learner_reports_its_status_and_data_but_no_list_and_no_quorum(subject: Subject) -> None:
    grown(subject)
    subject.client("m0").put(b"key", b"value")
    learner = subject.client("m1")
    with pytest.raises(errors.NotForLearner):
        learner.member_list(linearizable=False)
    with pytest.raises(errors.NotForLearner):
        learner.get(b"key")
    assert not learner.has_quorum(deadline=1.0)
    subject.until(lambda: learner.get(b"key", serializable=True) is not None)
    assert b"".join(learner.snapshot(stall=10.0))


def test_a_learner_is_removed_at_any_time_and_a_second_removal_changes_nothing(subject: Subject) -> None:
    learner = grown(subject)
    client = subject.client("m0")
    assert insisting(lambda: client.member_remove(learner)) is True
    assert learner not in {member.id for member in client.member_list(linearizable=True).members}
    assert insisting(lambda: client.member_remove(learner)) is False


def test_members_are_not_changed_before_the_voters_have_been_connected_for_five_seconds(
    subject: Subject,
) -> None:
    """One of them has just been restarted: how long the machine took to start them all does not matter."""
    subject.bootstrap("m0", "m1", "m2")
    client, ids = subject.client("m0"), {n: subject.client(n).status().member_id for n in ("m1", "m2")}
    restarted, other = ("m2", "m1") if client.status().leader == ids["m1"] else ("m1", "m2")
    last = ids[other]
    subject.kill(restarted)
    subject.restart(restarted)
    with pytest.raises(errors.UnhealthyCluster):
        client.member_add((new_peer_url(),), learner=True)
    with pytest.raises(errors.UnhealthyCluster):
        client.member_remove(last)

    def is_out() -> bool:
        client.member_remove(last)
        return last not in {member.id for member in client.member_list(linearizable=True).members}

    subject.until(is_out)


def test_the_last_voter_is_not_removed(subject: Subject) -> None:
    subject.bootstrap("m0")
    client = subject.client("m0")
    with pytest.raises(errors.UnhealthyCluster):
        client.member_remove(client.status().member_id)
