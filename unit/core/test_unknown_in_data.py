"""Members of others that only the data of a silent member lists are not given up."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import AdoptedMember, Adoption
from etcd_operator.core.actions import Stage
from etcd_operator.core.plan import plan
from etcd_operator.core.state import ClusterState
from unit.core.builders import changed, entry, pod, with_record
from unit.core.manual_recoveries import NAME, RECOVERY
from unit.core.test_offline import RUNS, read, restarted


def listing(state: ClusterState, name: str, *others: str, committed: int = 20) -> ClusterState:
    """The data of a member that was read lists these, too."""
    found = state.by_name[name].reading
    assert found is not None
    members = (*found.answer.members, *(entry(other) for other in others))
    return changed(
        state,
        name,
        reading=replace(found, answer=replace(found.answer, members=members, committed=committed)),
    )


@pytest.mark.parametrize("asked", ["", NAME])
def test_members_of_others_that_a_reading_lists_are_not_given_up(asked: str) -> None:
    """The resource was created again in the middle of an adoption, without spec.adopt.

    The external members may be a quorum, and serve clients.
    """
    state = listing(read(restarted(asked), RUNS), RUNS, "old-0", "old-1")
    made = plan(replace(state, desired=replace(state.desired, recovers_after=60.0)))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UnknownMember")
    assert "(old-0 (id-old-0), old-1 (id-old-1))" in made.message
    assert "start them again" in made.message


def test_what_only_an_older_reading_lists_does_not_count() -> None:
    state = read(changed(restarted(), "db-1", pod=pod("db-1", is_running=True)), RUNS)
    older = listing(read(state, "db-1"), "db-1", "old-0", committed=19)
    assert plan(older).reason != "UnknownMember"
    assert plan(listing(older, "db-1", committed=21)).reason == "UnknownMember"
    former = AdoptedMember(id="id-old-0", endpoint="old-0:2379", peer_urls=())
    ended = Adoption(members=(former,), finished=True)
    assert plan(with_record(listing(older, "db-1", committed=21), adoption=ended)).reason != "UnknownMember"


def test_a_recovery_that_has_begun_is_not_stopped_by_what_data_lists() -> None:
    state = listing(read(restarted(), RUNS), RUNS, "old-0")
    assert plan(with_record(state, recovery=RECOVERY)).reason != "UnknownMember"
