"""Initial members that are lost, or whose pods fail, before the cluster ID is recorded."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Bootstrapping,
    ConfirmClaimsLost,
    CreateMember,
    DropPod,
    Remember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    TOKEN,
    VERSION,
    answer,
    bootstrapping,
    changed,
    claim,
    ephemeral,
    peer,
    persistent,
    pod,
    without,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH, NAMES

ZERO, ONE, TWO = NAMES[EPHEMERAL]

AGAIN = (CreateMember(name=ONE, start=Bootstrapping(members=NAMES[EPHEMERAL], token=TOKEN), version=VERSION),)

LOST = without(bootstrapping(ephemeral()), ONE)

NEVER_STARTED = pod(ZERO, is_running=False, has_run=False)


def _proven(state: ClusterState, *names: str) -> ClusterState:
    for name in names:
        state = changed(state, name, never_led=True)
    return state


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_proven(LOST, ZERO, TWO), id="all others run and have never seen a leader"),
        pytest.param(
            _proven(changed(LOST, ZERO, pod=NEVER_STARTED), TWO), id="a process that never ran led nothing"
        ),
        pytest.param(without(bootstrapping(ephemeral()), ONE, ZERO, TWO), id="no initial member exists"),
    ],
)
def test_a_lost_initial_member_is_made_again_while_it_is_sure_that_no_quorum_formed(
    state: ClusterState,
) -> None:
    made = plan(state)

    assert made.reason == "Creating"
    assert set(AGAIN) <= set(made.actions)


@pytest.mark.parametrize(
    ("state", "doubtful"),
    [
        pytest.param(_proven(LOST, TWO), ZERO, id="one of the others may have served"),
        pytest.param(LOST, f"{ZERO}, {TWO}", id="nothing is known of the others"),
        pytest.param(
            changed(_proven(LOST, TWO), ZERO, pod=pod(ZERO, is_running=False)),
            ZERO,
            id="a process that has ended may have served",
        ),
        pytest.param(
            changed(_proven(LOST, ZERO, TWO), ZERO, never_led=False, answer=answer(ZERO, committed=3)),
            ZERO,
            id="an answer without a commit proves nothing",
        ),
    ],
)
def test_a_lost_initial_member_is_not_made_again_while_a_quorum_may_have_formed(
    state: ClusterState, doubtful: str
) -> None:
    made = plan(state)

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("BootstrapUncertain", Stage.HELD, 1.0)
    assert f"{ONE} was lost while {doubtful} may already have served" in made.message


# A pod that failed for good before the cluster ID is recorded


def _failed(state: ClusterState, *names: str, has_run: bool = True) -> ClusterState:
    for name in names:
        ended = pod(name, is_running=False, is_finished=True, has_run=has_run)
        state = changed(state, name, pod=ended, problem=EVICTED)
    return state


EVICTED = PodProblem(reason="Evicted", message="the node was low on memory")


@pytest.mark.parametrize(
    ("state", "names"),
    [
        pytest.param(_proven(_failed(bootstrapping(ephemeral()), ONE), ZERO, TWO), (ONE,), id="one of three"),
        pytest.param(
            _proven(_failed(bootstrapping(ephemeral()), ZERO, TWO), ONE), (ZERO, TWO), id="the majority"
        ),
        pytest.param(
            _failed(bootstrapping(ephemeral()), ZERO, ONE, TWO, has_run=False),
            (ZERO, ONE, TWO),
            id="none ran",
        ),
    ],
)
def test_a_failed_pod_goes_while_it_is_sure_that_nothing_left_has_served(
    state: ClusterState, names: tuple[str, ...]
) -> None:
    made = plan(state)

    assert made.actions == tuple(DropPod(name=name) for name in names)
    assert (made.reason, made.stage, made.requeue_after) == ("Creating", Stage.WORKING, BOOTSTRAP_POLL)
    assert made.message.startswith(f"{names[0]} (Evicted)")
    again = plan(without(state, *names))
    start = Bootstrapping(members=NAMES[EPHEMERAL], token=TOKEN)
    assert again.actions[: len(names)] == tuple(
        CreateMember(name=name, start=start, version=VERSION) for name in names
    )


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("token", "renewed"), [("uid-1", "uid-1.1"), ("uid-1.1", "uid-1.2")])
def test_where_all_have_failed_the_bootstrap_begins_again_under_another_token(
    size: int, token: str, renewed: str
) -> None:
    state = bootstrapping(ephemeral(size=size))
    bootstrap = Bootstrap(members=NAMES[EPHEMERAL][:size], token=token, version=VERSION)
    persisted = replace(state.persisted, bootstrap=bootstrap)
    state = _failed(replace(state, desired=replace(state.desired, persisted=persisted)), *bootstrap.members)

    again = Bootstrap(members=bootstrap.members, token=renewed, version=VERSION)
    assert plan(changed(state, ZERO, problem=None)).actions == (
        Remember(persisted=replace(persisted, bootstrap=again)),
        *(DropPod(name=name) for name in bootstrap.members),
    )


def test_a_failed_pod_stays_while_another_member_may_have_served() -> None:
    made = plan(_proven(_failed(bootstrapping(ephemeral()), ONE), TWO))

    assert (made.actions, made.reason) == ((), "BootstrapUncertain")


def test_a_failed_pod_of_a_persistent_member_is_for_its_replica_set() -> None:
    state = _failed(bootstrapping(persistent()), "db-1")
    assert plan(state).actions == ()

    lost = changed(_failed(bootstrapping(persistent(size=1)), "db-0"), "db-0", claim=None)
    assert not any(isinstance(action, DropPod) for action in plan(lost).actions)


@pytest.mark.parametrize("size", [1, 3])
def test_peers_whose_claims_are_all_lost_are_created_again(size: int) -> None:
    """Their pods wait for claims that nobody makes."""
    state = bootstrapping(persistent(size=size))
    names = NAMES[PERSISTENT][:size]
    for name in names:
        state = changed(state, name, claim=None, has_replica_set=True)
    made = plan(state)
    drops = [ReplaceMember(name=name, version=VERSION) for name in names]
    assert made.actions == (ConfirmClaimsLost(names=names), *drops)
    ending = plan(changed(state, "db-0", peer=peer("db-0", is_terminating=True))).actions
    assert ending[1:] == tuple(drops[1:])
    gone = plan(without(state, *names)).actions
    assert [action.name for action in gone if isinstance(action, CreateMember)] == list(names)


def test_a_claim_that_is_late_is_waited_for() -> None:
    state = bootstrapping(persistent(size=1))
    assert plan(changed(state, "db-0", claim=None)).actions == ()


def test_a_lost_peer_whose_claim_is_there_comes_back_to_its_data_at_any_time() -> None:
    state = changed(bootstrapping(persistent()), "db-1", peer=None, pod=None)

    start = Bootstrapping(members=NAMES[PERSISTENT], token=TOKEN)
    assert plan(state).actions == (CreateMember(name="db-1", start=start, version=VERSION),)


def test_a_lost_claim_is_not_made_again_while_those_that_have_their_data_go_on() -> None:
    state = changed(bootstrapping(persistent()), "db-1", peer=None, pod=None)
    state = changed(state, "db-2", peer=None, pod=None, claim=None)

    start = Bootstrapping(members=NAMES[PERSISTENT], token=TOKEN)
    assert plan(state).actions == (CreateMember(name="db-1", start=start, version=VERSION),)
    assert plan(changed(state, "db-1", peer=peer("db-1"))).reason == "BootstrapUncertain"


@pytest.mark.parametrize(
    ("is_started", "made"),
    [(True, ["db-0", "db-2"]), (False, list(NAMES[PERSISTENT])), (None, list(NAMES[PERSISTENT]))],
)
def test_a_claim_that_was_started_proves_that_another_was_lost(
    is_started: bool | None, made: list[str]
) -> None:
    """Without any ReplicaSet; claims of earlier versions of the operator do not record it."""
    state = bootstrapping(persistent())
    for name in NAMES[PERSISTENT]:
        found = claim(name, is_started=is_started) if name != "db-1" else None
        state = changed(state, name, peer=None, pod=None, claim=found)

    assert [a.name for a in plan(state).actions if isinstance(a, CreateMember)] == made


def test_a_persistent_initial_member_is_there_with_its_peer_not_with_its_pod() -> None:
    state = changed(bootstrapping(persistent()), "db-1", pod=None)
    assert plan(state).actions == ()

    orphan = changed(bootstrapping(persistent()), "db-1", peer=None, claim=claim("db-1"))
    assert [type(action) for action in plan(orphan).actions] == [CreateMember]


def test_an_ephemeral_initial_member_is_there_with_its_pod_only() -> None:
    state = _proven(changed(bootstrapping(ephemeral()), ONE, pod=None, peer=peer(ONE)), ZERO, TWO)

    assert plan(state).actions == AGAIN


@BOTH
def test_a_version_edited_before_any_initial_member_has_run_is_bootstrapped_with(
    cluster: DesiredCluster,
) -> None:
    state = bootstrapping(cluster)
    for member in state.members:
        state = changed(state, member.name, pod=pod(member.name, has_run=False, is_running=False))
    state = replace(state, desired=replace(state.desired, version="3.5.35"))
    bootstrap = state.persisted.bootstrap
    assert bootstrap is not None

    renewed = Bootstrap(members=bootstrap.members, token=bootstrap.token, version="3.5.35")
    assert plan(state).actions == (
        Remember(persisted=replace(state.persisted, bootstrap=renewed)),
        *(ReplaceMember(name=name, version="3.5.35") for name in bootstrap.members),
    )


@BOTH
def test_a_version_edited_later_waits_for_the_bootstrap(cluster: DesiredCluster) -> None:
    state = bootstrapping(cluster)
    state = replace(state, desired=replace(state.desired, version="3.5.35"))

    assert plan(state).actions == ()
