"""Upgrades as a table: what is seen, what is done."""

from dataclasses import replace
from typing import Any

import pytest
from semver import Version

from etcd_operator.api.persisted import Bootstrap, Upgrade
from etcd_operator.core.actions import (
    AddLearner,
    CreateMember,
    MoveLeader,
    PadLog,
    RemakePod,
    Remember,
    RemoveMember,
    ReplaceMember,
    Stage,
)
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member, PodProblem, ordinal_of, quorum
from etcd_operator.core.plan import plan
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.preflight import LAG
from etcd_operator.core.upgrade.skew import joining_version, lowest, refusal
from etcd_operator.core.upgrade.state_machine import PAD, refused, roll
from unit.core.builders import (
    IMAGE_PROBLEM,
    answer,
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    old_claim,
    peer,
    persistent,
    pod,
)

OLD, NEW = "3.5.34", "3.5.35"
BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])


def at(state: ClusterState, name: str, version: str, *, asked: str = "") -> ClusterState:
    """A member that runs `version`, and is asked to run it too unless said otherwise."""
    member = state.by_name[name]
    answer = replace(member.answer, version=version) if member.answer is not None else None
    asked = asked or version
    peer = replace(member.peer, version=asked) if member.peer is not None else None
    return changed(state, name, answer=answer, peer=peer, pod=replace(member.pod or pod(name), version=asked))


def asked(
    cluster: DesiredCluster | None = None,
    *,
    runs: tuple[str, ...] = (OLD, OLD, OLD),
    wanted: str = NEW,
    founded: str = OLD,
    upgrading: str | None = None,
    **changes: Any,
) -> ClusterState:
    """A bootstrapped cluster that runs `runs` (by number) and is asked to run `wanted`; `hand` is in hand."""
    cluster = cluster or ephemeral()
    state = bootstrapped(cluster, voters=len(runs))
    for member, version in zip(state.members, runs, strict=True):
        state = at(state, member.name, version)
    persisted = state.persisted
    assert persisted.bootstrap is not None
    bootstrap = Bootstrap(
        members=persisted.bootstrap.members, token=persisted.bootstrap.token, version=founded
    )
    upgrade = None if upgrading is None else under_way(upgrading, wanted=wanted)
    persisted = replace(persisted, bootstrap=bootstrap, upgrade=upgrade)
    state = replace(state, desired=replace(state.desired, version=wanted, persisted=persisted, **changes))
    return replace(state, budget=quorum(max(state.desired.size, len(runs))))


def under_way(upgrading: str, *, wanted: str = NEW, origin: str = OLD) -> Upgrade:
    return Upgrade(origin=origin, target=wanted, member=upgrading, since="2026-01-01T00:00:00Z")


def remembered(state: ClusterState, upgrade: Upgrade | None) -> Remember:
    return Remember(persisted=replace(state.persisted, upgrade=upgrade))


def names(state: ClusterState) -> tuple[str, ...]:
    return tuple(sorted(state.by_name, key=ordinal_of))


def led_by(state: ClusterState, name: str) -> ClusterState:
    for member in state.members:
        if member.answer is not None:
            state = changed(state, member.name, answer=replace(member.answer, leader=f"id-{name}"))
    return state


# One member after the other


@BOTH
def test_the_first_step_is_written_down_before_the_highest_number_is_touched(cluster: DesiredCluster) -> None:
    state = asked(cluster)
    highest = names(state)[-1]

    made = plan(state)

    begun = Upgrade(origin=OLD, target=NEW, member=highest)
    assert made.actions == (remembered(state, begun), ReplaceMember(name=highest, version=NEW))
    assert (made.stage, made.reason) == (Stage.WORKING, "Upgrading")


@BOTH
def test_the_leader_is_moved_in_a_step_of_its_own(cluster: DesiredCluster) -> None:
    state = asked(cluster)
    first, _, highest = names(state)
    state = led_by(state, highest)

    assert plan(state).actions[1:] == (MoveLeader(name=first, member_id=f"id-{first}"),)


