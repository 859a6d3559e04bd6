"""What is done for one EtcdPeer: every decision as a table."""

from collections.abc import Iterator
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFinding
from etcd_operator.controllers.etcd_peer.decide.plan import RULES, Act, PeerAction, PeerPlan, plan
from etcd_operator.controllers.etcd_peer.decide.state import Awaited, InitialPeer, PeerState
from unit.controllers.etcd_cluster.decide.builders import claim
from unit.controllers.etcd_peer.decide.peers import STARTED, initial, joining, other, running, unstarted

INITIAL: dict[str, tuple[PeerState, PeerPlan]] = {
    "its claim comes first": (initial(claim=None), PeerPlan.make(Act.CREATE_CLAIM, requeue_after=5.0)),
    "a claim that is being deleted is none": (
        initial(claim=unstarted(is_terminating=True)),
        PeerPlan.make(Act.CREATE_CLAIM, requeue_after=5.0),
    ),
    "another claim is missing": (
        initial(others=(other("db-1"), other("db-2", claim=None))),
        PeerPlan.make(requeue_after=5.0),
    ),
    "all claims are there": (initial(), PeerPlan.make(STARTED, Act.CREATE_REPLICA_SET)),
    "it is the only one": (initial(others=()), PeerPlan.make(STARTED, Act.CREATE_REPLICA_SET)),
    "its claim does not record whether it was started": (
        initial(claim=unstarted(is_started=None)),
        PeerPlan.make(STARTED, Act.CREATE_REPLICA_SET),
    ),
    "its claim was annotated by an earlier attempt": (
        initial(claim=unstarted(is_started=True)),
        PeerPlan.make(Act.CREATE_REPLICA_SET),
    ),
    "another one was started: the missing claim was lost": (
        initial(others=(other("db-1", claim=unstarted("db-1", is_started=True)), other("db-2", claim=None))),
        PeerPlan.make(STARTED, Act.CREATE_REPLICA_SET),
    ),
    "it was started itself: the missing claim was lost": (
        initial(claim=unstarted(is_started=True), others=(other("db-1", claim=None),)),
        PeerPlan.make(Act.CREATE_REPLICA_SET),
    ),
    "a ReplicaSet alone does not end the wait for claims": (
        initial(others=(other("db-1", has_replica_set=True), other("db-2", claim=None))),
        PeerPlan.make(requeue_after=5.0),
    ),
}


@pytest.mark.parametrize(("state", "wanted"), INITIAL.values(), ids=INITIAL)
def test_initial_members_start_when_all_claims_have_been_there(state: PeerState, wanted: PeerPlan) -> None:
    assert plan(state) == wanted


@pytest.mark.parametrize("given", [None, claim("db-0", is_terminating=True)])
@pytest.mark.parametrize(
    "served",
    [
        other("db-1", claim=unstarted("db-1", is_started=True)),
        other("db-1", has_replica_set=True),
        other("db-1", claim=None, has_replica_set=True),
    ],
)
def test_an_initial_members_claim_is_lost_if_others_may_have_served(
    given: ClaimFacts | None, served: InitialPeer
) -> None:
    made = plan(initial(claim=given, others=(other("db-2"), served)))
    assert made == PeerPlan.hold(
        Act.FIND_CLAIM,
        reason="ClaimLost",
        message="PersistentVolumeClaim db-0 was lost while the cluster was bootstrapped",
        requeue_after=10.0,
        finding=PeerFinding.CLAIM_LOST,
    )
    assert not made.is_well


@pytest.mark.parametrize("given", [None, claim("db-0", is_terminating=True)])
def test_a_member_that_joins_is_started_with_a_new_claim_in_one_pass(given: ClaimFacts | None) -> None:
    assert plan(joining(claim=given)) == PeerPlan.make(Act.CREATE_CLAIM, Act.CREATE_REPLICA_SET)


def test_the_claim_of_a_member_that_joins_is_not_annotated_as_started() -> None:
    assert plan(joining()) == PeerPlan.make(Act.CREATE_REPLICA_SET)


UNBOUND: dict[str, Any] = {"is_bound": False}


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param(joining(claim=claim("db-0", **UNBOUND)), 0.5, id="it has just been made"),
        pytest.param(
            joining(claim=claim("db-0", **UNBOUND), awaited=Awaited.VOLUME, waited=0.375), 0.125, id="a while"
        ),
        pytest.param(
            joining(claim=claim("db-0", **UNBOUND), awaited=Awaited.CLUSTER, waited=9.0),
            0.5,
            id="what was waited for was something else",
        ),
        pytest.param(initial(claim=unstarted(**UNBOUND)), 0.5, id="an initial member"),
    ],
)
def test_a_pod_waits_a_moment_for_its_volume(state: PeerState, left: float) -> None:
    assert plan(state) == PeerPlan.make(requeue_after=left, awaits=Awaited.VOLUME)


