"""Members of ours whose resource has no status: taken over with a quorum of exactly them, else left alone."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import Remember, Stage, TakeBack
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.orphans import Orphan
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    answering,
    bootstrapped,
    changed,
    down,
    ephemeral,
    not_bootstrapped,
    old_claim,
    persistent,
    refusing,
    unlisted,
    with_record,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH

UID = "another-uid"


def created_again(cluster: DesiredCluster) -> ClusterState:
    """A cluster that serves, of a resource that has just been created."""
    state = bootstrapped(cluster)
    orphans = tuple(Orphan(kind="Pod", name=m.name, uid=f"pod-{m.name}") for m in state.members)
    desired = replace(state.desired, persisted=PersistedState(), uid=UID)
    return replace(state, desired=desired, orphans=orphans, has_client_service=False, budget=None, age=1.0)


def is_held(state: ClusterState, message: str) -> None:
    made = plan(state)
    assert (made.reason, made.stage, made.actions) == ("StatusMissing", Stage.HELD, ())
    assert message in made.message


@BOTH
def test_a_quorum_of_exactly_the_members_that_exist_is_taken_over(cluster: DesiredCluster) -> None:
    state = created_again(cluster)
    made = plan(state)

    token = TOKEN if cluster.kind.outlives_pod else UID
    persisted = PersistedState(
        bootstrap=Bootstrap(members=(), token=token), cluster_id=CLUSTER_ID, next_ordinal=3
    )
    assert made.actions == (*(TakeBack(orphan=o) for o in state.orphans), Remember(persisted=persisted))
    assert (made.reason, made.stage) == ("TakingOver", Stage.WORKING)


@BOTH
def test_what_was_taken_back_before_the_operator_died_is_not_taken_back_again(
    cluster: DesiredCluster,
) -> None:
    state = created_again(cluster)
    made = plan(replace(state, orphans=()))
    assert [type(action) for action in made.actions] == [Remember]


def test_a_service_for_another_etcd_cluster_is_not_taken_back() -> None:
    """That of a restore in place, perhaps: it would keep all clients away."""
    orphans = (Orphan(kind="Service", name="db", uid="s", token="t"),)
    made = plan(replace(created_again(persistent()), orphans=orphans))
    assert [type(action) for action in made.actions] == [Remember]


@BOTH
def test_a_silent_member_is_taken_over_with_its_quorum(cluster: DesiredCluster) -> None:
    state = created_again(cluster)
    assert plan(down(state, state.members[0].name)).reason == "TakingOver"


@BOTH
def test_without_a_quorum_nothing_begins_and_the_message_says_what_to_delete(cluster: DesiredCluster) -> None:
    state = replace(created_again(cluster), has_quorum=False)
    kinds = "etcdpeer,replicaset,pod" if cluster.kind.outlives_pod else "pod"
    objects = f"{kinds},service,poddisruptionbudget,networkpolicy"
    command = f"kubectl delete {objects} --namespace ns --selector cluster=db`"
    is_held(state, command)
    silent = down(unlisted(state, *state.by_name), *state.by_name)
    is_held(silent, command)


@BOTH
def test_no_member_may_be_unlisted(cluster: DesiredCluster) -> None:
    state = created_again(cluster)
    name = state.members[2].name
    is_held(unlisted(state, name), f"kubectl delete {cluster.kind.kubectl_kinds} {name}`")


@BOTH
def test_no_listed_member_may_lack_its_storage(cluster: DesiredCluster) -> None:
    state = created_again(cluster)
    lost = state.members[2]
    gone = Member(name=lost.name, entry=lost.entry)
    members = (*state.members[:2], gone)
    is_held(replace(state, members=members), f"{lost.name} ({lost.id}) without {cluster.kind.storage_word}")


@BOTH
def test_no_unknown_member_may_be_listed(cluster: DesiredCluster) -> None:
    unknown = EtcdMember(id="7", name="other", peer_urls=("http://other:2380",))
    is_held(replace(created_again(cluster), unknown_members=(unknown,)), "etcd lists other (7)")


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(old_claim("db-1", token=""), id="without a token"),
        pytest.param(old_claim("db-1", token="other"), id="of another token"),
        pytest.param(old_claim("db-1", cluster_id="other"), id="of another cluster"),
        pytest.param(old_claim("db-1", member_id="other"), id="of another member"),
    ],
)
def test_claims_are_annotated_as_those_of_the_members(claim: object) -> None:
    is_held(changed(created_again(persistent()), "db-1", claim=claim), "are not annotated as those")


def test_a_token_that_the_next_recovery_would_have_is_not_recorded() -> None:
    """The status was lost on the same resource: it would count recoveries from 1 again."""
    state = created_again(persistent())
    for name in state.by_name:
        state = changed(state, name, claim=old_claim(name, token=f"{UID}-1"))
    is_held(state, "kubectl delete etcdclusters.example db --namespace ns --cascade=orphan`")


@BOTH
def test_members_that_require_a_user_are_left_alone(cluster: DesiredCluster) -> None:
    assert plan(refusing(created_again(cluster))).reason == "AuthEnabled"


def test_members_of_two_clusters_are_left_alone() -> None:
    state = created_again(persistent())
    assert plan(answering(state, "db-1", cluster_id="other")).reason == "SplitBrain"


@BOTH
def test_nothing_begins_before_the_objects_of_a_former_resource_are_released(cluster: DesiredCluster) -> None:
    """Members 4 to 6, perhaps: an empty cluster of other names would begin beside them."""
    state = not_bootstrapped(cluster, former=("db-4",))
    made = plan(state)
    assert (made.reason, made.stage, made.actions) == ("PredecessorTerminating", Stage.WORKING, ())
    recorded = with_record(state, bootstrap=Bootstrap(members=("db-0",), token=TOKEN))
    assert plan(recorded).reason != "PredecessorTerminating"


def test_an_ephemeral_cluster_goes_on_with_numbers_that_none_had() -> None:
    (*_, remember) = plan(created_again(ephemeral(size=5))).actions
    assert isinstance(remember, Remember)
    assert remember.persisted.next_ordinal == 5