def test_the_leadership_goes_to_a_member_that_is_done() -> None:
    state = led_by(asked(runs=(OLD, OLD, NEW), upgrading="db-0002"), "db-0001")

    assert plan(state).actions[1:] == (MoveLeader(name="db-0002", member_id="id-db-0002"),)


def test_of_members_that_are_done_the_first_leads() -> None:
    state = led_by(asked(runs=(OLD, NEW, NEW), upgrading="db-0001"), "db-0000")

    assert plan(state).actions[1:] == (MoveLeader(name="db-0002", member_id="id-db-0002"),)


def _fresh(state: ClusterState, name: str) -> ClusterState:
    """A member whose process was started a moment ago."""
    return changed(state, name, pod=replace(state.by_name[name].pod or pod(name), started_lately=True))


@BOTH
def test_the_leadership_waits_until_the_heir_has_run_for_a_while(cluster: DesiredCluster) -> None:
    _, middle, highest = names(bootstrapped(cluster))
    state = led_by(asked(cluster, runs=(OLD, OLD, NEW), upgrading=highest), middle)
    made = plan(_fresh(state, highest))

    assert (made.actions, made.stage, made.message) == (
        (),
        Stage.WORKING,
        f"waiting for {highest} to serve at {NEW}",
    )
    assert plan(state).actions


