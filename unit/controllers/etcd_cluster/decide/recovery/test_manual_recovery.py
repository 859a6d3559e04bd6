"""Persistent members are given up by name only: when a recovery is offered, refused, begun, ended."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.api.shared_keys import RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmSilence
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import recovery_name
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from etcd_operator.controllers.etcd_cluster.decide.recovery.rules import offer, recover, refused
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import PATIENCE
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    VERSION,
    answering,
    bootstrapped,
    bootstrapping,
    changed,
    entry,
    ephemeral,
    peer,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import NAME, RECOVERY, lost
from unit.controllers.etcd_cluster.decide.recovery.stored import backup, sight

# Before it begins


NOT_OFFERED = [
    pytest.param(bootstrapped(persistent()), id="a quorum answers"),
    pytest.param(lost(3, 0), id="most answer, and elect a leader just now"),
    pytest.param(lost(3, 0, 1, 2), id="nobody answers: that is reported by another rule"),
    pytest.param(
        replace(bootstrapped(ephemeral()), has_quorum=False), id="members whose data ends with their pods"
    ),
    pytest.param(bootstrapping(persistent()), id="a cluster that is not bootstrapped"),
]


@pytest.mark.parametrize("state", NOT_OFFERED)
def test_where_nothing_is_lost_for_sure_no_recovery_is_offered(state: ClusterState) -> None:
    assert recover(state) is None
    assert offer(state) is None


def missed_the_promotion(unavailable_for: float = SILENCE) -> ClusterState:
    """Two of four are silent. db-2 does not know yet that db-3 votes, so it counts three voters."""
    older = tuple(entry(f"db-{number}", is_learner=number == 3) for number in range(4))
    state = replace(lost(4, 0, 3), unavailable_for=unavailable_for)
    return answering(state, "db-2", members=older, committed=17)


def test_who_missed_a_promotion_does_not_keep_a_recovery_from_being_offered() -> None:
    made = plan(missed_the_promotion())

    assert made.reason == "QuorumLost"
    assert f"{RECOVER_ANNOTATION}={CLUSTER_ID}/db-1/1" in made.message
    assert offer(missed_the_promotion(SILENCE - 0.1)) is None


def test_a_member_that_is_away_for_an_upgrade_is_no_loss() -> None:
    state = lost(2, 0)
    upgrade = Upgrade(origin=VERSION, target="3.6.17", member="db-0")
    assert plan(with_record(state, upgrade=upgrade)).reason == "Upgrading"


def test_an_upgrade_that_waits_does_not_keep_a_person_from_asking() -> None:
    upgrade = Upgrade(origin=VERSION, target="3.6.17", member="db-2")

    def reason(asked: str) -> str:
        state = lost(asked=asked)
        return plan(with_record(state, upgrade=upgrade)).reason

    assert (reason(""), reason("another"), reason(NAME)) == ("Upgrading", "Upgrading", "Recovering")


BLOCKED = Upgrade(origin=VERSION, target="3.6.17", member="db-1")
NO_IMAGE = PodProblem(reason="ErrImagePull", message="no such image")


def blocked(asked: str = "", unavailable_for: float = PATIENCE + 1, **changes: Any) -> ClusterState:
    """An upgrade has stopped one of three members, which does not start again, and another one is silent."""
    state = replace(lost(asked=asked), unavailable_for=unavailable_for)
    state = changed(state, "db-1", **{"problem": NO_IMAGE, **changes})
    return with_record(state, upgrade=BLOCKED)


@pytest.mark.parametrize("asked", ["", "another"])
def test_an_upgrade_that_is_blocked_without_a_quorum_names_the_recovery_as_well(asked: str) -> None:
    made = plan(blocked(asked))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeBlocked")
    assert made.message.startswith(f"db-1 does not come up at {VERSION}: ErrImagePull: no such image; ")
    assert f"annotate the EtcdCluster with {RECOVER_ANNOTATION}={NAME} " in made.message


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(blocked(unavailable_for=PATIENCE), id="not for long"),
        pytest.param(replace(blocked(), has_quorum=True), id="a quorum serves"),
        pytest.param(blocked(problem=None, pod=None), id="the member is starting"),
    ],
)
def test_no_recovery_is_named_beside_an_upgrade_that_may_end(state: ClusterState) -> None:
    made = plan(state)
    assert made.reason in ("Upgrading", "UpgradeBlocked")
    assert RECOVER_ANNOTATION not in made.message


def with_revisions(first: int) -> ClusterState:
    state = lost(5, 0, 1, 2)
    return answering(answering(state, "db-3", revision=first), "db-4", revision=9)


def losing_its_claim(state: ClusterState, name: str) -> ClusterState:
    claim = state.by_name[name].claim
    assert claim is not None
    return changed(state, name, claim=replace(claim, is_terminating=True))


SURVIVORS = [
    pytest.param(lost(), NAME, id="the only one"),
    pytest.param(with_revisions(8), f"{CLUSTER_ID}/db-4/1", id="the newest data"),
    pytest.param(with_revisions(9), f"{CLUSTER_ID}/db-3/1", id="the first of equals"),
    pytest.param(
        losing_its_claim(with_revisions(8), "db-4"),
        f"{CLUSTER_ID}/db-4/1",
        id="also if its claim is being deleted: the volume remains while it runs",
    ),
    pytest.param(
        changed(with_revisions(8), "db-4", claim=None),
        f"{CLUSTER_ID}/db-4/1",
        id="also if its claim is gone: its pod still uses the volume",
    ),
    pytest.param(
        changed(with_revisions(8), "db-4", peer=None, claim=None),
        f"{CLUSTER_ID}/db-4/1",
        id="also if its peer is gone: its pod runs",
    ),
    pytest.param(
        changed(with_revisions(9), "db-3", pod=pod("db-3", is_terminating=True)),
        f"{CLUSTER_ID}/db-4/1",
        id="of equals the one that is not being deleted",
    ),
]


@pytest.mark.parametrize(("state", "name"), SURVIVORS)
def test_a_loss_is_reported_with_the_name_of_what_could_be_recovered(state: ClusterState, name: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert f"{RECOVER_ANNOTATION}={name} " in made.message


def without_claims(state: ClusterState, *names: str) -> ClusterState:
    """Their claims and pods are gone for good."""
    for name in names:
        state = changed(state, name, claim=None, pod=None)
    return state


@pytest.mark.parametrize(
    ("state", "claims"),
    [
        pytest.param(lost(), "; their claims are kept, or", id="all are there"),
        pytest.param(
            losing_its_claim(losing_its_claim(lost(5, 0, 1, 2), "db-1"), "db-4"),
            "except those that are already being deleted (db-1, db-4)",
            id="two are being deleted",
        ),
        pytest.param(
            without_claims(lost(), "db-0", "db-1"),
            "; the claims that exist (db-2) are kept",
            id="two are gone",
        ),
        pytest.param(
            changed(without_claims(lost(), "db-0", "db-1"), "db-2", claim=None),
            "only these members have are then lost)",
            id="none is left",
        ),
    ],
)
def test_an_offer_promises_only_claims_that_stay(state: ClusterState, claims: str) -> None:
    assert claims in plan(state).message


LEAVING = [
    pytest.param({"pod": pod("db-4", is_terminating=True)}, id="its pod"),
    pytest.param(
        {"pod": pod("db-4", is_terminating=True), "claim": None}, id="its pod, and its claim is gone"
    ),
    pytest.param({"peer": peer("db-4", is_existing_only=True, is_terminating=True)}, id="its peer"),
]


@pytest.mark.parametrize("parts", LEAVING)
@pytest.mark.parametrize("asked", ["", f"{CLUSTER_ID}/db-3/1", f"{CLUSTER_ID}/backup:one/1"])
def test_nothing_older_is_offered_while_who_has_the_newest_data_is_being_deleted(
    asked: str, parts: dict[str, Any]
) -> None:
    state = replace(changed(with_revisions(8), "db-4", **parts), backups=sight(backup(revision=8)))

    made = plan(replace(state, desired=replace(state.desired, recover=asked)))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert RECOVER_ANNOTATION not in made.message


def test_each_missing_member_is_reported_with_what_is_known_of_it() -> None:
    state = changed(lost(5, 0, 1, 2), "db-0", claim=None)
    state = changed(state, "db-1", problem=PodProblem(reason="DataLost", message="empty"))

    assert plan(state).message.startswith("db-0 (its claim is missing), db-1 (DataLost), db-2 (silent): ")


REFUSED = [
    pytest.param(lost(asked=f"{CLUSTER_ID}/db-1/1"), "RecoveryRefused", id="another survivor"),
    pytest.param(lost(asked=f"{CLUSTER_ID}/db-2/2"), "RecoveryRefused", id="another attempt"),
    pytest.param(lost(asked="feed/db-2/1"), "RecoveryRefused", id="another cluster"),
    pytest.param(lost(3, 0, 1, 2, asked=NAME), "RecoveryRefused", id="nobody is left"),
    pytest.param(
        changed(lost(asked=NAME), "db-2", pod=pod("db-2", is_terminating=True)),
        "QuorumLost",
        id="the survivor is being deleted",
    ),
    pytest.param(answering(lost(asked=NAME), "db-2", version="3.5.9"), "RecoveryUnsupported", id="too old"),
]


@pytest.mark.parametrize(("state", "reason"), REFUSED)
def test_what_cannot_be_done_is_refused_and_reported(state: ClusterState, reason: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, reason)
    assert made.requeue_after is not None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(lost(asked=NAME, unavailable_for=SILENCE - 0.1), id="only just silent"),
        pytest.param(answering(lost(asked=NAME), "db-2", leader="id-db-0"), id="it still names a leader"),
    ],
)
def test_a_silence_has_to_last_before_anybody_is_given_up(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "QuorumLost")


def test_what_is_asked_for_by_its_name_is_begun() -> None:
    made = plan(lost(asked=NAME))

    silence, _, seed = made.actions
    assert isinstance(silence, ConfirmSilence)
    assert silence.survivors == (("db-2", "pod-db-2"),)
    assert silence.given_up == ("db-0", "db-1")
    assert recorded(made) == RECOVERY
    start = Seeding(source=Survivor(name="db-2"), token=f"{TOKEN}-1")
    assert seed == CreateMember(name="db-3", start=start, version=VERSION)
    assert made.reason == "Recovering"
    assert recovery_name(RECOVERY) == NAME


@pytest.mark.parametrize(
    ("asked", "recovery", "is_refused"),
    [
        pytest.param("", None, False, id="nothing is asked for"),
        pytest.param(NAME, None, True, id="nothing was ever lost"),
        pytest.param(NAME, RECOVERY, False, id="it is done"),
        pytest.param("feed/db-0/2", RECOVERY, True, id="another one is done"),
        pytest.param(NAME, msgspec.structs.replace(RECOVERY, replaces=""), True, id="it was not needed"),
    ],
)
def test_with_a_quorum_an_annotation_is_refused_unless_it_names_what_was_done(
    asked: str, recovery: Recovery | None, is_refused: bool
) -> None:
    state = bootstrapped(persistent(recover=asked))
    made = refused(with_record(state, cluster_id=CLUSTER_ID, recovery=recovery))

    assert (made is not None and made.reason == "RecoveryRefused") is is_refused


def test_a_healthy_cluster_reports_that_it_refuses() -> None:
    assert plan(bootstrapped(persistent(recover=NAME))).reason == "RecoveryRefused"


CARRIED_OUT = msgspec.structs.replace(RECOVERY, replaces="the cluster before")


@pytest.mark.parametrize(
    ("state", "requested"),
    [
        pytest.param(lost(3, 0, 1), recovery_name(CARRIED_OUT), id="one that was carried out"),
        pytest.param(lost(3, 0, 1, 2), recovery_name(CARRIED_OUT), id="the same, and nobody answers"),
        pytest.param(lost(3, 0, 1, 2), NAME, id="one that needs a member that answers"),
    ],
)
def test_a_request_that_cannot_be_carried_out_now_does_not_stop_repairs(
    state: ClusterState, requested: str
) -> None:
    state = with_record(state, recovery=CARRIED_OUT)
    state = changed(state, "db-0", pod=pod("db-0", is_running=False, has_no_data=True, restarts=9))

    made = plan(replace(state, desired=replace(state.desired, recover=requested)))
    assert made.reason == "Remounting"
    assert made == plan(state)
