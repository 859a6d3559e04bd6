"""How a restore in place ends without a change: clients are let in again."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.shared_keys import RESTORE_ANNOTATION as ASKS
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    DropSeed,
    ReopenClients,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import record
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.rules import LONGEST_CLOSED
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import CLUSTER_ID, claim, down
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    IN_PLACE,
    LOST_CLAIM,
    NAME,
    filling,
    final_claim,
    live,
    remembering,
    seeding,
    served,
    sight,
)

SERVING = live("")
CLOSED = replace(SERVING, backups=sight(is_closed=True))
REOPEN, DROP = ReopenClients(name="db-3"), DropSeed(name="db-3")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(SERVING, (DROP,), id="nothing was changed"),
        pytest.param(CLOSED, (REOPEN, DROP), id="closed"),
        pytest.param(down(CLOSED, "db-0", "db-1"), (REOPEN, DROP), id="closed, no leader"),
    ],
)
def test_a_cancelled_restore_undoes_what_it_did(state: ClusterState, expected: tuple[object, ...]) -> None:
    assert plan(seeding(state, IN_PLACE)).actions == expected


@pytest.mark.parametrize("state", [SERVING, down(SERVING, "db-0", "db-1")], ids=["it serves", "silent"])
def test_a_restore_of_which_nothing_is_left_ends(state: ClusterState) -> None:
    made = plan(remembering(state, IN_PLACE))
    assert made.actions == (record(state, msgspec.structs.replace(IN_PLACE, replaces="")),)


ASKED = live(NAME)
GIVEN_UP = (claim("db-0", given_up_by=NAME),)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(remembering(ASKED, IN_PLACE), id="nothing of it is left"),
        pytest.param(filling(ASKED), id="its EtcdPeer is gone"),
        pytest.param(filling(ASKED, claim=LOST_CLAIM), id="its volume is gone"),
    ],
)
def test_clients_reach_the_old_cluster_while_a_seed_that_was_lost_is_filled_again(
    state: ClusterState,
) -> None:
    closed = replace(state, backups=sight(is_closed=True))
    assert plan(closed).actions == (REOPEN,)
    assert plan(replace(closed, backups=sight())).actions != ()


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(
            remembering(replace(ASKED, kept_claims=GIVEN_UP), IN_PLACE), id="nothing of the seed is left"
        ),
        pytest.param(filling(replace(ASKED, kept_claims=GIVEN_UP)), id="the EtcdPeer of the seed is gone"),
    ],
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_seed_that_is_lost_after_a_member_was_given_up_ends_the_restore(
    state: ClusterState, is_closed: bool
) -> None:
    """Its Service may select the token of the seed by then: no other one may begin with that."""
    failed = recorded(plan(replace(state, backups=sight(is_closed=is_closed))))
    assert failed.failure == "db-3 was lost after members of the old cluster had been given up"
    assert failed.replaces == CLUSTER_ID
    made = plan(remembering(replace(ASKED, backups=sight(is_closed=True)), failed))
    assert made.actions == (REOPEN,)


def test_a_service_that_is_closed_too_late_is_opened_again() -> None:
    ended = msgspec.structs.replace(IN_PLACE, replaces="")
    closed = replace(remembering(live(""), ended), backups=BackupFacts(is_closed=True))
    assert plan(closed).actions == (ReopenClients(name="db-3"),)
    assert plan(replace(closed, backups=BackupFacts())).actions == ()
    assert plan(replace(live(""), backups=BackupFacts(is_closed=True))).actions == ()


def closed_for(seconds: float, **changes: Any) -> ClusterState:
    """The seed serves and the Service is closed, and still the point of no return is not passed."""
    state = served(live(NAME, backups=sight(is_closed=True, closed_for=seconds)))
    return replace(state, desired=replace(state.desired, **changes))


def test_clients_are_cut_off_for_a_bounded_time() -> None:
    early = plan(closed_for(LONGEST_CLOSED - 1))
    assert isinstance(early.actions[-1], SetSeedExistingOnly)
    assert early.message.endswith(f"; to cancel the restore, remove the annotation {ASKS}")
    late = closed_for(LONGEST_CLOSED)
    failed = recorded(plan(late))
    assert "did not take over within 2 min after clients had been cut off" in failed.failure
    assert plan(late).actions[-1] == REOPEN
    assert plan(remembering(late, failed)).actions == (REOPEN, DROP)


@pytest.mark.parametrize(
    "changes", [{"is_paused": True}, {"problem": "size must be odd"}], ids=["paused", "invalid"]
)
def test_clients_are_not_cut_off_while_the_restore_does_not_go_on(changes: dict[str, Any]) -> None:
    assert plan(closed_for(1.0, **changes)).actions == (REOPEN,)
    assert plan(replace(closed_for(1.0, **changes), backups=sight())).actions == ()


def test_a_seed_that_has_taken_over_is_not_undone_by_a_pause() -> None:
    state = served(live(NAME, backups=sight(is_closed=True)), claim=final_claim())
    paused = replace(state, desired=replace(state.desired, is_paused=True))
    made = plan(paused)
    assert (made.actions, made.reason) == ((), "Paused")
    assert made.message.endswith("until the restore has ended: it can no longer be cancelled")


def test_nothing_is_opened_that_is_not_known_to_be_closed() -> None:
    state = replace(closed_for(1.0, is_paused=True), unseen=Unseen(reason="NotWatched", message="no events"))
    assert plan(state).actions == ()
    assert plan(replace(closed_for(1.0, is_paused=True), conflict="a Service of somebody else")).actions == ()