def test_a_member_waits_until_clients_are_back_at_the_one_before() -> None:
    """Persistent members take so long that they are."""
    state = asked(runs=(OLD, OLD, NEW), upgrading="db-0002")
    assert (plan(_fresh(state, "db-0002")).actions, plan(_fresh(state, "db-0001")).actions != ()) == (
        (),
        True,
    )

    lasting = asked(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2")
    assert plan(_fresh(lasting, "db-2")).actions


def test_the_last_member_is_not_waited_for_once_it_serves() -> None:
    state = _fresh(asked(runs=(NEW, NEW, NEW), upgrading="db-0000"), "db-0000")

    assert plan(state).reason == "UpgradeFinished"


def _behind(state: ClusterState, **by: int) -> ClusterState:
    """Members whose logs are so many entries behind the others', by number: `db_0002=500`."""
    for member in state.members:
        assert member.answer is not None
        committed = 5000 - by.get(member.name.replace("-", "_"), 0)
        state = changed(state, member.name, answer=replace(member.answer, committed=committed))
    return state


def test_the_leadership_does_not_go_to_a_member_that_has_to_catch_up_if_another_has_not() -> None:
    """etcd accepts no write until the heir has the whole log."""
    state = led_by(asked(runs=(OLD, OLD, OLD)), "db-0002")

    assert plan(_behind(state, db_0000=11)).actions[1:] == (
        MoveLeader(name="db-0001", member_id="id-db-0001"),
    )
    assert plan(_behind(state, db_0000=10)).actions[1:] == (
        MoveLeader(name="db-0000", member_id="id-db-0000"),
    )


def test_a_member_that_is_done_leads_though_it_has_to_catch_up() -> None:
    state = led_by(asked(runs=(OLD, OLD, NEW), upgrading="db-0002"), "db-0001")

    assert plan(_behind(state, db_0002=500)).actions[1:] == (
        MoveLeader(name="db-0002", member_id="id-db-0002"),
    )


def test_a_cluster_of_one_has_nobody_to_lead_instead() -> None:
    assert plan(asked(runs=(OLD,), size=1)).actions[1:] == (ReplaceMember(name="db-0000", version=NEW),)


def test_what_is_written_down_is_not_written_again() -> None:
    state = asked(upgrading="db-0002")

    assert plan(state).actions == (ReplaceMember(name="db-0002", version=NEW),)


def test_the_next_member_is_taken_when_the_one_before_is_back() -> None:
    state = asked(runs=(OLD, OLD, NEW), upgrading="db-0002")

    assert plan(state).actions == (
        remembered(state, under_way("db-0001")),
        ReplaceMember(name="db-0001", version=NEW),
    )


def test_when_all_run_the_version_the_upgrade_is_over() -> None:
    state = asked(runs=(NEW, NEW, NEW), upgrading="db-0000")

    made = plan(state)

    assert (made.actions, made.reason) == ((remembered(state, None),), "UpgradeFinished")


def test_a_cluster_that_runs_what_is_asked_is_left_alone() -> None:
    assert roll(asked(runs=(NEW, NEW, NEW))) is None


def test_a_cluster_that_is_not_bootstrapped_is_not_upgraded() -> None:
    state = asked()
    not_bootstrapped = replace(
        state, desired=replace(state.desired, persisted=replace(state.persisted, cluster_id=""))
    )

    assert roll(not_bootstrapped) is None
    assert refused(not_bootstrapped) is None


# Waiting for the member in hand


def _away(**changes: Any) -> ClusterState:
    """The member in hand has been touched and says nothing yet."""
    state = at(asked(upgrading="db-0002"), "db-0002", OLD, asked=NEW)
    return changed(state, "db-0002", **{"answer": None, **changes})


def _persistent_away(**changes: Any) -> ClusterState:
    return changed(asked(persistent(), upgrading="db-2"), "db-2", answer=None, pod=None, **changes)


def _lagging(behind: int) -> ClusterState:
    state = asked(runs=(OLD, OLD, NEW), upgrading="db-0002")
    for member in state.members:
        assert member.answer is not None
        committed = 5000 - behind if member.name == "db-0002" else 5000
        state = changed(state, member.name, answer=replace(member.answer, committed=committed))
    return state


def _unhealthy(name: str, **words: Any) -> ClusterState:
    state = asked(runs=(OLD, OLD, NEW), upgrading="db-0002")
    answer = state.by_name[name].answer
    assert answer is not None
    return changed(state, name, answer=replace(answer, **words))


GOING = peer("db-2", is_existing_only=True, is_terminating=True)

WAITING = [
    pytest.param(_away(), "db-0002 to serve at 3.5.35", id="it says nothing yet"),
    pytest.param(
        at(asked(upgrading="db-0002"), "db-0002", OLD, asked=NEW),
        "db-0002 to serve at 3.5.35",
        id="its old process still answers",
    ),
    pytest.param(_persistent_away(peer=GOING), "db-2 to serve", id="its peer is going"),
    pytest.param(
        changed(
            asked(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2"),
            "db-2",
            peer=replace(GOING, version=NEW),
        ),
        "db-2 to serve",
        id="its peer is going and its process answers",
    ),
    pytest.param(_unhealthy("db-0002", leader=""), "db-0002 to serve", id="it follows no leader yet"),
    pytest.param(
        changed(
            asked(runs=(OLD, OLD, NEW), upgrading="db-0002"),
            "db-0000",
            pod=pod("db-0000", is_terminating=True),
        ),
        "db-0000, whose pod is being deleted",
        id="another one is just going",
    ),
    pytest.param(_lagging(LAG + 1), "db-0002, which has not caught up", id="it has not caught up"),
    pytest.param(
        _unhealthy("db-0002", members=(entry("db-0000"), entry("db-0001"))),
        "db-0002, which knows other members",
        id="it knows another list",
    ),
    pytest.param(
        _unhealthy("db-0002", member_id="id-other"), "db-0002, which knows other members", id="another ID"
    ),
    pytest.param(_unhealthy("db-0000", errors=("NOSPACE",)), "db-0000, which reports NOSPACE", id="an alarm"),
    pytest.param(down(_lagging(0), "db-0001"), "db-0001 (no answer)", id="another member is silent"),
    pytest.param(
        changed(_lagging(0), "db-0001", answer=answer("db-0001", leader="")),
        "db-0001 (unhealthy)",
        id="another member follows nobody",
    ),
    pytest.param(
        down(asked(runs=(NEW, NEW, NEW), upgrading="db-0000"), "db-0001"),
        "db-0001 (no answer)",
        id="all are done, but one is silent",
    ),
]


@pytest.mark.parametrize(("state", "what"), WAITING)
def test_the_next_member_waits_until_all_is_well(state: ClusterState, what: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Upgrading")
    assert what in made.message


def test_a_member_a_little_behind_is_in_step() -> None:
    assert plan(_lagging(LAG)).actions


def test_an_upgrade_does_not_begin_while_a_member_is_silent() -> None:
    made = plan(down(asked(), "db-0001"))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")
    assert "db-0001 (no answer)" in made.message


def test_an_upgrade_does_not_begin_while_nobody_is_known_to_lead() -> None:
    state = led_by(asked(), "nobody")

    assert plan(state).message.endswith("waits for a leader")


DOOMED = old_claim("db-0", is_terminating=True)


@pytest.mark.parametrize("runs", [(OLD,), (OLD, OLD)], ids=["the only copy", "one of two voters"])
def test_a_member_whose_claim_goes_with_its_pod_is_not_stopped_where_it_is_needed(
    runs: tuple[str, ...],
) -> None:
    """A claim that is being deleted stays for as long as a pod uses it."""
    made = plan(changed(asked(persistent(size=len(runs)), runs=runs), "db-0", claim=DOOMED))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")
    assert "db-0, whose claim is being deleted" in made.message


def test_such_a_member_is_upgraded_and_then_replaced_where_the_others_go_on_without_it() -> None:
    state = led_by(asked(persistent(), runs=(OLD, NEW, NEW), upgrading="db-1"), "db-1")

    assert ReplaceMember(name="db-0", version=NEW) in plan(changed(state, "db-0", claim=DOOMED)).actions


def test_such_a_single_member_may_be_saved_by_growing_first() -> None:
    state = changed(asked(persistent(size=3), runs=(OLD,)), "db-0", claim=DOOMED)

    assert plan(state).actions[0] == AddLearner(name="db-1")


def test_an_upgrade_does_not_begin_while_a_member_does_not_vote() -> None:
    state = asked(runs=(OLD,) * 4, size=3)
    state = changed(state, "db-0003", entry=entry("db-0003", is_learner=True))

    made = roll(state)

    assert made is not None
    assert "db-0003, which does not vote yet" in made.message


@pytest.mark.parametrize("upgrading", [None, "db-0002"])
def test_without_quorum_nothing_is_touched(upgrading: str | None) -> None:
    state = replace(down(asked(upgrading=upgrading), "db-0000", "db-0001"), has_quorum=False)

    assert plan(state).reason == "QuorumLost"


# Trouble


def test_a_member_that_does_not_come_up_stops_the_upgrade_and_reports_how_to_go_back() -> None:
    made = plan(_away(problem=IMAGE_PROBLEM))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeBlocked")
    assert made.message == (
        "db-0002 does not come up at 3.5.35: ErrImagePull: no such image; the other members are not touched; "
        "3.5.34 in the spec takes this one back"
    )


def test_a_member_that_went_back_in_vain_is_not_advised_to_go_back() -> None:
    """Its data may be of the newer version by now; what it waits for is a version that can read it."""
    state = at(_away(problem=IMAGE_PROBLEM), "db-0002", OLD)
    made = plan(replace(state, desired=replace(state.desired, version=OLD)))

    assert made.reason == "UpgradeBlocked"
    assert made.message.endswith("another version in the spec than 3.5.34 is tried on this one at once")


def test_a_peer_that_cannot_be_made_again_stops_the_upgrade() -> None:
    forbidden = PodProblem(reason="Forbidden", message="no right to create")
    made = roll(_persistent_away(peer=None, problem=forbidden))

    assert made is not None
    assert made.reason == "UpgradeBlocked"


@pytest.mark.parametrize("wanted", [OLD, "3.6.16"])
def test_whatever_is_asked_next_is_tried_on_the_member_that_is_away(wanted: str) -> None:
    state = _away(problem=IMAGE_PROBLEM)
    state = replace(state, desired=replace(state.desired, version=wanted))

    assert plan(state).actions == (
        remembered(state, under_way("db-0002", wanted=wanted)),
        ReplaceMember(name="db-0002", version=wanted),
    )


def test_a_member_that_still_serves_is_not_started_again_where_the_others_need_it() -> None:
    state = down(at(asked(upgrading="db-0002"), "db-0002", OLD, asked=NEW), "db-0001")
    state = replace(state, desired=replace(state.desired, version="3.5.36"))

    assert plan(state).actions == ()


def test_a_member_that_is_blocked_alone_is_taken_back_without_a_quorum() -> None:
    state = replace(_alone_and_blocked(), has_quorum=False)

    assert plan(state).reason == "UpgradeBlocked"
    back = replace(state, desired=replace(state.desired, version=OLD))
    assert ReplaceMember(name="db-0000", version=OLD) in plan(back).actions


def _stuck(
    cluster: DesiredCluster, *numbers: int, upgrading: str | None, wanted: str, ran: str = NEW
) -> ClusterState:
    """Members that came up at `ran` and crash now; by now `wanted` is asked for."""
    state = asked(cluster, runs=(OLD, ran, ran), upgrading=upgrading, wanted=wanted)
    crash = PodProblem(reason="CrashLoopBackOff", message="panic: it crashes")
    for name in (names(state)[number] for number in numbers):
        before = state.by_name[name].pod
        assert before is not None
        crashing = replace(before, is_running=False, has_restarted=True, restarts=9, problem=crash)
        state = changed(state, name, answer=None, pod=crashing, problem=crash)
    return replace(state, has_quorum=len(numbers) < 2)


@BOTH
@pytest.mark.parametrize("wanted", [OLD, "3.5.36"], ids=["back", "on"])
def test_a_member_that_came_up_and_crashes_later_is_tried_at_what_is_asked_by_then(
    cluster: DesiredCluster, wanted: str
) -> None:
    """Though another one is in hand: it cannot get worse, and the rest would wait for it for ever."""
    first, middle, highest = names(bootstrapped(cluster))
    state = _stuck(cluster, 2, upgrading=middle, wanted=wanted)
    assert plan(state).actions == (
        remembered(state, under_way(highest, wanted=wanted)),
        ReplaceMember(name=highest, version=wanted),
    )

    away = changed(state, first, answer=None)
    away = _in_hand(replace(away, has_quorum=False), first)
    assert plan(away).actions == (
        remembered(away, under_way(first, wanted=wanted)),
        ReplaceMember(name=highest, version=wanted),
    )


def _in_hand(state: ClusterState, name: str) -> ClusterState:
    persisted = replace(state.persisted, upgrade=under_way(name))
    return replace(state, desired=replace(state.desired, persisted=persisted))


@BOTH
def test_so_are_members_that_were_a_quorum_one_after_the_other(cluster: DesiredCluster) -> None:
    first, middle, highest = names(bootstrapped(cluster))
    state = _stuck(cluster, 1, 2, upgrading=first, wanted="3.5.36")

    assert ReplaceMember(name=highest, version="3.5.36") in plan(state).actions
    done = changed(at(state, highest, NEW, asked="3.5.36"), highest, problem=None)
    assert ReplaceMember(name=middle, version="3.5.36") in plan(done).actions


@BOTH
def test_a_whole_cluster_that_crashes_at_its_version_is_taken_on_to_the_next_patch(
    cluster: DesiredCluster,
) -> None:
    """Nothing answers, and nothing is under way."""
    highest = names(bootstrapped(cluster))[-1]
    state = _all_crash(asked(cluster, runs=(NEW, NEW, NEW), wanted="3.5.36"))

    begun = Upgrade(origin=NEW, target="3.5.36", member=highest)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=highest, version="3.5.36"))
    unasked = replace(state, desired=replace(state.desired, version=NEW))
    assert (plan(unasked).actions, plan(unasked).reason) == ((), "QuorumLost")


def _all_crash(state: ClusterState) -> ClusterState:
    crash = PodProblem(reason="CrashLoopBackOff", message="panic: it crashes")
    for name in names(state):
        before = state.by_name[name].pod
        assert before is not None
        crashing = replace(before, is_running=False, has_restarted=True, restarts=9, problem=crash)
        state = changed(state, name, answer=None, entry=None, pod=crashing, problem=crash)
    return replace(state, has_quorum=False)


@pytest.mark.parametrize("upgrading", [None, "db-0"])
def test_the_only_copy_is_not_tried_at_another_version_where_its_claim_would_go(
    upgrading: str | None,
) -> None:
    crash = PodProblem(reason="CrashLoopBackOff", message="panic: it crashes")
    state = at(asked(persistent(size=1), runs=(OLD,), upgrading=upgrading, wanted="3.5.36"), "db-0", NEW)
    crashing = pod("db-0", is_running=False, has_restarted=True, restarts=9, problem=crash)
    state = replace(changed(state, "db-0", answer=None, pod=crashing, problem=crash), has_quorum=False)

    assert any(isinstance(action, ReplaceMember) for action in plan(state).actions)
    assert plan(changed(state, "db-0", claim=DOOMED)).actions == ()


def test_a_member_that_crashed_before_an_upgrade_is_taken_no_minor_further() -> None:
    """What keeps it down may have nothing to do with its version, and 3.7 could not read its log."""
    state = _stuck(persistent(), 2, upgrading=None, wanted="3.6.16", ran=OLD)

    assert plan(state).reason == "UpgradeWaiting"


def test_a_member_whose_pod_has_no_node_holds_up_even_a_patch() -> None:
    state = _stuck(persistent(), 2, upgrading=None, wanted="3.5.36")
    pending = pod("db-2", is_running=False, has_run=False, problem=IMAGE_PROBLEM)

    assert plan(state).actions
    assert plan(changed(state, "db-2", pod=pending)).reason == "UpgradeWaiting"


def test_a_member_whose_log_may_be_old_is_not_tried_at_3_7() -> None:
    state = _stuck(persistent(), 2, upgrading="db-2", wanted="3.7.3", ran="3.6.17")
    state = at(state, "db-0", "3.6.16")
    state = at(state, "db-1", "3.6.17")
    upgrade = under_way("db-1", wanted="3.6.17", origin="3.6.16")
    state = replace(
        state, desired=replace(state.desired, persisted=replace(state.persisted, upgrade=upgrade))
    )

    assert not any(isinstance(action, ReplaceMember) for action in plan(state).actions)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"problem": None}, id="it is only silent"),
        pytest.param({"pod": pod("db-2", version=NEW)}, id="its process runs"),
        pytest.param({"pod": None}, id="its pod is not there"),
        pytest.param({"peer": GOING}, id="its peer is going already"),
    ],
)
def test_a_member_that_is_away_for_another_reason_is_waited_for(changes: dict[str, Any]) -> None:
    state = changed(_stuck(persistent(), 2, upgrading="db-1", wanted=OLD), "db-2", **changes)

    assert plan(state).actions == ()


