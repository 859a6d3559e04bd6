"""Members that do not run are started at the desired version before the upgrade's turn."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Adoption
from etcd_operator.controllers.etcd_cluster.decide.actions import ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.rules.upgrade import restart_crashed
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    IMAGE_PROBLEM,
    answering,
    changed,
    entry,
    ephemeral,
    peer,
    persistent,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    BOTH,
    NEW,
    OLD,
    crashing,
    names,
    on_record,
    to_upgrade,
    under_way,
)

NO_NODE = PodProblem(reason="Unschedulable", message="no node is free")


def _with_learner(cluster: DesiredCluster, problem: PodProblem, *, wanted: str) -> ClusterState:
    """Four members run OLD, and a fifth one joins, whose pod does not start."""
    state = to_upgrade(replace(cluster, size=5), runs=(OLD,) * 4, wanted=wanted)
    name = cluster.member_name(4)
    new = silent(state.desired, name, entry=entry(name, is_learner=True), problem=problem)
    new = replace(new, pod=pod(name, is_running=False, has_run=False, version=OLD))
    if cluster.kind is PERSISTENT:
        new = replace(new, peer=peer(name, is_existing_only=True, version=OLD))
    return replace(state, members=(*state.members, new))


def _crashed(cluster: DesiredCluster) -> ClusterState:
    """One of the four was upgraded and crashes, OLD is desired again, and the learner finds no node."""
    state = _with_learner(cluster, NO_NODE, wanted=OLD)
    back = names(state)[3]
    state = on_record(state, under_way(back, wanted=OLD))
    member = state.by_name[back]
    newer = replace(member.peer, version=NEW) if member.peer is not None else None
    state = changed(state, back, peer=newer, pod=replace(member.pod or pod(back), version=NEW))
    return crashing(state, back)


@BOTH
def test_a_member_is_taken_back_though_a_learner_holds_the_upgrade_up(cluster: DesiredCluster) -> None:
    state = _crashed(cluster)

    assert plan(state).actions == (ReplaceMember(name=names(state)[3], version=OLD),)


@BOTH
def test_a_member_is_taken_back_though_the_data_of_another_one_differs(cluster: DesiredCluster) -> None:
    """Without it the others are no quorum that agrees, so nobody could be replaced either."""
    state = to_upgrade(cluster, runs=(OLD, OLD, NEW), wanted=OLD)
    first, middle, highest = names(state)
    state = crashing(on_record(state, under_way(highest, wanted=OLD)), highest)
    alarm = ("memberID:1 alarm:CORRUPT",)
    state = answering(state, first, middle, corrupt=frozenset({f"id-{middle}"}), errors=alarm)

    assert plan(state).actions == (ReplaceMember(name=highest, version=OLD),)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(to_upgrade(), id="it runs"),
        pytest.param(to_upgrade(runs=(NEW, NEW, NEW)), id="there is no upgrade"),
        pytest.param(
            _with_learner(persistent(), IMAGE_PROBLEM, wanted=NEW), id="it is a learner, which may have to go"
        ),
        pytest.param(
            replace(_crashed(ephemeral()), desired=replace(_crashed(ephemeral()).desired, size=3)),
            id="one is to be removed",
        ),
        pytest.param(
            with_record(_crashed(ephemeral()), adoption=Adoption(members=())), id="a cluster is adopted"
        ),
    ],
)
def test_other_members_wait_for_the_turn_of_the_upgrade(state: ClusterState) -> None:
    assert restart_crashed(state) is None
