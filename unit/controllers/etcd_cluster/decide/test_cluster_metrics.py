"""What metrics show of a cluster."""

from dataclasses import replace

import pytest

from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import cluster_metrics
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, offered
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, down, not_bootstrapped, persistent

HELD = Plan.hold("NoBackup", "all is lost")
SERVING = replace(bootstrapped(persistent()), has_quorum=True)
LOST = replace(SERVING, has_quorum=False)


@pytest.mark.parametrize(
    ("state", "is_available"),
    [(SERVING, True), (LOST, False), (not_bootstrapped(persistent()), None)],
    ids=["serving", "lost", "new"],
)
def test_whether_a_cluster_serves(state: ClusterState, is_available: bool | None) -> None:
    assert cluster_metrics(state, Plan.settled()).is_available is is_available


def test_a_cluster_that_is_being_restored_at_its_creation_has_lost_nothing() -> None:
    recovery = Recovery(
        generation=1,
        source=Survivor(name=""),
        authority="Proven",
        seed="c-0",
        replaces="",
        token="t",
        version="3.6.16",
        revision=7,
    )
    persisted = replace(LOST.persisted, cluster_id="", recovery=recovery)
    state = replace(LOST, desired=replace(LOST.desired, persisted=persisted))
    assert cluster_metrics(state, Plan.settled()).is_available is None


@pytest.mark.parametrize(
    ("state", "is_available"),
    [
        (adopting(ours=3), True),
        (adopting(ours=0), None),
        (down(adopting(ours=3, has_quorum=False, external=()), "c-0", "c-1", "c-2"), False),
        (adopting(ours=0, has_quorum=False, external=()), None),
        (replace(offered(), has_quorum=False), None),
    ],
    ids=["joined", "none of ours yet", "joined, lost", "none of ours, lost", "not begun"],
)
def test_a_cluster_that_is_being_adopted_may_lose_its_quorum(
    state: ClusterState, is_available: bool | None
) -> None:
    assert cluster_metrics(state, Plan.settled()).is_available is is_available


@pytest.mark.parametrize(
    ("plan", "held", "working"),
    [
        (HELD, "NoBackup", ""),
        (Plan.hold("Paused", "on purpose"), "Paused", ""),
        (Plan.hold("Deleting", "the namespace is being deleted"), "", ""),
        (Plan.hold("TurnedBack", "delete it"), "", ""),
        (Plan.wait("Recovering", "from a survivor", requeue_after=1.0), "", "Recovering"),
        (Plan.act(reason="Creating", message="a member"), "", "Creating"),
        (Plan.settled(), "", ""),
    ],
    ids=lambda value: value.reason if isinstance(value, Plan) else "",
)
def test_what_holds_a_cluster_or_is_done(plan: Plan, held: str, working: str) -> None:
    found = cluster_metrics(LOST, plan)
    assert (found.held, found.working) == (held, working)