def _alone_and_blocked() -> ClusterState:
    state = at(asked(runs=(OLD,), upgrading="db-0000"), "db-0000", OLD, asked=NEW)
    return changed(state, "db-0000", answer=None, entry=None, problem=IMAGE_PROBLEM)


def test_a_pod_that_is_gone_is_for_other_rules_to_say() -> None:
    assert roll(_away(pod=None)) is None


def test_a_member_that_was_removed_is_no_longer_in_hand() -> None:
    state = asked(runs=(OLD, OLD, OLD), upgrading="db-0007")
    gone = Member(name="db-0007", pod=pod("db-0007", is_terminating=True))
    state = replace(state, members=(*state.members, gone))

    assert ReplaceMember(name="db-0002", version=NEW) in plan(state).actions


def _crashing(upgrading: str, version: str = NEW, *, is_broken: bool = True) -> ClusterState:
    crashing = pod("db-2", is_running=False, restarts=9, has_broken_data=is_broken)
    state = changed(asked(persistent(), upgrading=upgrading), "db-2", answer=None, pod=crashing)
    peer = state.by_name["db-2"].peer
    assert peer is not None
    return changed(state, "db-2", peer=replace(peer, version=version))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_crashing("db-2"), id="in hand: its data may only look broken to the new version"),
        pytest.param(_crashing("db-2", is_broken=False), id="in hand, without words"),
        pytest.param(_crashing("db-1", is_broken=False), id="done, and the version proves to be bad later"),
        pytest.param(_crashing("db-2", OLD, is_broken=False), id="put back"),
    ],
)
def test_a_member_that_crashes_at_its_new_version_is_not_taken_for_lost(state: ClusterState) -> None:
    assert not any(isinstance(action, RemoveMember) for action in plan(state).actions)


