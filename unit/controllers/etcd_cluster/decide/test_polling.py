"""How often members that start are observed: ever more rarely, the longer it takes."""

from collections.abc import Callable

import pytest

from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.polling import LONGEST, STEP
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import SEED_POLL
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import persistent, pod
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries, quorum_losses
from unit.controllers.etcd_cluster.decide.sizes import sized, with_learner


def _creating(seconds: float) -> dict[str, object]:
    return {"pod": pod("db-3", is_running=False, creating_for=seconds), "answer": None}


def _silent(seconds: float) -> dict[str, object]:
    return {"pod": pod("db-3"), "silent_for": seconds, "answer": None}


STARTS: list[tuple[Callable[..., ClusterState], float]] = [
    (manual_recoveries.recovering, SEED_POLL),
    (quorum_losses.recovering, SEED_POLL),
    (lambda **parts: with_learner(sized(persistent(), 5), "db-3", **parts), STEP),
]


@pytest.mark.parametrize("waits", [_creating, _silent], ids=["no container was started", "it is silent"])
@pytest.mark.parametrize(("start", "least"), STARTS, ids=["manual recovery", "recovery", "learner"])
def test_what_takes_long_to_start_is_observed_ever_more_rarely(
    start: Callable[..., ClusterState], least: float, waits: Callable[[float], dict[str, object]]
) -> None:
    pauses = [plan(start(**waits(seconds))).requeue_after for seconds in (0.0, 2.0, 40.0, 79.0, 100.0)]

    assert pauses == [least, least, 1.0, pytest.approx(1.975), LONGEST]


def test_a_seed_without_a_pod_is_observed_as_often_as_a_new_one() -> None:
    assert plan(manual_recoveries.recovering(pod=None)).requeue_after == SEED_POLL
