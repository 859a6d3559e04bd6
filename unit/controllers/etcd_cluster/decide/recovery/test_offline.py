"""When the data of members that answer nobody is read, and what counts once it is known."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateMember,
    CreateMemberService,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    AddReader,
    ConfirmLoss,
    ConfirmSilence,
    ReadMember,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts, Reading
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import (
    MOST_DOUBLED,
    READ_AFTER,
    READ_MAJORITY_AFTER,
    REST,
    why_no_other_reader,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import PATIENCE
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    VERSION,
    answer,
    changed,
    entry,
    pod,
    refusing,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import quorum_losses
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import NAME, RECOVERY, lost, recovering
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import name_of

READER = ReaderFacts(name="survivor-reader-1", is_running=True)
SHA = "ab" * 32
RUNS = "db-2"


def restarted(asked: str = "", *, size: int = 3, seconds: float = READ_AFTER) -> ClusterState:
    """All are silent; the last one's etcd runs, in a pod."""
    state = lost(size, *range(size), asked=asked, unavailable_for=seconds)
    for member in state.members:
        runs = member.name == f"db-{size - 1}"
        state = changed(state, member.name, pod=pod(member.name, is_running=True) if runs else None)
    return state


def with_pod(state: ClusterState, name: str, **changes: object) -> ClusterState:
    found = state.by_name[name].pod
    assert found is not None
    return changed(state, name, pod=replace(found, **changes))  # type: ignore[arg-type]


def read(state: ClusterState, name: str, revision: int = 9, *, is_learner: bool = False) -> ClusterState:
    """The data of a member has been read; it lists all of them."""
    listed = tuple(entry(member.name) for member in state.members)
    reply = answer(name, () if is_learner else listed, leader="", revision=revision, is_learner=is_learner)
    state = with_pod(state, name, reader=READER)
    return changed(state, name, reading=Reading(answer=reply, sha256=SHA))


def adds(state: ClusterState) -> list[str]:
    return [action.name for action in plan(state).actions if isinstance(action, AddReader)]


def test_a_minority_that_runs_and_answers_nobody_is_read_after_a_while() -> None:
    assert adds(restarted(seconds=READ_AFTER - 0.1)) == []
    made = plan(restarted())
    assert made.actions == (AddReader(name=RUNS),)
    assert made.reason == "QuorumLost"


def test_a_majority_that_runs_is_left_time_to_elect_a_leader() -> None:
    state = changed(restarted(), "db-1", pod=pod("db-1", is_running=True))
    assert adds(state) == []
    late = replace(state, unavailable_for=READ_MAJORITY_AFTER)
    assert adds(late) == ["db-1", RUNS]


@pytest.mark.parametrize(
    "changes",
    [
        {"is_running": False},
        {"is_terminating": True},
        {"reader": READER},
        {"reader": replace(READER, is_running=False)},
    ],
    ids=["does not run", "is being deleted", "is being read", "is about to be read"],
)
def test_nothing_is_added_where_it_cannot_help(changes: dict[str, object]) -> None:
    assert adds(with_pod(restarted(), RUNS, **changes)) == []


def test_a_member_that_requires_a_user_is_not_read() -> None:
    assert adds(refusing(restarted(), RUNS)) == []


def test_another_reader_follows_one_that_has_ended() -> None:
    assert adds(with_pod(restarted(), RUNS, reader=replace(READER, has_ended=True))) == [RUNS]


@pytest.mark.parametrize(
    ("number", "seconds", "is_kept"),
    [
        (1, 0.0, False),
        (2, REST - 1, True),
        (2, REST, False),
        (4, 4 * REST - 1, True),
        (4, 4 * REST, False),
        (900, 2**MOST_DOUBLED * REST, False),
    ],
)
def test_each_reader_that_has_ended_doubles_the_time_until_the_next(
    number: int, seconds: float, is_kept: bool
) -> None:
    """They cannot be removed from the pod."""
    ended = replace(READER, is_running=False, has_ended=True, number=number)
    assert bool(why_no_other_reader(ended, seconds, is_of_this_loss=True)) is is_kept


@pytest.mark.parametrize("is_kept", [True, False], ids=["in this loss", "in an earlier one"])
def test_a_member_that_follows_a_leader_is_not_read_again(*, is_kept: bool) -> None:
    ended = replace(READER, is_running=False, has_ended=True, found_leader=True)
    assert ("follows a leader" in why_no_other_reader(ended, 1e9, is_of_this_loss=is_kept)) is is_kept
    assert not why_no_other_reader(replace(ended, found_leader=False), 1e9, is_of_this_loss=is_kept)


