"""EtcdPeers that are left alone, refused, released or deleted."""

from dataclasses import replace as but
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFinding, PodProblem
from etcd_operator.controllers.etcd_peer.decide.plan import Act, CleanUp, Disown, PeerAction, PeerPlan, plan
from etcd_operator.controllers.etcd_peer.decide.state import Awaited, PeerState
from unit.controllers.etcd_peer.decide.peers import KEPT, initial, joining, other, running

WAITED: dict[str, Any] = {"awaited": Awaited.CLUSTER, "waited": 2.0}


@pytest.mark.parametrize("kept", [KEPT, but(KEPT, is_terminating=True)])
@pytest.mark.parametrize(
    "state", [initial(), joining(), initial(others=(other("db-1", has_replica_set=True),))]
)
def test_a_claim_that_a_recovery_gave_up_is_left_alone(state: PeerState, kept: ClaimFacts) -> None:
    assert plan(but(state, claim=kept)) == PeerPlan.hold(
        reason="NameConflict",
        message="PersistentVolumeClaim db-0 was given up by a recovery: delete it to use its name",
        requeue_after=10.0,
    )


@pytest.mark.parametrize("token", ["uid-2", "uid-1-1"])
def test_no_member_starts_on_a_claim_of_another_etcd_cluster(token: str) -> None:
    foreign = but(KEPT, given_up_by="", token=token)
    for state in (initial(), joining()):
        made = plan(but(state, claim=foreign))
        assert (made.actions, made.requeue_after) == ((), 10.0)
        assert made.problem is not None
        assert made.problem.reason == "NameConflict"
        assert f"is of another etcd cluster (token {token}): delete it" in made.problem.message
    assert plan(but(joining(), claim=but(foreign, is_terminating=True))) == plan(joining(claim=None))
    assert plan(but(joining(), claim=but(foreign, token=""))) == plan(joining())
    assert plan(but(running(), claim=foreign)) == plan(running()), "it runs on it already"


STATES = (initial(), initial(claim=None), joining(), running(is_template_current=False))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ["ownership_problem", "content_problem"])
def test_a_peer_that_does_not_fit_its_cluster_is_doubted_for_a_moment(state: PeerState, kind: str) -> None:
    problem: dict[str, Any] = {kind: "no"}
    made = plan(but(state, **problem))
    assert made == PeerPlan(awaits=Awaited.CLUSTER, requeue_after=2.0)
    later = plan(but(state, **problem, awaited=Awaited.CLUSTER, waited=1.5))
    assert later == PeerPlan(awaits=Awaited.CLUSTER, requeue_after=0.5)


@pytest.mark.parametrize("state", STATES)
def test_a_member_that_was_changed_by_hand_is_refused_in_its_clusters_status(state: PeerState) -> None:
    made = plan(but(state, content_problem="spec.version: no", **WAITED))
    assert made == PeerPlan.hold(
        reason="PeerRefused",
        message="spec.version: no",
        requeue_after=10.0,
        awaits=Awaited.CLUSTER,
        finding=PeerFinding.REFUSED,
    )


@pytest.mark.parametrize("content", ["", "spec.version: no"])
def test_a_peer_of_no_cluster_reports_why_itself(content: str) -> None:
    made = plan(joining(ownership_problem="nobody's", content_problem=content, **WAITED))
    disown = Disown(problem=PodProblem(reason="PeerRefused", message="nobody's"))
    assert made == PeerPlan(actions=(disown,), awaits=Awaited.CLUSTER)


CLEANED = (CleanUp(may_leave=False), Act.RELEASE)
FOR_GOOD = {"is_for_cleanup": True}
DELETED: dict[str, tuple[dict[str, Any], tuple[PeerAction, ...]]] = {
    "its member stays: the claim is kept": ({}, ()),
    "changed by hand": ({"content_problem": "no"}, ()),
    "for good": ({**FOR_GOOD}, CLEANED),
    "for minutes": ({**FOR_GOOD, "deleting_for": 300.0}, CLEANED),
    "for too long": ({**FOR_GOOD, "deleting_for": 300.5}, (CleanUp(may_leave=True), Act.RELEASE)),
    "changed by hand, for good": ({**FOR_GOOD, "content_problem": "no"}, CLEANED),
    "somebody else's finalizer": ({**FOR_GOOD, "ownership_problem": "no"}, (Act.RELEASE,)),
    "its cluster is deleted, but the operator made its ReplicaSet": (
        {**FOR_GOOD, "ownership_problem": "no", "has_replica_set": True},
        CLEANED,
    ),
}


@pytest.mark.parametrize(("facts", "actions"), DELETED.values(), ids=DELETED)
def test_a_peer_that_is_deleted_takes_its_claim_along_only_if_its_member_was_removed(
    facts: dict[str, Any], actions: tuple[PeerAction, ...]
) -> None:
    assert plan(joining(**({"deleting_for": 0.0} | facts))) == PeerPlan(actions=actions)
