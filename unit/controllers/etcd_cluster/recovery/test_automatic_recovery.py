"""`spec.recovery: Automatic`: what begins without a person, after what time, and what never does."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import STABLE_AFTER
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import READ_MAJORITY_AFTER
from etcd_operator.controllers.etcd_cluster.recovery.readers import PATIENCE
from etcd_operator.pods.reports import FOLLOWED_A_LEADER
from unit.controllers.shared.test_unreadable import restore, spoil
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, persistent
from unit.passes.manual_recoveries import ask, assert_recovered, is_reason, lose, message, pod_of

AFTER = 16
AUTOMATIC: dict[str, Any] = {"recovery": "Automatic", "recoveryAfterSeconds": AFTER}


def freeze(made: Bench, *numbers: int) -> None:
    for number in numbers:
        made.etcd.etcd.freeze(f"c-{number}")
    made.run_until(is_reason(made, "QuorumLost"))


def thaw(made: Bench, *numbers: int) -> None:
    for number in numbers:
        made.etcd.etcd.thaw(f"c-{number}")


def has_begun(made: Bench) -> bool:
    return made.status(IMPROBABLE).get("recovery") is not None


def test_after_the_time_the_newest_survivor_is_recovered_and_all_claims_are_kept() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        freeze(made, 0, 1)
        made.wait(AFTER - 5.0)
        assert not has_begun(made)
        assert "a recovery begins by itself after 16 s in which none of this changes" in message(made)
        made.settle()
        assert_recovered(made, (3, 4, 5), ("c-0", "c-1", "c-2"))
        assert made.status(IMPROBABLE)["recovery"]["authority"] == "Automatic"
        loss = made.condition(IMPROBABLE, "DataLossPossible")
        assert loss["message"].endswith("started automatically (spec.recovery: Automatic)")
        (event,) = (e for e in made.events() if e["reason"] == "RecoveryStarted")
        assert "c-0 (silent), c-1 (silent) given up without a request, after 1" in event["message"]


def find_a_leader(made: Bench) -> None:
    """Two of three fall silent, and what reads their data finds that they follow a leader."""
    freeze(made, 0, 1)
    made.wait(READ_MAJORITY_AFTER + 10.0)
    for name in ("c-0", "c-1"):
        made.world.end_added("default", pod_of(made, name), FOLLOWED_A_LEADER)


@pytest.mark.exhaustive
def test_members_that_follow_a_leader_unseen_are_not_given_up() -> None:
    """They may acknowledge writes of clients that reach them."""
    after = int(READ_MAJORITY_AFTER) + 60
    with bootstrapped(*persistent(recovery="Automatic", recoveryAfterSeconds=after)) as made:
        find_a_leader(made)
        made.wait(after * 2.0)
        assert not has_begun(made)
        assert "; no recovery begins by itself, because c-0, c-1 followed a leader after the" in message(made)
        thaw(made, 0, 1)
        made.settle()
        freeze(made, 0, 1)
        made.wait(after + PATIENCE + 10.0)
        assert has_begun(made), "what was found in an earlier loss shows nothing of this one"


def refuse_readers(request: Request) -> Fault | None:
    is_reader = request.subresource == "ephemeralcontainers"
    return Answer(code=403, reason="Forbidden", message="no readers") if is_reader else None


@pytest.mark.exhaustive
@pytest.mark.parametrize("lost", [0, 2], ids=["it leads all the time", "it loses its Lease for a moment"])
def test_a_loss_goes_on_while_the_operator_does_not_know_whether_it_does(lost: int) -> None:
    """What cannot be read for a while makes the condition Available Unknown, and then False again.

    Who follows a leader must not be given up for that, also not where no reader can be added again.
    """
    after = int(READ_MAJORITY_AFTER) + 60
    with bootstrapped(*persistent(recovery="Automatic", recoveryAfterSeconds=after)) as made:
        find_a_leader(made)
        made.api.before = refuse_readers
        spoil(made, pod_of(made, "c-2"))
        made.run_until(is_reason(made, "ObjectUnreadable"))
        assert made.condition(IMPROBABLE, "Available")["status"] == "Unknown"
        restore(made, pod_of(made, "c-2"))
        made.run_until(is_reason(made, "QuorumLost"))
        assert made.operator is not None
        made.operator.epoch += lost
        made.wait(after * 2.0)
        assert not has_begun(made)
        assert "; no recovery begins by itself, because c-0, c-1 followed a leader after the" in message(made)


def test_members_whose_claims_are_gone_are_waited_for_as_long() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        lose(made, 0, 1)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(AFTER - 5.0)
        assert not has_begun(made)
        made.settle()
        assert_recovered(made)


@pytest.mark.exhaustive
def test_a_person_need_not_wait_and_what_is_left_of_the_request_changes_nothing() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        freeze(made, 0, 1)
        ask(made)
        made.settle()
        assert_recovered(made, (3, 4, 5), ("c-0", "c-1", "c-2"))
        assert "automatic" not in made.status(IMPROBABLE)["recovery"]
        for number in (3, 4):
            made.etcd.etcd.freeze(f"c-{number}")
        made.run_until(is_reason(made, "RecoveryRefused"))
        assert "a recovery begins by itself" in message(made)
        made.wait(AFTER + 5.0)
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 2


def test_another_operator_counts_from_the_beginning() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        freeze(made, 0, 1)
        for _ in range(2):
            made.wait(AFTER - 5.0)
            made.restart()
        made.wait(AFTER - 5.0)
        assert not has_begun(made)
        made.wait(10.0)
        assert has_begun(made)


def recovered(made: Bench) -> None:
    freeze(made, 0, 1)
    made.wait(AFTER + 5.0)
    made.settle()


def lose_again(made: Bench) -> None:
    for number in (3, 4):
        made.etcd.etcd.freeze(f"c-{number}")
    made.run_until(is_reason(made, "QuorumLost"))
    made.wait(AFTER + 5.0)


@pytest.mark.exhaustive
def test_a_second_loss_soon_after_waits_for_a_person() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        recovered(made)
        made.clock.advance(STABLE_AFTER - 60.0)
        lose_again(made)
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 1
        assert "no recovery begins by itself, because an earlier recovery did" in message(made)
        new = made.status(IMPROBABLE)["clusterID"]
        ask(made, f"{new}/c-5/2")
        made.settle()
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 2


def test_a_cluster_that_served_for_long_may_be_recovered_again() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        recovered(made)
        made.clock.advance(STABLE_AFTER + 1.0)
        made.run_until(lambda: not made.status(IMPROBABLE)["recovery"].get("unstable", False))
        made.settle()
        made.rest()
        lose_again(made)
        assert made.status(IMPROBABLE)["recovery"]["generation"] == 2


def test_a_quorum_that_comes_back_before_the_seed_serves_ends_it() -> None:
    with bootstrapped(*persistent(**AUTOMATIC)) as made:
        made.etcds.holds_seeds = "save"
        freeze(made, 0, 1)
        made.wait(AFTER + 5.0)
        assert has_begun(made)
        thaw(made, 0, 1)
        made.settle()
        assert made.status(IMPROBABLE)["clusterID"] == "c0de"
        assert made.condition(IMPROBABLE, "DataLossPossible") == {}
