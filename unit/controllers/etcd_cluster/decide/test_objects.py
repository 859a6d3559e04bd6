"""Objects that are missing under a bootstrapped cluster."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateClientService,
    CreateMember,
    CreateMemberService,
    RestoreLabels,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.services import missing_services
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.orphans import Unlabelled
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules.objects import repair
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    TOKEN,
    VERSION,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    ephemeral,
    first_recovery,
    old_claim,
    persistent,
    pod,
    with_record,
    without,
)


def test_a_whole_cluster_needs_no_repair() -> None:
    assert repair(bootstrapped()) is None
    assert repair(bootstrapped(ephemeral())) is None


def test_an_not_bootstrapped_cluster_is_not_repaired_but_bootstrapped() -> None:
    assert repair(bootstrapping(persistent(), has_client_service=False)) is None


@pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
def test_a_lost_client_service_is_made_again(cluster: DesiredCluster) -> None:
    made = plan(bootstrapped(cluster, has_client_service=False))

    assert made.actions == (CreateClientService(),)
    assert (made.reason, made.stage) == ("Repairing", Stage.WORKING)


def test_an_ephemeral_member_without_a_pod_gets_no_service() -> None:
    state = changed(bootstrapped(ephemeral()), "db-0001", has_service=False, pod=None)

    assert missing_services(state) == []


def test_persistent_members_have_no_service_of_their_own() -> None:
    assert missing_services(changed(bootstrapped(), "db-1", has_service=False)) == []


def test_a_lost_peer_is_made_again_on_its_claim_and_never_bootstraps() -> None:
    made = plan(changed(bootstrapped(), "db-1", peer=None, pod=None, answer=None))

    assert made.actions == (CreateMember(name="db-1", start=Resuming(token=TOKEN), version=VERSION),)
    assert made.reason == "Repairing"


def test_all_lost_objects_are_made_again_at_once() -> None:
    lost = bootstrapped(has_client_service=False, has_quorum=False)
    for name in ("db-0", "db-1", "db-2"):
        lost = changed(lost, name, peer=None, pod=None, answer=None, entry=None)

    assert plan(lost).actions == (
        CreateClientService(),
        *(CreateMember(name=f"db-{i}", start=Resuming(token=TOKEN), version=VERSION) for i in range(3)),
    )


NOT_AGAIN = [
    pytest.param(
        changed(bootstrapped(), "db-1", peer=None, claim=None),
        id="without a claim there is no data to come back to",
    ),
    pytest.param(
        changed(bootstrapped(), "db-1", peer=None, claim=old_claim("db-1", is_terminating=True)),
        id="a claim that is being deleted is not used",
    ),
    pytest.param(
        changed(bootstrapped(), "db-1", peer=None, entry=None),
        id="a member that a quorum no longer lists was removed",
    ),
]


@pytest.mark.parametrize("state", NOT_AGAIN)
def test_a_peer_is_not_made_again_when_its_data_may_not_be_used(state: ClusterState) -> None:
    assert repair(state) is None


def test_without_a_quorum_an_empty_list_proves_nothing_and_the_peer_comes_back() -> None:
    state = changed(
        down(bootstrapped(has_quorum=False), "db-0", "db-2"), "db-1", peer=None, entry=None, answer=None
    )

    made = repair(state)

    assert made is not None
    assert made.actions == (CreateMember(name="db-1", start=Resuming(token=TOKEN), version=VERSION),)


@pytest.mark.parametrize("token", ["", "another"])
def test_without_a_quorum_no_peer_is_made_on_a_claim_that_proves_nothing(token: str) -> None:
    """It may be a copy of a member's volume, and two processes of one member must never meet."""
    state = down(bootstrapped(has_quorum=False), "db-0", "db-2")
    foreign = Member(name="db-3", claim=old_claim("db-3", token=token))

    assert repair(replace(state, members=(*state.members, foreign))) is None


def test_without_a_quorum_no_peer_is_made_on_a_copy_of_the_claim_of_another_member() -> None:
    """A clone of the volume has its annotations, too."""
    state = down(bootstrapped(has_quorum=False), "db-0", "db-1", "db-2")
    copy = Member(name="db-3", claim=replace(old_claim("db-3"), member_id="id-db-2"))
    silent = tuple(replace(member, entry=None) for member in state.members)

    assert repair(replace(state, members=(*silent, copy))) is None


def test_the_token_is_the_bootstraps_own_not_that_of_a_resource_made_later() -> None:
    state = changed(bootstrapped(), "db-1", peer=None)
    state = replace(state, desired=replace(state.desired, uid="uid-2"))

    made = repair(state)

    assert made is not None
    assert made.actions == (CreateMember(name="db-1", start=Resuming(token=TOKEN), version=VERSION),)


def test_a_record_without_its_bootstrap_falls_back_on_the_uid() -> None:
    state = changed(bootstrapped(), "db-1", peer=None, claim=old_claim("db-1", token=""))
    persisted = replace(state.persisted, bootstrap=None)
    state = replace(state, desired=replace(state.desired, uid="uid-2", persisted=persisted))

    made = repair(state)

    assert made is not None
    assert made.actions == (CreateMember(name="db-1", start=Resuming(token="uid-2"), version=VERSION),)


def test_a_pod_that_is_being_deleted_gets_a_service_only_while_etcd_lists_it() -> None:
    """Without a quorum nobody reports whether one that is not listed was removed, or given up."""
    whole = bootstrapped(ephemeral())
    going = changed(whole, "db-0000", has_service=False, pod=pod("db-0000", is_terminating=True))
    assert missing_services(going) == [CreateMemberService(name="db-0000")]
    assert missing_services(with_record(going, recovery=first_recovery("db-0000"))) == []
    unknown = replace(changed(going, "db-0000", entry=None, answer=None), has_quorum=False)
    assert missing_services(unknown) == []


def test_pods_get_their_labels_back_before_anything_is_concluded_from_their_absence() -> None:
    lost = tuple(Unlabelled(name=f"db-000{n}", uid=f"pod-{n}", member=f"db-000{n}") for n in (0, 1))
    state = without(bootstrapped(ephemeral()), "db-0000", "db-0001")

    made = plan(replace(state, unlabelled=lost))

    assert made.actions == tuple(RestoreLabels(pod=pod) for pod in lost)