@pytest.mark.parametrize(
    "state", [_crashing("db-1"), _crashing("db-2", OLD)], ids=["not in hand", "put back"]
)
def test_a_member_whose_data_is_broken_whatever_the_version_is(state: ClusterState) -> None:
    """Also to the pod that is made anew to see whether it is the same in that one."""
    (remade,) = plan(state).actions
    assert isinstance(remade, RemakePod)
    claim = state.by_name[remade.name].claim
    assert claim is not None

    again = changed(state, remade.name, claim=replace(claim, missing_in="the pod before"))
    assert isinstance(plan(again).actions[0], RemoveMember)


# Other wishes


def test_members_that_are_missing_come_first_once_members_have_been_touched() -> None:
    state = asked(runs=(OLD, OLD, OLD, NEW), upgrading="db-0003", size=5)

    made = plan(state)

    assert isinstance(made.actions[0], AddLearner)
    (join,) = (action for action in made.actions if isinstance(action, CreateMember))
    assert join.version == OLD


def test_members_that_are_missing_come_first_where_none_may_be_away() -> None:
    assert isinstance(plan(asked(runs=(OLD, OLD), size=3)).actions[0], AddLearner)


def test_otherwise_the_upgrade_comes_before_growing() -> None:
    assert ReplaceMember(name="db-0002", version=NEW) in plan(asked(size=5)).actions


