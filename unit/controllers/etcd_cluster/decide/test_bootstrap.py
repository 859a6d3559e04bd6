"""Bootstrap: static, once, and never again."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    ChangeStorage,
    ConfirmClaimsLost,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DropPod,
    Remember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.first_start import LONG_BOOTSTRAP
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.rules.bootstrap import bootstrap
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    IMAGE_PROBLEM,
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    claim,
    ephemeral,
    not_bootstrapped,
    peer,
    persistent,
    pod,
    silent,
    without,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH, NAMES


@BOTH
def test_a_bootstrap_writes_down_its_initial_members_before_it_makes_any(cluster: DesiredCluster) -> None:
    names = NAMES[cluster.kind]
    made = plan(not_bootstrapped(cluster))

    persisted = PersistedState(
        bootstrap=Bootstrap(members=names, token=TOKEN, version=VERSION), next_ordinal=3
    )
    start = Bootstrapping(members=names, token=TOKEN)
    assert made.actions == (
        Remember(persisted=persisted),
        *(CreateMember(name=name, start=start, version=VERSION) for name in names),
    )
    assert (made.stage, made.reason) == (Stage.WORKING, "Creating")
    assert made.requeue_after == BOOTSTRAP_POLL


@pytest.mark.parametrize(
    "member",
    [replace(silent(ephemeral(), "db-0000")), replace(silent(persistent(), "db-0"), claim=None, pod=None)],
    ids=["a pod", "a peer"],
)
def test_members_without_a_record_of_their_bootstrap_are_never_bootstrapped_again(member: object) -> None:
    made = plan(not_bootstrapped(ephemeral(), members=(member,)))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("StatusMissing", Stage.HELD, 10.0)


@BOTH
def test_a_bootstrap_that_was_cut_off_goes_on_with_the_initial_members_it_wrote_down(
    cluster: DesiredCluster,
) -> None:
    state = bootstrapping(replace(cluster, size=1))
    bootstrap = Bootstrap(members=NAMES[cluster.kind], token="older")
    state = replace(
        state, desired=replace(state.desired, persisted=PersistedState(bootstrap=bootstrap, next_ordinal=3))
    )

    made = plan(replace(state, members=(), budget=2))

    start = Bootstrapping(members=bootstrap.members, token="older")
    expected = tuple(CreateMember(name=name, start=start) for name in bootstrap.members)
    assert made.actions == expected


def test_services_follow_the_pods_that_are_there() -> None:
    state = changed(bootstrapping(ephemeral(), has_client_service=False), "db-0001", has_service=False)

    assert plan(state).actions == (CreateClientService(), CreateMemberService(name="db-0001"))


def test_lost_initial_members_are_made_before_services() -> None:
    state = changed(bootstrapping(persistent(), has_client_service=False), "db-1", peer=None)
    state = changed(state, "db-1", pod=None)

    start = Bootstrapping(members=NAMES[PERSISTENT], token=TOKEN)
    assert plan(state).actions == (
        CreateMember(name="db-1", start=start, version=VERSION),
        CreateClientService(),
    )


@pytest.mark.parametrize(
    ("age", "poll"),
    [(0.0, BOOTSTRAP_POLL), (LONG_BOOTSTRAP, BOOTSTRAP_POLL), (LONG_BOOTSTRAP + 1, 2.0)],
    ids=["young", "at the limit", "old"],
)
def test_a_long_bootstrap_is_observed_less_often(age: float, poll: float) -> None:
    assert plan(bootstrapping(persistent(), age=age)).requeue_after == poll
    assert plan(bootstrapping(persistent(), age=age, has_client_service=False)).requeue_after == poll
    assert (
        plan(changed(bootstrapping(persistent(), age=age), "db-1", problem=IMAGE_PROBLEM)).requeue_after
        == poll
    )


def test_what_keeps_a_initial_member_from_starting_is_reported() -> None:
    made = plan(changed(bootstrapping(persistent()), "db-1", problem=IMAGE_PROBLEM))

    assert (made.actions, made.stage) == ((), Stage.HELD)
    assert (made.reason, made.message) == ("ErrImagePull", "db-1: no such image")


# The cluster ID is recorded


@BOTH
def test_the_cluster_id_is_recorded_when_a_quorum_answers(cluster: DesiredCluster) -> None:
    name = NAMES[cluster.kind][0]
    state = changed(bootstrapping(cluster, has_quorum=True), name, answer=answer(name, committed=3))

    made = plan(state)

    assert made.actions == (Remember(persisted=replace(state.persisted, cluster_id=CLUSTER_ID)),)
    assert (made.reason, made.stage, made.requeue_after) == ("ClusterCreated", Stage.WORKING, BOOTSTRAP_POLL)


@pytest.mark.parametrize(
    ("committed", "is_recorded"),
    [
        pytest.param(3, False, id="as many entries as initial members: nobody led yet"),
        pytest.param(4, True, id="one more: a leader had a quorum behind it"),
    ],
)
def test_a_commit_that_nobody_saw_counts_as_well(committed: int, is_recorded: bool) -> None:
    state = changed(bootstrapping(persistent()), "db-0", answer=answer("db-0", committed=committed))

    assert (plan(state).reason == "ClusterCreated") is is_recorded


@pytest.mark.parametrize("has_quorum", [True, False])
def test_nothing_is_recorded_without_an_answer(has_quorum: bool) -> None:
    made = bootstrap(bootstrapping(persistent(), has_quorum=has_quorum))

    assert made is not None
    assert made.reason == "Creating"


def test_nothing_is_recorded_while_two_ids_answer() -> None:
    state = changed(bootstrapping(persistent(), has_quorum=True), "db-0", answer=answer("db-0"))
    state = changed(state, "db-1", answer=answer("db-1", cluster_id="feed"))

    made = bootstrap(state)

    assert made is not None
    assert made.reason == "Creating"


def test_a_recorded_cluster_id_comes_before_lost_initial_members_are_made_again() -> None:
    state = without(bootstrapping(ephemeral(), has_quorum=True), "db-0002")
    state = changed(state, "db-0000", answer=answer("db-0000"))

    assert plan(state).reason == "ClusterCreated"


@BOTH
def test_after_the_recorded_cluster_id_nothing_bootstraps_the_cluster_again(cluster: DesiredCluster) -> None:
    state = bootstrapped(cluster)

    assert bootstrap(state) is None
    assert bootstrap(replace(state, members=(), has_quorum=False)) is None
    made = plan(replace(state, members=(), has_quorum=False))
    assert (made.actions, made.reason) == ((), "NoBackup")


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


def _storage_corrected(**of_claims: bool) -> ClusterState:
    """The spec has other storage than the peers, whose members have not run."""
    state = bootstrapping(persistent())
    for name in NAMES[PERSISTENT]:
        outdated = peer(name, has_other_storage=True)
        claimed = claim(name, **{"is_bound": False, **of_claims})
        state = changed(state, name, peer=outdated, claim=claimed, pod=None, has_replica_set=True)
    return state


def test_storage_is_corrected_as_long_as_no_claim_has_a_volume() -> None:
    state, names = _storage_corrected(), NAMES[PERSISTENT]
    assert plan(state).actions == (ChangeStorage(names=names),)
    assert plan(changed(state, "db-0", claim=None)).actions == (ChangeStorage(names=names),)
    bound = plan(changed(state, "db-2", claim=claim("db-2", is_bound=True)))
    assert not any(isinstance(action, ChangeStorage) for action in bound.actions)
    lost = plan(changed(state, "db-2", claim=claim("db-2", is_lost=True, is_bound=False)))
    assert not any(isinstance(action, ChangeStorage) for action in lost.actions)


def test_members_with_other_storage_are_made_when_all_of_the_old_ones_are_gone() -> None:
    """The claim of one that starts while another has a claim or a ReplicaSet would count as lost."""
    state = _storage_corrected(is_terminating=True)
    for name in NAMES[PERSISTENT]:
        ending = peer(name, has_other_storage=True, is_terminating=True)
        state = changed(state, name, peer=ending)
    assert plan(without(state, "db-0")).actions == ()
    assert plan(without(changed(state, "db-2", peer=None), "db-0", "db-1")).actions == ()
    gone = plan(without(state, *NAMES[PERSISTENT])).actions
    assert [a.name for a in gone if isinstance(a, CreateMember)] == list(NAMES[PERSISTENT])


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
