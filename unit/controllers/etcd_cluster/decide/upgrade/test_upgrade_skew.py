"""Which version may follow which."""

import pytest
from semver import Version

from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Stage
from etcd_operator.controllers.etcd_cluster.decide.rules.upgrade import refused
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import joining_version, refusal
from unit.controllers.etcd_cluster.decide.builders import down
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import NEW, OLD, to_upgrade

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