def test_shrinking_comes_before_the_upgrade() -> None:
    assert any(isinstance(action, RemoveMember) for action in plan(asked(runs=(OLD,) * 5, size=3)).actions)


# To 3.7


def _to_37(*snapshots: int | None, founded: str = "3.5.35") -> ClusterState:
    state = asked(runs=("3.6.16",) * 3, wanted="3.7.3", founded=founded)
    for member, saved in zip(state.members, snapshots, strict=False):
        state = changed(state, member.name, snapshots=saved)
    return state


@pytest.mark.parametrize("founded", ["3.5.35", ""])
def test_the_log_is_padded_while_a_member_has_no_raft_snapshot(founded: str) -> None:
    state = _to_37(1, 0, 1, founded=founded)

    begun = Upgrade(origin="3.6.16", target="3.7.3")
    assert plan(state).actions == (remembered(state, begun), PadLog(entries=PAD))


def test_without_knowing_of_raft_snapshots_nobody_is_touched() -> None:
    made = plan(_to_37(1, None, 1))

    assert (made.actions, made.reason) == ((), "UpgradeWaiting")
    assert "db-0001" in made.message


@pytest.mark.parametrize("state", [_to_37(1, 2, 1), _to_37(founded="3.6.16"), _to_37(founded="3.7.0")])
def test_with_a_raft_snapshot_or_without_old_entries_members_are_touched(state: ClusterState) -> None:
    assert plan(state).actions[1:] == (ReplaceMember(name="db-0002", version="3.7.3"),)