def test_while_it_is_read_it_is_waited_for() -> None:
    made = plan(with_pod(restarted(), RUNS, reader=READER))
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "QuorumLost")


def test_it_is_read_beside_an_upgrade_that_is_blocked() -> None:
    """Nothing else shows which recovery is possible, and without its name no person can request one."""
    upgrade = Upgrade(origin=VERSION, target="3.6.17", member="db-1")
    no_node = PodProblem(reason="Unschedulable", message="no node is free")
    state = changed(with_record(restarted(seconds=60.0), upgrade=upgrade), "db-1", problem=no_node)

    assert adds(state) == [RUNS]
    assert adds(replace(state, unavailable_for=PATIENCE)) == []
    made = plan(with_pod(state, RUNS, reader=READER))
    assert (made.actions, made.reason) == ((), "UpgradeBlocked")
    assert f"={NAME} " in plan(read(state, RUNS)).message


@pytest.mark.parametrize("is_finished", [False, True], ids=["its etcd crashes", "its pod has ended"])
def test_a_reader_beside_an_etcd_that_does_not_run_is_not_waited_for(is_finished: bool) -> None:
    """Nothing is read of it (`recovery.readers`), and perhaps nobody reports the end of its containers."""
    stopped = replace(pod("db-1"), is_running=False, is_finished=is_finished, reader=READER)
    problem = None if is_finished else PodProblem(reason="CrashLoopBackOff", message="it refuses to start")
    state = changed(lost(), "db-1", pod=stopped, problem=problem)
    assert f"={NAME} " in plan(state).message


def test_an_etcd_that_restarts_while_it_is_read_is_waited_for() -> None:
    restarting = replace(pod("db-1"), is_running=False, reader=READER)
    made = plan(changed(lost(asked=NAME), "db-1", pod=restarting))
    assert (made.actions, made.stage) == ((), Stage.WORKING)


@pytest.mark.parametrize(("asked", "reason"), [("", "QuorumLost"), (NAME, "RecoveryRefused")])
def test_what_cannot_be_read_is_reported_with_the_next_step(asked: str, reason: str) -> None:
    state = changed(with_pod(restarted(asked), RUNS, reader=READER), RUNS, unreadable="no image")
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, reason)


@pytest.mark.parametrize(
    "changes", [{}, {"unreadable": "no image"}], ids=["while it is read", "when it cannot be read"]
)
def test_the_known_problems_of_the_others_are_reported_meanwhile(changes: dict[str, object]) -> None:
    lost_data = PodProblem(reason="DataLost", message="its volume is empty")
    state = changed(with_pod(restarted(), RUNS, reader=READER), RUNS, **changes)
    made = plan(changed(state, "db-0", problem=lost_data))
    assert (made.reason, made.actions) == ("QuorumLost", ())


def test_a_survivor_that_was_read_is_offered_and_recovered_from_by_name() -> None:
    made = plan(read(restarted(), RUNS))
    assert (made.stage, made.reason) == (Stage.HELD, "QuorumLost")
    assert f"recover={NAME}" in made.message

    made = plan(read(restarted(NAME), RUNS))
    silence, _, create = made.actions
    uid = pod(RUNS).uid
    assert isinstance(silence, ConfirmSilence)
    assert (silence.survivors, silence.read) == ((), (ReadMember(name=RUNS, uid=uid, sha256=SHA),))
    assert recorded(made).revision == 9
    assert isinstance(create, CreateMember)
    assert isinstance(create.start, Seeding)
    assert create.start.source == OfflineSurvivor(name=RUNS, sha256=SHA)


def test_the_newer_of_one_that_answers_and_one_that_was_read_is_recovered_from() -> None:
    answering = lost(5, 0, 1, 2, 3)  # db-4 answers, at revision 7
    state = changed(answering, "db-3", pod=pod("db-3", is_running=True))
    assert f"{CLUSTER_ID}/db-3/1" in plan(read(state, "db-3", 9)).message
    assert f"{CLUSTER_ID}/db-4/1" in plan(read(state, "db-3", 5)).message


def test_one_that_may_be_newer_is_read_before_a_requested_recovery_begins() -> None:
    answering = lost(5, 0, 1, 2, 3, asked=f"{CLUSTER_ID}/db-4/1")
    for number in range(3):
        answering = changed(answering, f"db-{number}", pod=None)
    state = changed(answering, "db-3", pod=pod("db-3", is_running=True))
    assert plan(state).actions == (AddReader(name="db-3"),)
    assert plan(with_pod(state, "db-3", reader=READER)).actions == ()
    failed = changed(with_pod(state, "db-3", reader=READER), "db-3", unreadable="broken")
    assert isinstance(plan(failed).actions[0], ConfirmSilence)


