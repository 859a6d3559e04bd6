"""A member that is only started again, for its TLS, and does not come up."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import LATE
from unit.controllers.etcd_cluster.decide.builders import changed, persistent
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    CRASH,
    OLD,
    at,
    away,
    desiring,
    names,
    on_record,
    persistent_away,
    to_upgrade,
)

BACK_OFF = PodProblem(reason="CrashLoopBackOff", message="back-off", until="2026-01-01T00:01:20Z")
"""As before the fourth restart in one pod within some minutes."""


def restarted(state: ClusterState, **changes: Any) -> ClusterState:
    """`state` with its last member started again at the version that all run."""
    name = names(state)[-1]
    state = desiring(at(state, name, OLD), OLD)
    restart = Upgrade(origin=OLD, target=OLD, member=name, restart=True)
    return changed(on_record(state, restart), name, answer=None, **changes)


LOOK = "see the log and the Events of its pod"


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        pytest.param(
            restarted(away(), problem=BACK_OFF),
            f"Kubernetes starts its container again at {BACK_OFF.until}; if it does not serve then, "
            f"{LOOK}, and delete the pod: the member is replaced",
            id="back-off",
        ),
        pytest.param(
            replace(restarted(away()), awaited_for=LATE + 1),
            f"if that lasts, {LOOK}, and delete the pod: the member is replaced",
            id="late",
        ),
        pytest.param(
            replace(restarted(away(), problem=CRASH), has_quorum=False),
            f"if that lasts, {LOOK}",
            id="the others are no quorum",
        ),
        pytest.param(
            restarted(to_upgrade(persistent()), problem=CRASH),
            f"if that lasts, {LOOK}, and delete the pod: the member keeps its data",
            id="persistent",
        ),
        pytest.param(
            restarted(persistent_away(), pod=None, problem=CRASH),
            f"if that lasts, {LOOK}",
            id="no pod",
        ),
    ],
)
def test_no_other_version_is_advised_for_a_member_that_only_starts_again(
    state: ClusterState, advice: str
) -> None:
    made = plan(state)
    assert (made.actions, made.reason) == ((), "UpgradeBlocked")
    assert made.message.endswith(f"the other members are not touched; {advice}")