def test_a_member_that_runs_3_7_needs_no_raft_snapshot() -> None:
    state = at(_to_37(1, 1, None), "db-0002", "3.7.3")

    assert plan(state).actions[1:] == (ReplaceMember(name="db-0001", version="3.7.3"),)


# Paths


REFUSED = [
    ("3.6.16", "3.6.15", "cannot go back"),
    ("3.6.16", "3.5.35", "cannot go back"),
    ("3.7.3", "3.7.3-rc.1", "cannot go back"),
    ("3.5.35", "3.7.3", "one minor version at a time: before 3.7.3 take the cluster from 3.5.35 to 3.6"),
    ("3.4.30", "3.6.16", "one minor version at a time"),
    ("3.5.31", "3.6.16", "take the cluster to 3.5.32 or later"),
    ("3.6.10", "3.7.3", "take the cluster to 3.6.11 or later"),
]
ALLOWED = [
    ("3.6.16", "3.6.16"),
    ("3.5.34", "3.5.35"),
    ("3.5.9", "3.5.10"),
    ("3.4.0", "3.5.0"),
    ("3.5.32", "3.6.0"),
    ("3.6.11", "3.7.0"),
]


@pytest.mark.parametrize(("runs", "wanted", "words"), REFUSED)
def test_a_path_that_etcd_does_not_go_is_refused_with_what_to_do(runs: str, wanted: str, words: str) -> None:
    assert words in refusal(Version.parse(runs), Version.parse(wanted))

    made = plan(asked(runs=(runs,) * 3, wanted=wanted))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeRefused")
    assert words in made.message