def test_nobody_recovers_from_a_learner_that_was_read() -> None:
    state = read(restarted(), RUNS, is_learner=True)
    assert "recover=" not in plan(state).message


def test_members_that_were_read_and_are_a_majority_may_elect_a_leader() -> None:
    state = changed(restarted(), "db-1", pod=pod("db-1", is_running=True))
    assert "recover=" not in plan(read(read(state, "db-1"), RUNS)).message


def test_a_learner_is_not_read_once_a_list_is_known() -> None:
    answering = lost(5, 0, 1, 2, 3)
    state = answering
    for number in range(4):
        state = changed(state, f"db-{number}", pod=None)
    extra = replace(state.by_name["db-3"], name="db-7", pod=pod("db-7", is_running=True))
    assert adds(replace(state, members=(*state.members, extra))) == []


def test_a_seed_that_was_lost_with_its_reader_is_followed_by_another_reading() -> None:
    state = with_pod(restarted(NAME), RUNS, reader=replace(READER, has_ended=True))
    state = recovering(state)
    gone = replace(state, members=tuple(m for m in state.members if m.name != RECOVERY.seed))
    assert plan(gone).actions == (AddReader(name=RUNS),)


def ephemeral_restarted(*silent: int, size: int = 3, gone: tuple[int, ...] = (0, 1)) -> ClusterState:
    """Most pods are gone; these others have restarted."""
    state = replace(quorum_losses.lost(size, *gone), unavailable_for=READ_AFTER)
    for number in silent:
        state = changed(state, name_of(number), answer=None, pod=running(name_of(number)))
    return state


def running(name: str) -> PodFacts:
    return pod(name, is_running=True, has_run=True, has_restarted=True, restarts=1)


def test_an_ephemeral_survivor_is_read_and_recovered_from_by_proof() -> None:
    state = ephemeral_restarted(2)
    name = name_of(2)
    assert plan(state).actions == (AddReader(name=name),)
    loss, *rest = plan(read_ephemeral(state, name)).actions
    assert isinstance(loss, ConfirmLoss)
    assert (loss.survivors, [member.name for member in loss.read]) == ((), [name])
    assert loss.gone == (name_of(0), name_of(1))
    (create,) = (action for action in rest if isinstance(action, CreateMember))
    assert isinstance(create.start, Seeding)
    assert create.start.source == OfflineSurvivor(name=name, sha256=SHA)


def read_ephemeral(state: ClusterState, name: str) -> ClusterState:
    listed = tuple(entry(name_of(number)) for number in range(state.desired.size))
    reply = answer(name, listed, leader="", revision=9)
    return changed(with_pod(state, name, reader=READER), name, reading=Reading(answer=reply, sha256=SHA))


def test_a_voter_that_cannot_be_read_is_waited_for() -> None:
    state = ephemeral_restarted(3, size=5, gone=(0, 1, 2))
    assert plan(state).actions == (AddReader(name=name_of(3)),)
    held = plan(changed(with_pod(state, name_of(3), reader=READER), name_of(3), unreadable="no image"))
    assert (held.actions, held.stage) == ((), Stage.HELD)


def without_reader(begun: ClusterState) -> ClusterState:
    return with_pod(changed(begun, name_of(2), reading=None), name_of(2), reader=None)


def begun_from_reading() -> ClusterState:
    """The recovery from the data of db-0002 is on record."""
    state = read_ephemeral(ephemeral_restarted(2), name_of(2))
    (remember,) = (a for a in plan(state).actions[:2] if isinstance(a, Remember))
    return replace(state, desired=replace(state.desired, persisted=remember.persisted))


def test_a_seed_is_not_made_for_a_survivor_that_is_not_read_any_more() -> None:
    assert isinstance(plan(begun_from_reading()).actions[0], CreateMember)
    assert plan(without_reader(begun_from_reading())).actions == (AddReader(name=name_of(2)),)


def test_a_seed_whose_creation_was_not_noted_needs_no_reader_any_more() -> None:
    """The operator died after it, and the reader has ended meanwhile."""
    lost_reader = without_reader(begun_from_reading())
    seed = Member(name=name_of(3), pod=pod(name_of(3)), has_service=True)
    made = plan(replace(lost_reader, members=(*lost_reader.members, seed)))
    noted, service = made.actions
    assert isinstance(noted, Remember)
    assert noted.persisted.next_ordinal == 4
    assert service == CreateMemberService(name=name_of(3))
