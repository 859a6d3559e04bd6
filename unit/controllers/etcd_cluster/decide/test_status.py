"""Conditions: what a pass reports to the user."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.meta import LONGEST_MESSAGE, Condition, merge_conditions
from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.cluster_metrics import cluster_metrics
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PeerFinding, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from etcd_operator.controllers.etcd_cluster.decide.status import (
    CONDITIONS,
    awaits_cluster_version,
    conditions,
    current_version,
    member_names,
)
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, offered
from unit.controllers.etcd_cluster.decide.builders import (
    FULL_STORE,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    ephemeral,
    not_bootstrapped,
    old_claim,
    persistent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import away

PAUSED = persistent(is_paused=True)
INVALID = persistent(problem="no size")
UNSEEN = Unseen(reason="ObjectUnreadable", message="a pod")

CASES = [
    pytest.param(bootstrapped(), "True", "False", "False", "AsExpected", id="settled"),
    pytest.param(bootstrapping(persistent()), "False", "True", "False", "AsExpected", id="bootstrapping"),
    pytest.param(
        down(bootstrapped(), "db-1"), "True", "False", "True", "MemberUnhealthy", id="one member is silent"
    ),
    pytest.param(
        down(bootstrapped(has_quorum=False), "db-1", "db-2"),
        "False",
        "False",
        "True",
        "QuorumLost",
        id="quorum lost",
    ),
    pytest.param(
        not_bootstrapped(PAUSED), "False", "False", "False", "AsExpected", id="a pause is no problem"
    ),
    pytest.param(
        replace(away(), desired=replace(away().desired, is_paused=True)),
        "True",
        "False",
        "True",
        "MemberUnhealthy",
        id="a member that an upgrade stopped before a pause stays away",
    ),
    pytest.param(not_bootstrapped(INVALID), "False", "False", "True", "InvalidSpec", id="an invalid spec is"),
    pytest.param(
        down(bootstrapped(has_client_service=False), "db-1"),
        "True",
        "True",
        "True",
        "MemberUnhealthy",
        id="a silent member is reported also while something is done",
    ),
    pytest.param(
        changed(bootstrapped(has_client_service=False), "db-1", answer=answer("db-1", **FULL_STORE)),
        "True",
        "True",
        "True",
        "OutOfSpace",
        id="a full store is reported also while something is done",
    ),
    pytest.param(
        bootstrapped(unseen=UNSEEN, has_quorum=False),
        "Unknown",
        "False",
        "True",
        "ObjectUnreadable",
        id="without a quorum nothing is known of members that cannot be seen",
    ),
    pytest.param(
        bootstrapped(unseen=UNSEEN),
        "True",
        "False",
        "True",
        "ObjectUnreadable",
        id="a quorum that answers is one, whatever cannot be seen",
    ),
]


@pytest.mark.parametrize(("state", "available", "progressing", "degraded", "why"), CASES)
def test_the_conditions_of_a_cluster(
    state: ClusterState, available: str, progressing: str, degraded: str, why: str
) -> None:
    made = {c.type: c for c in conditions(state, plan(state))}

    assert {name: c.status for name, c in made.items()} == {
        "Available": available,
        "Progressing": progressing,
        "Degraded": degraded,
    }
    assert made["Degraded"].reason == why
    assert all(c.reason and c.message and c.observed_generation == 7 for c in made.values())


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (bootstrapped(), "QuorumHealthy"),
        (bootstrapping(persistent()), "Creating"),
        (bootstrapped(has_quorum=False), "QuorumLost"),
        (bootstrapping(persistent(), has_quorum=True), "QuorumHealthy"),
    ],
)
def test_why_a_cluster_is_available_or_not(state: ClusterState, reason: str) -> None:
    available = conditions(state, Plan.settled())[0]

    assert available.reason == reason


@pytest.mark.parametrize(
    ("state", "held", "reason"),
    [
        (bootstrapping(persistent()), "Unschedulable", "Unschedulable"),
        (bootstrapping(persistent()), "Paused", "Creating"),
        (bootstrapped(has_quorum=False), "Unschedulable", "QuorumLost"),
    ],
)
def test_a_cluster_that_cannot_be_created_is_unavailable_for_the_reason_of_its_hold(
    state: ClusterState, held: str, reason: str
) -> None:
    made = conditions(state, Plan.hold(held, "db-0: 0/3 nodes are available"))[0]
    assert (made.type, made.status, made.reason) == ("Available", "False", reason)


def test_the_plan_speaks_through_the_conditions() -> None:
    _, progressing, degraded = conditions(bootstrapped(), Plan.hold("BadThing", "do something"))
    assert (progressing.status, progressing.reason) == ("False", "BadThing")
    assert (degraded.status, degraded.reason, degraded.message) == ("True", "BadThing", "do something")

    _, progressing, degraded = conditions(bootstrapped(), Plan.wait("Growing", "a while", requeue_after=1))
    assert (progressing.status, progressing.reason, progressing.message) == ("True", "Growing", "a while")
    assert degraded.reason == "AsExpected"


def test_what_a_bootstrap_that_began_again_may_have_lost_is_reported_for_good() -> None:
    state = bootstrapped(ephemeral())
    bootstrap = Bootstrap(members=("db-0000",), token="uid-1.1")
    state = with_record(state, bootstrap=bootstrap)

    loss = {c.type: c for c in conditions(state, plan(state))}["DataLossPossible"]

    assert (loss.status, loss.reason) == ("True", "BootstrapRepeated")
    assert "all members failed" in loss.message


def test_a_peer_that_is_refused_is_named_although_its_member_serves() -> None:
    message = "spec.clusterName is 'x'"
    refused = PodProblem(reason="PeerRefused", message=message, finding=PeerFinding.REFUSED)
    another = PodProblem(reason="PeerRefused", message="only a word")
    state = changed(changed(bootstrapped(), "db-0", problem=another), "db-1", problem=refused)
    degraded = next(c for c in conditions(state, Plan.settled()) if c.type == "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "PeerRefused")
    assert degraded.message == "db-1: spec.clusterName is 'x'"


def test_a_silent_voter_is_named() -> None:
    degraded = conditions(down(bootstrapped(), "db-1", "db-2"), Plan.settled())[2]

    assert degraded.message == "unhealthy or not answering: db-1, db-2"


@pytest.mark.parametrize(
    ("versions", "lowest"),
    [
        (("3.6.9", "3.6.10", "3.6.16"), "3.6.9"),
        (("3.10.0", "3.9.1", "3.9.2"), "3.9.1"),
        (("3.7.0-rc.1", "3.7.1", "3.7.2"), "3.7.0-rc.1"),
    ],
)
def test_a_cluster_can_do_what_its_oldest_member_can(versions: tuple[str, ...], lowest: str) -> None:
    state = bootstrapped()
    for number, version in enumerate(versions):
        state = changed(state, f"db-{number}", answer=answer(f"db-{number}", version=version))

    assert current_version(state) == lowest


def test_without_an_answer_the_version_is_not_known() -> None:
    assert current_version(bootstrapping(persistent())) == ""


@pytest.mark.parametrize(
    ("reported", "awaits"), [("3.6.0", False), ("3.5.0", True), ("3.0.0", True), ("", True)]
)
def test_the_cluster_version_is_awaited_until_it_is_that_of_the_lowest_member(
    reported: str, awaits: bool
) -> None:
    state = replace(bootstrapped(persistent(cluster_version=reported)), cluster_version=reported)
    assert awaits_cluster_version(state) is awaits
    assert not awaits_cluster_version(replace(state, has_quorum=False))
    assert not awaits_cluster_version(replace(state, is_version_hidden=True))
    mixed = changed(state, "db-1", answer=answer("db-1", version="3.5.35"))
    assert awaits_cluster_version(mixed) is (reported != "3.5.0")


def test_a_cluster_version_that_no_status_shows_is_not_awaited() -> None:
    assert not awaits_cluster_version(bootstrapped(ephemeral()))


def test_nothing_is_awaited_of_members_whose_version_is_not_known() -> None:
    state = down(bootstrapped(persistent(cluster_version="")), "db-0", "db-1", "db-2")
    assert not awaits_cluster_version(replace(state, has_quorum=True))


# Times

OLD, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def _condition(status: str, reason: str = "R", since: str = "", message: str = "m") -> Condition:
    return Condition(
        type="Available",
        status="True" if status == "True" else "False",
        reason=reason,
        message=message,
        last_transition_time=since,
    )


@pytest.mark.parametrize(
    ("before", "wanted", "since"),
    [
        pytest.param([], _condition("True"), NOW, id="a new condition is stamped"),
        pytest.param([_condition("True", since=OLD)], _condition("True"), OLD, id="unchanged keeps its time"),
        pytest.param(
            [_condition("True", since=OLD)],
            _condition("True", "Other", message="new words"),
            OLD,
            id="other words are no transition",
        ),
        pytest.param([_condition("True", since=OLD)], _condition("False"), NOW, id="a new status is one"),
        pytest.param([_condition("True")], _condition("True"), NOW, id="a missing time is filled in"),
    ],
)
def test_the_transition_time_moves_only_with_the_status(
    before: list[Condition], wanted: Condition, since: str
) -> None:
    (merged,) = merge_conditions(before, [wanted], NOW, own={"Available"})

    assert merged.last_transition_time == since
    assert (merged.status, merged.reason, merged.message) == (wanted.status, wanted.reason, wanted.message)


def test_a_message_longer_than_the_definitions_allow_is_cut() -> None:
    wanted = msgspec.structs.replace(_condition("True"), message="m" * (LONGEST_MESSAGE + 1))
    (merged,) = merge_conditions([], [wanted], NOW, own={"Available"})

    assert len(merged.message) == LONGEST_MESSAGE


def test_conditions_that_are_no_longer_wanted_are_dropped() -> None:
    assert merge_conditions([_condition("True")], [], NOW, own={"Available"}) == ()


def test_a_condition_that_somebody_else_wrote_stays_as_it_is() -> None:
    before = [_condition("False"), msgspec.structs.replace(_condition("True"), type="example.com/Scanned")]
    merged = merge_conditions(before, [_condition("True")], NOW, own={"Available"})

    assert [(c.type, c.last_transition_time == NOW) for c in merged] == [
        ("Available", True),
        ("example.com/Scanned", False),
    ]


def test_a_condition_that_is_not_among_the_operators_own_is_never_written() -> None:
    surprise = msgspec.structs.replace(_condition("True"), type="Surprise")

    with pytest.raises(ValueError, match="Surprise"):
        merge_conditions([], [surprise], NOW, own=CONDITIONS)


def test_a_bootstrap_reports_the_members_that_it_is_about_to_make() -> None:
    assert member_names(replace(bootstrapping(ephemeral()), members=())) == ("db-0000", "db-0001", "db-0002")


def test_a_bootstrapped_cluster_reports_the_members_that_it_has() -> None:
    left = Member(name="db-7", claim=old_claim("db-7"))
    state = bootstrapped()

    assert member_names(replace(state, members=(*state.members, left))) == ("db-0", "db-1", "db-2")


HELD = Plan.hold("NoBackup", "all is lost")
SERVING = replace(bootstrapped(persistent()), has_quorum=True)
LOST_QUORUM = replace(SERVING, has_quorum=False)


@pytest.mark.parametrize(
    ("state", "is_available"),
    [(SERVING, True), (LOST_QUORUM, False), (not_bootstrapped(persistent()), None)],
    ids=["serving", "lost", "new"],
)
def test_whether_a_cluster_serves(state: ClusterState, is_available: bool | None) -> None:
    assert cluster_metrics(state, Plan.settled()).is_available is is_available


def test_a_cluster_that_is_being_restored_at_its_creation_has_lost_nothing() -> None:
    recovery = Recovery(
        generation=1,
        source=Survivor(name=""),
        authority="Proven",
        seed="c-0",
        replaces="",
        token="t",
        version="3.6.16",
        revision=7,
    )
    persisted = replace(LOST_QUORUM.persisted, cluster_id="", recovery=recovery)
    state = replace(LOST_QUORUM, desired=replace(LOST_QUORUM.desired, persisted=persisted))
    assert cluster_metrics(state, Plan.settled()).is_available is None


@pytest.mark.parametrize(
    ("state", "is_available"),
    [
        (adopting(ours=3), True),
        (adopting(ours=0), None),
        (down(adopting(ours=3, has_quorum=False, external=()), "c-0", "c-1", "c-2"), False),
        (adopting(ours=0, has_quorum=False, external=()), None),
        (replace(offered(), has_quorum=False), None),
    ],
    ids=["joined", "none of ours yet", "joined, lost", "none of ours, lost", "not begun"],
)
def test_a_cluster_that_is_being_adopted_may_lose_its_quorum(
    state: ClusterState, is_available: bool | None
) -> None:
    assert cluster_metrics(state, Plan.settled()).is_available is is_available


@pytest.mark.parametrize(
    ("plan", "held", "working"),
    [
        (HELD, "NoBackup", ""),
        (Plan.hold("Paused", "on purpose"), "Paused", ""),
        (Plan.hold("Deleting", "the namespace is being deleted"), "", ""),
        (Plan.hold("TurnedBack", "delete it"), "", ""),
        (Plan.wait("Recovering", "from a survivor", requeue_after=1.0), "", "Recovering"),
        (Plan.act(reason="Creating", message="a member"), "", "Creating"),
        (Plan.settled(), "", ""),
    ],
    ids=lambda value: value.reason if isinstance(value, Plan) else "",
)
def test_what_holds_a_cluster_or_is_done(plan: Plan, held: str, working: str) -> None:
    found = cluster_metrics(LOST_QUORUM, plan)
    assert (found.held, found.working) == (held, working)


def test_a_network_policy_that_cannot_be_kept_is_reported_beside_all_else() -> None:
    state = bootstrapped()
    open_ = replace(state, network_problem=("Forbidden", "no right"))
    *others, found = conditions(open_, Plan.settled())
    assert tuple(others) == conditions(state, Plan.settled())
    assert (found.type, found.status, found.reason, found.message) == (
        "NetworkPolicyDiffers", "True", "Forbidden", "no right",
    )  # fmt: skip