@pytest.mark.parametrize(("runs", "wanted"), ALLOWED)
def test_a_path_that_etcd_goes_is_not(runs: str, wanted: str) -> None:
    assert refusal(Version.parse(runs), Version.parse(wanted)) == ""


def test_a_refused_version_stops_no_repair() -> None:
    state = asked(runs=("3.5.35",) * 3, wanted="3.7.3", size=4)

    (join,) = (action for action in plan(state).actions if isinstance(action, CreateMember))
    assert join.version == "3.5.35"


def test_the_way_back_is_open_while_a_member_runs_the_earlier_version() -> None:
    assert not refused(asked(runs=("3.5.35", "3.6.16", "3.6.16"), wanted="3.5.35"))
    assert refused(asked(runs=("3.6.16", "3.6.16", "3.6.16"), wanted="3.5.35"))


def test_a_silent_member_may_still_run_what_ran_before() -> None:
    state = asked(runs=("3.5.35", "3.6.16", "3.6.16"), wanted="3.6.16", upgrading="db-0000")

    assert str(lowest(down(state, "db-0000"))) == OLD
    assert str(lowest(state)) == "3.5.35"


def test_where_nothing_answers_a_new_member_has_the_version_asked_for() -> None:
    state = down(asked(), "db-0000", "db-0001", "db-0002")

    assert lowest(state) is None
    assert joining_version(state) == NEW


def test_a_version_that_is_none_is_not_reckoned_with() -> None:
    assert str(lowest(asked(runs=("not known", OLD, OLD)))) == OLD


def test_a_missing_peer_comes_back_at_the_version_noted_on_its_claim() -> None:
    claim = old_claim("db-2", version="3.5.30")
    state = _persistent_away(peer=None, claim=claim)

    (join,) = plan(state).actions
    assert isinstance(join, CreateMember)
    assert join.version == "3.5.30"
    assert plan(state).is_quiet