def test_a_volume_that_is_bound_only_when_a_pod_is_there_is_not_waited_for() -> None:
    waited = joining(claim=claim("db-0", **UNBOUND), awaited=Awaited.VOLUME, waited=0.5)
    assert plan(waited) == PeerPlan.make(Act.CREATE_REPLICA_SET)


KEEPS: dict[str, tuple[PeerState, tuple[PeerAction, ...]]] = {
    "as it should be": (running(), ()),
    "another template": (running(is_template_current=False), (Act.CHANGE_TEMPLATE,)),
    "no claim: none is made": (running(claim=None), (Act.FIND_CLAIM,)),
    "no claim: it decides on the template": (
        running(claim=None, is_template_current=False),
        (Act.FIND_CLAIM, Act.CHANGE_TEMPLATE),
    ),
    "its claim is given up": (
        running(claim=claim("db-0", given_up_by="r1"), is_template_current=False),
        (Act.CHANGE_TEMPLATE,),
    ),
    "another claim is missing": (running(others=(other("db-1", claim=None),)), ()),
}


@pytest.mark.parametrize(("state", "actions"), KEEPS.values(), ids=KEEPS)
def test_a_member_that_was_started_keeps_what_it_has(
    state: PeerState, actions: tuple[PeerAction, ...]
) -> None:
    assert plan(state) == PeerPlan.make(*actions)


NON_ROOT = claim("db-0", is_for_non_root=True)


@pytest.mark.parametrize(
    ("state", "is_root_owned"),
    [
        pytest.param(joining(claim=NON_ROOT), False, id="made for another user"),
        pytest.param(joining(claim=claim("db-0")), True, id="of an earlier version"),
        pytest.param(joining(claim=None), False, id="the first of its cluster"),
        pytest.param(joining(claim=None, cluster_claims=(NON_ROOT,)), False, id="as all of its cluster"),
        pytest.param(
            joining(claim=None, cluster_claims=(NON_ROOT, claim("db-2"))), True, id="as one of its cluster"
        ),
        pytest.param(joining(claim=NON_ROOT, cluster_claims=(claim("db-2"),)), False, id="its own decides"),
    ],
)
def test_the_claim_decides_whether_etcd_is_root(state: PeerState, *, is_root_owned: bool) -> None:
    assert state.is_root_owned is is_root_owned


@pytest.mark.parametrize(
    ("state", "is_restored"),
    [
        pytest.param(joining(), False, id="any member"),
        pytest.param(joining(is_seed=True, claim=None), True, id="a seed"),
        pytest.param(joining(claim=claim("db-0", is_restored=True)), True, id="made again on a seed's data"),
    ],
)
def test_a_seed_and_its_claim_have_a_data_directory_of_their_own(
    state: PeerState, *, is_restored: bool
) -> None:
    assert state.is_restored is is_restored


def all_states() -> Iterator[PeerState]:
    """Each combination of what the rules read, as far as the world can be so."""
    for own in (None, unstarted(), unstarted(is_started=True), unstarted(given_up_by="r1")):
        for sibling in (other("db-1"), other("db-1", claim=None), other("db-1", has_replica_set=True)):
            for has_replica_set in (False, True):
                for waited in (0.0, 9.0):
                    yield initial(
                        claim=own,
                        others=(sibling,),
                        has_replica_set=has_replica_set,
                        awaited=Awaited.VOLUME,
                        waited=waited,
                    )


def test_an_empty_claim_is_never_made_where_a_member_may_have_run() -> None:
    for state in all_states():
        if state.has_replica_set or any(sibling.may_have_served for sibling in state.others):
            assert Act.CREATE_CLAIM not in plan(state).actions


def test_no_initial_member_starts_unannotated() -> None:
    for state in all_states():
        actions = plan(state).actions
        if Act.CREATE_REPLICA_SET in actions and not (state.claim and state.claim.is_started):
            assert actions == (STARTED, Act.CREATE_REPLICA_SET)


def test_the_last_rule_always_returns_a_plan() -> None:
    assert all(RULES[-1](state) is not None for state in all_states())


@pytest.mark.parametrize(
    "facts", [{"deleting_for": 1.0}, {"ownership_problem": "x"}, {"content_problem": "x"}]
)
def test_objects_are_kept_only_for_a_peer_that_stays_and_is_ours(facts: dict[str, Any]) -> None:
    assert running().is_acted_on
    assert not running(**facts).is_acted_on
