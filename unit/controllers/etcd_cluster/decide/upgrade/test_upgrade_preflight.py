"""What must hold before an upgrade stops a member."""

from typing import Any

import pytest
from semver import Version

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    CreateMember,
    PadLog,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.rules.upgrade import refused
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import joining_version, refusal
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import roll
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import LAG, PAD
from unit.controllers.etcd_cluster.decide.builders import (
    answer,
    answering,
    changed,
    down,
    entry,
    persistent,
    pod,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    DELETED_CLAIM,
    NEW,
    OLD,
    at,
    led_by,
    remembered,
    to_upgrade,
)


def _lagging(behind: int) -> ClusterState:
    """The member that was upgraded last is behind the others."""
    state = to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002")
    return answering(answering(state, *state.by_name, committed=5000), "db-0002", committed=5000 - behind)


def _answering(name: str, **differently: Any) -> ClusterState:
    return answering(to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"), name, **differently)


OBSTACLES = [
    pytest.param(
        changed(
            to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"),
            "db-0000",
            pod=pod("db-0000", is_terminating=True),
        ),
        "db-0000, whose pod is being deleted",
        id="the pod of another member is being deleted",
    ),
    pytest.param(
        changed(
            to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"),
            "db-0000",
            pod=pod("db-0000", is_running=False, version=OLD),
        ),
        "db-0000, whose container does not run",
        id="another member has ended since it answered",
    ),
    pytest.param(_lagging(LAG + 1), "db-0002, which has not caught up", id="it has not caught up"),
    pytest.param(
        _answering("db-0002", members=(entry("db-0000"), entry("db-0001"))),
        "db-0002, which lists different members",
        id="it lists other members",
    ),
    pytest.param(
        _answering("db-0002", member_id="id-other"),
        "db-0002, which lists different members",
        id="it has another ID",
    ),
    pytest.param(_answering("db-0000", errors=("NOSPACE",)), "db-0000, which reports NOSPACE", id="an alarm"),
    pytest.param(down(_lagging(0), "db-0001"), "db-0001 (no answer)", id="another member is silent"),
    pytest.param(
        changed(_lagging(0), "db-0001", answer=answer("db-0001", leader="")),
        "db-0001 (unhealthy)",
        id="another member follows nobody",
    ),
    pytest.param(
        down(to_upgrade(runs=(NEW, NEW, NEW), upgrading="db-0000"), "db-0001"),
        "db-0001 (no answer)",
        id="all are done, but one is silent",
    ),
]


@pytest.mark.parametrize(("state", "obstacle"), OBSTACLES)
def test_the_next_member_waits_until_all_are_healthy_and_in_step(state: ClusterState, obstacle: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Upgrading")
    assert obstacle in made.message


def test_a_member_a_little_behind_is_in_step() -> None:
    assert plan(_lagging(LAG)).actions


def test_an_upgrade_does_not_begin_while_a_member_is_silent() -> None:
    made = plan(down(to_upgrade(), "db-0001"))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")


def test_an_upgrade_does_not_begin_without_a_known_leader() -> None:
    state = led_by(to_upgrade(), "nobody")

    assert plan(state).message.endswith("waits for a leader")


def test_a_member_that_lost_its_pod_is_nothing_to_upgrade() -> None:
    """Its pod would show the version that it runs; the quorum is found lost a moment later."""
    state = to_upgrade(runs=(NEW, NEW, NEW))
    for name in ("db-0000", "db-0001"):
        state = changed(state, name, pod=None, answer=None)

    assert roll(state) is None


def test_a_member_that_lost_its_pod_delays_the_upgrade_of_others() -> None:
    made = roll(changed(to_upgrade(runs=(OLD, NEW, NEW)), "db-0001", pod=None, answer=None))

    assert made is not None
    assert (made.actions, made.reason) == ((), "UpgradeWaiting")


@pytest.mark.parametrize("runs", [(OLD,), (OLD, OLD)], ids=["the only copy", "one of two voters"])
def test_a_member_that_would_lose_its_data_is_not_stopped_where_it_is_needed(
    runs: tuple[str, ...],
) -> None:
    """A claim that is being deleted is kept for as long as a pod uses it."""
    made = plan(changed(to_upgrade(persistent(size=len(runs)), runs=runs), "db-0", claim=DELETED_CLAIM))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")
    assert "db-0, whose claim is being deleted" in made.message


def test_such_a_member_is_upgraded_and_then_replaced_where_the_others_go_on_without_it() -> None:
    state = led_by(to_upgrade(persistent(), runs=(OLD, NEW, NEW), upgrading="db-1"), "db-1")

    assert (
        ReplaceMember(name="db-0", version=NEW) in plan(changed(state, "db-0", claim=DELETED_CLAIM)).actions
    )


def test_such_a_member_is_the_first_so_that_it_is_not_needed_while_another_is_away() -> None:
    state = changed(to_upgrade(persistent()), "db-0", claim=DELETED_CLAIM)

    assert ReplaceMember(name="db-0", version=NEW) in plan(led_by(state, "db-1")).actions


def test_no_other_member_is_stopped_while_such_a_member_has_been_upgraded_already() -> None:
    state = led_by(to_upgrade(persistent(), runs=(NEW, OLD, NEW), upgrading="db-2"), "db-1")
    made = plan(changed(state, "db-0", claim=DELETED_CLAIM))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeWaiting")
    assert made.message.endswith(
        "db-0, whose claim is being deleted: delete its pod, and another member replaces it"
    )


def test_such_a_single_member_may_be_saved_by_growing_first() -> None:
    state = changed(to_upgrade(persistent(size=3), runs=(OLD,)), "db-0", claim=DELETED_CLAIM)

    assert plan(state).actions[0] == AddLearner(name="db-1")


def test_an_upgrade_does_not_begin_while_a_member_does_not_vote() -> None:
    state = to_upgrade(runs=(OLD,) * 4, size=3)
    state = changed(state, "db-0003", entry=entry("db-0003", is_learner=True))

    made = roll(state)

    assert made is not None
    assert "db-0003, which does not vote yet" in made.message


def _to_37(*snapshots: int | None, initial: str = "3.5.35") -> ClusterState:
    """Three members of 3.6 that have saved so many raft snapshots, by number."""
    state = to_upgrade(runs=("3.6.16",) * 3, wanted="3.7.3", initial=initial)
    for member, saved in zip(state.members, snapshots, strict=False):
        state = changed(state, member.name, snapshots=saved)
    return state


@pytest.mark.parametrize("initial", ["3.5.35", ""])
def test_the_log_is_padded_while_a_member_has_no_raft_snapshot(initial: str) -> None:
    state = _to_37(1, 0, 1, initial=initial)

    begun = Upgrade(origin="3.6.16", target="3.7.3")
    assert plan(state).actions == (remembered(state, begun), PadLog(entries=PAD))


def test_without_knowing_of_raft_snapshots_no_member_is_stopped() -> None:
    made = plan(_to_37(1, None, 1))

    assert (made.actions, made.reason) == ((), "UpgradeWaiting")


@pytest.mark.parametrize("state", [_to_37(1, 2, 1), _to_37(initial="3.6.16"), _to_37(initial="3.7.0")])
def test_with_a_raft_snapshot_or_without_old_entries_members_are_stopped(state: ClusterState) -> None:
    assert plan(state).actions[1:] == (ReplaceMember(name="db-0002", version="3.7.3"),)


def test_a_member_that_runs_3_7_needs_no_raft_snapshot() -> None:
    state = at(_to_37(1, 1, None), "db-0002", "3.7.3")

    assert plan(state).actions[1:] == (ReplaceMember(name="db-0001", version="3.7.3"),)


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
def test_an_unreachable_version_is_refused_with_what_to_do(runs: str, wanted: str, words: str) -> None:
    assert words in refusal(Version.parse(runs), Version.parse(wanted))

    made = plan(to_upgrade(runs=(runs,) * 3, wanted=wanted))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeRefused")
    assert words in made.message


@pytest.mark.parametrize(("runs", "wanted"), ALLOWED)
def test_a_reachable_version_is_not_refused(runs: str, wanted: str) -> None:
    assert refusal(Version.parse(runs), Version.parse(wanted)) == ""


def test_a_refused_version_stops_no_repair() -> None:
    state = to_upgrade(runs=("3.5.35",) * 3, wanted="3.7.3", size=4)

    (join,) = (action for action in plan(state).actions if isinstance(action, CreateMember))
    assert join.version == "3.5.35"


def test_the_way_back_is_open_while_a_member_runs_the_earlier_version() -> None:
    assert not refused(to_upgrade(runs=("3.5.35", "3.6.16", "3.6.16"), wanted="3.5.35"))
    assert refused(to_upgrade(runs=("3.6.16", "3.6.16", "3.6.16"), wanted="3.5.35"))


def test_a_silent_member_may_still_run_what_ran_before() -> None:
    state = to_upgrade(runs=("3.5.35", "3.6.16", "3.6.16"), wanted="3.6.16", upgrading="db-0000")

    assert str(down(state, "db-0000").lowest_version) == OLD
    assert str(state.lowest_version) == "3.5.35"


def test_where_nothing_answers_a_new_member_starts_at_the_desired_version() -> None:
    state = down(to_upgrade(), "db-0000", "db-0001", "db-0002")

    assert state.lowest_version is None
    assert joining_version(state) == NEW


def test_an_answer_without_a_valid_version_does_not_count() -> None:
    assert str(to_upgrade(runs=("not known", OLD, OLD)).lowest_version) == OLD
