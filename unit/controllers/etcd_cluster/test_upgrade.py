"""Upgrades: one member at a time, and whatever is edited meanwhile."""

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.upgrade_watch import events_of
from unit.controllers.etcd_cluster.decide import builders as states
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, PEERS
from unit.passes.expected import assert_finished
from unit.passes.upgrades import (
    BOTH,
    claims,
    image,
    last,
    make_leader,
    members,
    messages,
    never_two_away,
    of,
    set_version,
    versions,
)


@BOTH
def test_a_changed_version_is_rolled_out_from_the_highest_number_down(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        before = members(made), claims(made), made.status(kind)["clusterID"]
        order: list[str] = []

        def done() -> bool:
            order.extend(
                m.name for m in made.etcd.etcd.members if m.version == "3.5.35" and m.name not in order
            )
            return len(order) == 3

        set_version(made, kind, "3.5.35")
        with never_two_away(made):
            made.run_until(done)
            made.settle()

        names = [name for name, _ in before[0]]
        assert order == names[::-1]
        assert (members(made), claims(made), made.status(kind)["clusterID"]) == before
        assert_finished(made, kind, 3, version="3.5.35")
        events = made.event_reasons()
        assert events.count("MemberUpgraded") == 3
        assert [events.count(reason) for reason in ("UpgradeStarted", "LeaderMoved", "UpgradeFinished")] == [
            1
        ] * 3
        assert made.operator is not None
        assert len(made.operator.upgrades) == 1
        if kind is COREOS:
            assert {p["spec"]["containers"][0]["image"] for p in made.api.objects.select(PODS)} == {
                image("3.5.35")
            }


@BOTH
def test_the_leader_is_moved_before_its_member_is_stopped(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        leaders: list[str] = []

        def stopped() -> bool:
            etcd = made.etcd.etcd
            leaders.extend([etcd.leader.name] if etcd.leader is not None else ["nobody"])
            return made.is_settled(kind, "c") and versions(made) == ["3.5.35"] * 3

        set_version(made, kind, "3.5.35")
        made.run_until(stopped)

        assert "nobody" not in leaders
        assert made.etcd.etcd.writes.count("MoveLeader") == 1


@BOTH
def test_status_reports_both_versions_and_the_upgrading_member(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        set_version(made, kind, "3.5.35")
        made.run_until(lambda: "upgrade" in made.status(kind))

        upgrade = made.status(kind)["upgrade"]
        assert (upgrade["from"], upgrade["to"], upgrade["member"]) == ("3.5.34", "3.5.35", last(kind))
        assert upgrade["since"].startswith("2026-")
        made.settle()
        assert "upgrade" not in made.status(kind)


@BOTH
@pytest.mark.parametrize("size", [1, 2])
def test_clusters_of_one_and_two_are_upgraded(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.5.34", size)) as made:
        set_version(made, kind, "3.5.35")
        made.settle()
        assert_finished(made, kind, size, version="3.5.35")
        if size == 1:
            assert "QuorumReturned" not in made.event_reasons(), "its only member was restarted on purpose"


@BOTH
def test_a_cluster_bootstrapped_with_3_5_is_taken_to_3_6_and_on_to_3_7(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.35")) as made:
        before = members(made)
        for version in ("3.6.16", "3.7.3"):
            set_version(made, kind, version)
            with never_two_away(made):
                made.settle()
        assert versions(made) == ["3.7.3"] * 3
        assert members(made) == before
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, kind, 3, version="3.7.3")


@BOTH
def test_a_version_edited_again_halfway_is_rolled_out(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        set_version(made, kind, "3.5.35")
        made.run_until(lambda: "3.5.35" in versions(made))
        set_version(made, kind, "3.6.16")
        with never_two_away(made):
            made.settle()
        assert_finished(made, kind, 3, version="3.6.16")
        assert (
            made.event_reasons().count("UpgradeStarted") + made.event_reasons().count("UpgradeStarted x2")
            >= 1
        )


@BOTH
def test_a_version_reverted_halfway_is_rolled_back(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.35")) as made:
        set_version(made, kind, "3.6.16")
        made.run_until(lambda: versions(made).count("3.6.16") == 2 and len(made.etcd.running) == 3)
        set_version(made, kind, "3.5.35")
        with never_two_away(made):
            made.settle()
        assert_finished(made, kind, 3, version="3.5.35")
        assert messages(made, "UpgradeStarted") == ["from 3.5.35 to 3.6.16", "from 3.6.16 back to 3.5.35"]


@BOTH
def test_a_pause_stops_the_upgrade_and_its_end_resumes_it(kind: Kind) -> None:
    def pause(*, is_on: bool) -> Json:
        if kind is COREOS:
            return {"spec": {"paused": is_on}}
        return {"metadata": {"annotations": {"etcd.improbable.io/paused": str(is_on).lower()}}}

    with bootstrapped(*of(kind, "3.5.34")) as made:
        set_version(made, kind, "3.5.35")
        made.run_until(lambda: versions(made).count("3.5.35") == 1 and len(made.etcd.running) == 3)
        made.edit(kind, "c", pause(is_on=True))
        made.wait(60.0)
        assert versions(made).count("3.5.35") == 1
        assert made.condition(kind, "Progressing")["reason"] == "Paused"
        made.edit(kind, "c", pause(is_on=False))
        made.settle()
        assert_finished(made, kind, 3, version="3.5.35")


@BOTH
@pytest.mark.parametrize(("size", "to"), [(3, 5), (5, 3), (1, 3)])
def test_size_and_version_may_be_edited_together(kind: Kind, size: int, to: int) -> None:
    with bootstrapped(*of(kind, "3.5.35", size)) as made:
        set_version(made, kind, "3.6.16", **{"size" if kind is COREOS else "replicas": to})
        made.settle()
        kept = range(to) if kind is IMPROBABLE or to > size else range(size - to, size)
        assert_finished(made, kind, to, tuple(kept), version="3.6.16")


@BOTH
def test_no_member_is_reported_as_upgraded_that_was_not_restarted_or_was_removed(kind: Kind) -> None:
    """The leader is moved away from the member whose turn is first; then the cluster grows, and shrinks."""
    size = "size" if kind is COREOS else "replicas"
    with bootstrapped(*of(kind, "3.6.16")) as made:
        make_leader(made, last(kind))
        set_version(made, kind, "3.7.3", **{size: 5})
        made.run_until(lambda: len(made.etcd.etcd.voters) == 5)
        assert versions(made)[:3] == ["3.6.16"] * 3, "nobody was restarted yet"
        set_version(made, kind, "3.6.16", **{size: 1})
        made.settle()
        assert versions(made) == ["3.6.16"]
        assert messages(made, "LeaderMoved")
        assert [m for m in messages(made, "MemberUpgraded") if "3.7.3" in m or last(kind) in m] == []


def test_old_claims_are_resumed_at_the_version_that_wrote_them() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.5.35")) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.create(*of(IMPROBABLE, "3.7.3"))
        made.run_until(lambda: made.reason(IMPROBABLE) == "UpgradeRefused")
        assert versions(made) == ["3.5.35"] * 3
        set_version(made, IMPROBABLE, "3.6.16")
        made.settle()
        assert_finished(made, IMPROBABLE, 3, version="3.6.16")


def test_an_edited_version_of_a_peer_is_reverted() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:
        made.edit(PEERS, "c-1", {"spec": {"version": "3.6.17"}})
        made.settle()
        assert_finished(made, IMPROBABLE, 3)
        assert made.get(PEERS, "c-1")["spec"]["version"] == "3.6.16"


def test_an_upgrade_reverted_before_a_member_was_stopped_reports_no_upgraded_member() -> None:
    """As when only the log was padded."""
    before = Upgrade(origin="3.6.16", target="3.7.3")

    assert events_of(before, None, states.bootstrapped()) == [("UpgradeFinished", "all members run 3.6.16")]


TO_3_7 = Upgrade(origin="3.6.16", target="3.7.3", member="db-2")
UPGRADED = states.changed(states.bootstrapped(), "db-2", answer=states.answer("db-2", version="3.7.3"))
REMOVED = states.changed(UPGRADED, "db-2", entry=None)


@pytest.mark.parametrize(
    ("state", "messages"),
    [
        pytest.param(UPGRADED, ["db-2 serves at 3.7.3"], id="it serves at the target"),
        pytest.param(states.bootstrapped(), [], id="only its leadership was moved"),
        pytest.param(states.down(UPGRADED, "db-2"), [], id="it does not answer"),
        pytest.param(REMOVED, [], id="it was removed from the list"),
        pytest.param(states.bootstrapped(states.persistent(size=2), voters=2), [], id="it is gone"),
    ],
)
def test_a_member_is_reported_as_upgraded_only_if_it_serves_at_the_target(
    state: ClusterState, messages: list[str]
) -> None:
    after = Upgrade(origin="3.6.16", target="3.7.3", member="db-1")
    assert events_of(TO_3_7, after, state) == [("MemberUpgraded", message) for message in messages]


@pytest.mark.parametrize(
    ("before", "message"),
    [(TO_3_7, "from 3.7.3 back to 3.6.16"), (None, "back to 3.6.16")],
    ids=["reverted", "the resource was created again halfway"],
)
def test_a_rollback_is_reported_as_one(before: Upgrade | None, message: str) -> None:
    """The lowest version that runs is the target already."""
    after = Upgrade(origin="3.6.16", target="3.6.16", member="db-2")
    assert events_of(before, after, states.bootstrapped()) == [("UpgradeStarted", message)]
