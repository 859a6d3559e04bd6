"""Other members that do not come up during an upgrade. Random runs of the model found most of these rows."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Adoption, Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, ReplaceMember, Stage
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.rules.upgrade import restart_crashed
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining, Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import is_blocked
from unit.controllers.etcd_cluster.decide.builders import (
    IMAGE_PROBLEM,
    TOKEN,
    answering,
    bootstrapped,
    changed,
    claim,
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
    DELETED_CLAIM,
    NEW,
    OLD,
    TERMINATING_PEER,
    at,
    crashing,
    desiring,
    names,
    on_record,
    remembered,
    to_upgrade,
    under_way,
)


def _crashed(
    cluster: DesiredCluster, *numbers: int, upgrading: str | None, wanted: str, ran: str = NEW
) -> ClusterState:
    """Members that came up at `ran` and crash now; `wanted` is desired by now."""
    state = to_upgrade(cluster, runs=(OLD, ran, ran), upgrading=upgrading, wanted=wanted)
    state = crashing(state, *(names(state)[number] for number in numbers))
    return replace(state, has_quorum=len(numbers) < 2)


@BOTH
@pytest.mark.parametrize("wanted", [OLD, "3.5.36"], ids=["back", "on"])
def test_a_member_that_came_up_and_crashes_later_is_tried_at_the_version_desired_by_then(
    cluster: DesiredCluster, wanted: str
) -> None:
    """Though another one is upgrading: it cannot get worse, and the rest would wait for it for ever."""
    first, middle, highest = names(bootstrapped(cluster))
    state = _crashed(cluster, 2, upgrading=middle, wanted=wanted)
    assert plan(state).actions == (
        remembered(state, under_way(highest, wanted=wanted)),
        ReplaceMember(name=highest, version=wanted),
    )

    away = changed(state, first, answer=None)
    away = on_record(replace(away, has_quorum=False), under_way(first))
    assert plan(away).actions == (
        remembered(away, under_way(first, wanted=wanted)),
        ReplaceMember(name=highest, version=wanted),
    )


@BOTH
def test_members_that_were_a_quorum_are_tried_one_after_the_other(cluster: DesiredCluster) -> None:
    first, middle, highest = names(bootstrapped(cluster))
    state = _crashed(cluster, 1, 2, upgrading=first, wanted="3.5.36")

    assert ReplaceMember(name=highest, version="3.5.36") in plan(state).actions
    done = changed(at(state, highest, NEW, requested="3.5.36"), highest, problem=None)
    assert ReplaceMember(name=middle, version="3.5.36") in plan(done).actions


@BOTH
def test_a_whole_cluster_that_crashes_at_its_version_is_taken_on_to_the_next_patch(
    cluster: DesiredCluster,
) -> None:
    """Nothing answers, and nothing is under way."""
    highest = names(bootstrapped(cluster))[-1]
    state = to_upgrade(cluster, runs=(NEW, NEW, NEW), wanted="3.5.36")
    state = replace(crashing(state, *names(state), entry=None), has_quorum=False)

    begun = Upgrade(origin=NEW, target="3.5.36", member=highest)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=highest, version="3.5.36"))
    unchanged = desiring(state, NEW)
    assert (plan(unchanged).actions, plan(unchanged).reason) == ((), "QuorumLost")


@pytest.mark.parametrize("upgrading", [None, "db-0"])
def test_the_only_copy_is_not_tried_at_another_version_where_it_would_lose_its_data(
    upgrading: str | None,
) -> None:
    state = at(to_upgrade(persistent(size=1), runs=(OLD,), upgrading=upgrading, wanted="3.5.36"), "db-0", NEW)
    state = replace(crashing(state, "db-0"), has_quorum=False)

    assert any(isinstance(action, ReplaceMember) for action in plan(state).actions)
    assert plan(changed(state, "db-0", claim=DELETED_CLAIM)).actions == ()


def test_a_member_that_crashed_before_an_upgrade_is_taken_no_minor_further() -> None:
    """What keeps it down may have nothing to do with its version, and 3.7 could not read its log."""
    state = _crashed(persistent(), 2, upgrading=None, wanted="3.6.16", ran=OLD)

    assert plan(state).reason == "UpgradeWaiting"

    of_a_member_that_left = Upgrade(origin=OLD, target=NEW, member="db-3")
    made = plan(with_record(state, upgrade=of_a_member_that_left))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")


def test_a_member_whose_pod_has_no_node_delays_even_a_patch() -> None:
    state = _crashed(persistent(), 2, upgrading=None, wanted="3.5.36")
    no_node = PodProblem(reason="Unschedulable", message="no node is free")
    pending = pod("db-2", is_running=False, has_run=False, problem=no_node)

    assert plan(state).actions
    made = plan(changed(state, "db-2", pod=pending, problem=no_node))
    assert made.reason == "UpgradeWaiting"
    assert made.message.endswith("waits for db-2 (no answer; Unschedulable: no node is free)")


def _without_image(cluster: DesiredCluster, *numbers: int, requested: str, wanted: str) -> ClusterState:
    """Members whose new pods cannot pull the image of `requested`; no upgrade is on record."""
    state = to_upgrade(cluster, wanted=wanted)
    for number in numbers:
        name = names(state)[number]
        state = at(state, name, OLD, requested=requested)
        pending = replace(state.by_name[name].pod or pod(name), is_running=False, has_run=False)
        state = changed(state, name, answer=None, pod=pending, problem=IMAGE_PROBLEM)
    return replace(state, has_quorum=len(numbers) < 2)


@BOTH
def test_a_member_whose_image_has_gone_is_tried_at_a_patch_that_is_desired(cluster: DesiredCluster) -> None:
    """Its registry no longer has the old one: no upgrade could ever begin."""
    state = _without_image(cluster, 1, requested=OLD, wanted=NEW)
    middle = names(state)[1]

    assert plan(state).actions[-1] == ReplaceMember(name=middle, version=NEW)
    further = _without_image(cluster, 1, requested=OLD, wanted="3.6.16")
    made = plan(further)
    assert (made.actions, made.reason) == ((), "UpgradeWaiting")


def test_all_members_of_a_resumed_cluster_whose_image_has_gone_are_tried_one_after_the_other() -> None:
    """It was created again, and its claims name a version that no registry has any more."""
    state = _without_image(persistent(), 0, 1, 2, requested=OLD, wanted=NEW)
    for name in names(state):
        state = changed(state, name, entry=None)

    assert plan(state).actions[-1] == ReplaceMember(name="db-2", version=NEW)


@pytest.mark.parametrize(
    ("failing", "is_tried"), [((2,), False), ((1, 2), True)], ids=["others may start", "they cannot"]
)
def test_an_earlier_patch_is_not_tried_before_it_is_known_what_the_others_run(
    failing: tuple[int, ...], *, is_tried: bool
) -> None:
    """A cluster is created again at an earlier patch, and a registry does not respond for a moment.

    The others would follow down to that version as soon as one member runs it.
    """
    state = to_upgrade(persistent(), runs=(NEW, NEW, NEW), wanted=OLD)
    for name in names(state):
        state = changed(state, name, answer=None, entry=None)
    for number in failing:
        name = names(state)[number]
        pending = replace(state.by_name[name].pod or pod(name), is_running=False, has_run=False)
        state = changed(state, name, pod=pending, problem=IMAGE_PROBLEM)
    state = replace(state, has_quorum=False)

    tried = [action for action in plan(state).actions if isinstance(action, ReplaceMember)]
    assert bool(tried) is is_tried
    later = replace(state, desired=replace(state.desired, version="3.5.36"))
    assert ReplaceMember(name="db-2", version="3.5.36") in plan(later).actions


@BOTH
@pytest.mark.parametrize("crashes", [True, False], ids=["it crashes", "its image cannot be pulled"])
def test_a_member_that_an_upgrade_took_further_before_it_was_forgotten_is_taken_back(
    cluster: DesiredCluster, *, crashes: bool
) -> None:
    """The resource was created again in the middle of an upgrade, at the version that the others run."""
    state = _without_image(cluster, 2, requested="3.6.16", wanted=OLD)
    highest = names(state)[2]
    if crashes:
        state = crashing(at(state, highest, "3.6.16"), highest)

    assert plan(state).actions[-1] == ReplaceMember(name=highest, version=OLD)
    for name in names(state):
        state = changed(state, name, answer=None)
    assert plan(replace(state, has_quorum=False)).actions == ()


def test_a_member_whose_log_may_be_old_is_not_tried_at_3_7() -> None:
    state = _crashed(persistent(), 2, upgrading="db-2", wanted="3.7.3", ran="3.6.17")
    state = at(state, "db-0", "3.6.16")
    state = at(state, "db-1", "3.6.17")
    state = on_record(state, under_way("db-1", wanted="3.6.17", origin="3.6.16"))

    assert not any(isinstance(action, ReplaceMember) for action in plan(state).actions)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"problem": None}, id="it is only silent"),
        pytest.param({"pod": pod("db-2", version=NEW)}, id="its process runs"),
        pytest.param({"pod": None}, id="its pod is missing"),
        pytest.param({"peer": TERMINATING_PEER}, id="its peer is being deleted already"),
    ],
)
def test_a_member_that_is_away_for_another_reason_is_waited_for(changes: dict[str, Any]) -> None:
    state = changed(_crashed(persistent(), 2, upgrading="db-1", wanted=OLD), "db-2", **changes)

    assert plan(state).actions == ()


def _joining(cluster: DesiredCluster, wanted: str) -> tuple[ClusterState, str]:
    """Three members run OLD, a fourth joins and cannot pull its image any more; `wanted` is desired."""
    state = to_upgrade(replace(cluster, size=4), wanted=wanted)
    name = cluster.member_name(3)
    learner = replace(entry(name, is_learner=True), name="")
    new = silent(state.desired, name, entry=learner, problem=IMAGE_PROBLEM)
    new = replace(new, pod=pod(name, is_running=False, has_run=False, version=OLD))
    if cluster.kind is PERSISTENT:
        new = replace(
            new, peer=peer(name, is_existing_only=True, version=OLD), claim=claim(name, cluster_id="x")
        )
    return replace(state, members=(*state.members, new)), name


@pytest.mark.parametrize("wanted", [NEW, "3.6.16"])
@BOTH
def test_a_learner_whose_image_is_missing_is_tried_at_the_desired_version(
    cluster: DesiredCluster, wanted: str
) -> None:
    """Learners come before the upgrade, which would otherwise never take the others there."""
    state, name = _joining(cluster, wanted)

    begun = Upgrade(origin=OLD, target=wanted, member=name)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=name, version=wanted))


@pytest.mark.parametrize("wanted", [OLD, "3.5.33", "3.7.3"], ids=["the same", "going back", "too far"])
@BOTH
def test_a_learner_is_tried_at_no_other_version(cluster: DesiredCluster, wanted: str) -> None:
    state, _ = _joining(cluster, wanted)

    made = plan(state)
    assert (made.actions, made.reason) == ((), "ErrImagePull")


def test_without_a_quorum_no_version_helps_a_learner() -> None:
    state, name = _joining(persistent(), NEW)

    assert is_blocked(state, state.by_name[name])
    assert not is_blocked(replace(state, has_quorum=False), state.by_name[name])


def test_the_peer_of_a_learner_that_has_not_started_is_made_again_with_flags_to_join() -> None:
    state, name = _joining(persistent(), NEW)
    state = changed(state, name, peer=None, pod=None, claim=claim(name, version=NEW))

    joining = Joining(members=("db-0", "db-1", "db-2", name), token=TOKEN)
    assert plan(state).actions == (CreateMember(name=name, start=joining, version=NEW),)
    started = changed(state, name, entry=entry(name, is_learner=True))
    assert plan(started).actions == (CreateMember(name=name, start=Resuming(token=TOKEN), version=NEW),)


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


def _held_up(cluster: DesiredCluster) -> ClusterState:
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
    state = _held_up(cluster)

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
            replace(_held_up(ephemeral()), desired=replace(_held_up(ephemeral()).desired, size=3)),
            id="one is to be removed",
        ),
        pytest.param(
            with_record(_held_up(ephemeral()), adoption=Adoption(members=())),
            id="a cluster is adopted",
        ),
    ],
)
def test_other_members_wait_for_the_turn_of_the_upgrade(state: ClusterState) -> None:
    assert restart_crashed(state) is None
