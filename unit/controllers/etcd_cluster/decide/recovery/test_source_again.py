"""The source of a recovery is chosen again, with all that answer, until the point of no return."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.recoveries import REVISION_BUMP, Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import SetSeedExistingOnly
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    TOKEN,
    answer,
    answering,
    changed,
    claim,
    entry,
    first_recovery,
    pod,
    silent,
    unlisted,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import NEW_ID, lost

REQUESTED = first_recovery("db-5", "db-2", authority="Requested")
AUTOMATIC = first_recovery("db-5", "db-2", authority="Automatic", is_unstable=True)


def five(*gone: int, recovery: Recovery = REQUESTED, **revisions: int) -> ClusterState:
    """Of five members some are silent, and the seed of a recovery from db-2, at revision 7, serves."""
    state = lost(5, *gone)
    for name, revision in revisions.items():
        state = answering(state, name.replace("_", "-"), revision=revision)
    state = with_record(unlisted(state, *(f"db-{number}" for number in range(5))), recovery=recovery)
    listed = (entry("db-5"),)
    reply = answer("db-5", listed, cluster_id=NEW_ID, revision=7 + REVISION_BUMP)
    seed = silent(state.desired, "db-5", claim=claim("db-5", token=f"{TOKEN}-1"), has_replica_set=True)
    seed = replace(seed, entry=listed[0], answer=reply)
    return replace(state, members=(*state.members, seed), has_quorum=True)


def takes_over(state: ClusterState) -> bool:
    return SetSeedExistingOnly in {type(action) for action in plan(state).actions}


@pytest.mark.parametrize("recovery", [REQUESTED, AUTOMATIC], ids=["requested", "automatic"])
def test_a_seed_that_has_less_than_a_member_that_answers_again_is_given_up(recovery: Recovery) -> None:
    """Also if that member falls silent again: it may be the only copy."""
    assert takes_over(five(0, 1, 3, 4, recovery=recovery))
    assert takes_over(five(0, 3, 4, recovery=recovery, db_1=7))

    failed = recorded(plan(five(0, 3, 4, recovery=recovery, db_1=8)))

    assert "db-1 answers at revision 8" in failed.failure
    again = plan(five(0, 1, 3, 4, recovery=failed))
    assert (again.stage, again.actions) == (Stage.HELD, ())
    assert again.message.startswith(failed.failure)


def test_it_is_given_up_as_soon_as_that_member_answers() -> None:
    pending = changed(five(0, 3, 4, db_1=8), "db-5", answer=None, entry=None)
    assert recorded(plan(replace(pending, has_quorum=False))).failure


def test_newer_data_that_an_alarm_names_or_that_is_about_to_go_is_not_waited_for() -> None:
    newer = five(0, 3, 4, db_1=8)
    assert takes_over(answering(newer, "db-1", corrupt=frozenset({"id-db-1"})))
    assert takes_over(changed(newer, "db-1", pod=pod("db-1", is_terminating=True)))


def test_a_corrupt_source_gives_way_to_a_member_that_no_alarm_names() -> None:
    named = frozenset({"id-db-2"})
    assert recorded(plan(answering(five(0, 3, 4), "db-1", "db-2", corrupt=named))).failure


def test_members_that_may_elect_a_leader_are_waited_for() -> None:
    made = plan(five(3, 4))
    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "QuorumLost", ())
    assert "db-0, db-1, db-2 answer again, and may elect a leader: db-5 does not take over" in made.message

    newer = recorded(plan(five(3, 4, db_1=8)))
    assert "db-0, db-1, db-2 answer and may elect a leader" in plan(five(3, 4, recovery=newer)).message
    assert msgspec.structs.replace(newer, failure="") == REQUESTED
