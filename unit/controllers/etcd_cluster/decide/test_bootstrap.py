"""Bootstrap: static, once, and never again."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Bootstrapping,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.first_start import LONG_BOOTSTRAP
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.rules.bootstrap import bootstrap
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    IMAGE_PROBLEM,
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    ephemeral,
    not_bootstrapped,
    persistent,
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


def test_initial_members_that_have_not_answered_are_waited_for() -> None:
    state = changed(bootstrapping(persistent()), "db-1", answer=answer("db-1", committed=3))

    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Creating")


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
