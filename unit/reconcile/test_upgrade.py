"""Upgrades: one member at a time through every disturbance, and done once whatever write fails."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.reconcile.upgrade import events_of
from unit.core import builders as states
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.reconcile.bench import COREOS, IMPROBABLE, PEERS, Bench, bootstrapped, ephemeral, persistent
from unit.reconcile.disturbance import DISTURBANCES, Disturbance, survives
from unit.reconcile.expected import assert_finished

BOTH = pytest.mark.parametrize("kind", [COREOS, IMPROBABLE], ids=["ephemeral", "persistent"])
LOST = ("it dies after the reply", "the reply is lost and it dies", "the reply is lost and it lives on")


def of(kind: Kind, version: str, size: int = 3) -> tuple[Kind, Json]:
    """A cluster of one version."""
    made = ephemeral if kind is COREOS else persistent
    return made(size=size, version=version)


def set_version(made: Bench, kind: Kind, version: str, **spec: int) -> None:
    """Edit the version in the spec."""
    made.edit(kind, "c", {"spec": {"version": version, **spec}})


def versions(made: Bench) -> list[str]:
    """The versions that run, by number of the member."""
    return [member.version for member in made.etcd.etcd.members if member.is_running]


def members(made: Bench) -> list[tuple[str, int]]:
    """etcd's list."""
    return [(member.name, member.id) for member in made.etcd.etcd.members]


def claims(made: Bench) -> list[str]:
    """The uids of all claims."""
    return [claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)]


def last(kind: Kind) -> str:
    """The member that is upgraded first."""
    return "c-0002" if kind is COREOS else "c-2"


def image(version: str) -> str:
    return f"quay.io/coreos/etcd:v{version}"


@contextmanager
def never_two_away(made: Bench) -> Iterator[None]:
    """Meanwhile two of three members run after every step of the fakes."""
    step = made.step

    def watched() -> bool:
        moved = step()
        assert len(made.etcd.running) >= 2, made.story()
        return moved

    made.step = watched  # type: ignore[method-assign]
    yield
    made.step = step  # type: ignore[method-assign]


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


# Minor versions


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


def test_a_cluster_bootstrapped_with_3_6_needs_no_raft_snapshot() -> None:
    with bootstrapped(*of(COREOS, "3.6.16")) as made:
        before = made.etcd.etcd.raft_index
        set_version(made, COREOS, "3.7.3")
        made.settle()
        assert versions(made) == ["3.7.3"] * 3
        assert made.etcd.etcd.raft_index - before < 100


def test_without_a_metrics_page_no_member_is_taken_to_3_7() -> None:
    with bootstrapped(*of(COREOS, "3.5.35")) as made:
        made.etcds.serves_metrics = False
        set_version(made, COREOS, "3.6.16")
        made.settle()
        set_version(made, COREOS, "3.7.3")
        made.run_until(lambda: made.reason(COREOS) == "UpgradeWaiting")
        made.wait(30.0)
        assert versions(made) == ["3.6.16"] * 3


@BOTH
@pytest.mark.parametrize(
    ("runs", "wanted"), [("3.5.35", "3.7.3"), ("3.6.16", "3.5.35"), ("3.5.31", "3.6.16"), ("3.6.10", "3.7.3")]
)
def test_the_operator_refuses_what_the_definition_would(kind: Kind, runs: str, wanted: str) -> None:
    with bootstrapped(*of(kind, runs)) as made:
        set_version(made, kind, wanted)
        made.run_until(lambda: made.reason(kind) == "UpgradeRefused")
        made.wait(30.0)
        assert versions(made) == [runs] * 3
        assert made.etcd.has_met

        set_version(made, kind, runs)
        made.settle()
        made.rest()


# Failures


@BOTH
def test_an_image_that_cannot_be_pulled_blocks_the_upgrade_until_the_spec_is_corrected(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.6.16")) as made:
        before = members(made), claims(made)
        made.world.unpullable.add(image("3.6.99"))
        set_version(made, kind, "3.6.99")
        with never_two_away(made):
            made.run_until(lambda: made.reason(kind) == "UpgradeBlocked")
            made.wait(60.0)
            condition = made.condition(kind, "Degraded")
            assert last(kind) in condition["message"]
            assert "ErrImagePull" in condition["message"]
            assert versions(made) == ["3.6.16"] * 2
            set_version(made, kind, "3.6.16")
            made.settle()
        assert (members(made), claims(made)) == before
        assert_finished(made, kind, 3)


@BOTH
def test_a_member_that_crashes_at_the_new_version_is_not_taken_for_lost(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.35")) as made:
        before = members(made), claims(made)
        made.etcds.broken_versions.add("3.6.16")
        set_version(made, kind, "3.6.16")
        with never_two_away(made):
            made.run_until(lambda: made.reason(kind) == "UpgradeBlocked")
            for pod in made.api.objects.select(PODS):
                for status in pod["status"]["containerStatuses"]:
                    if "waiting" in status["state"]:
                        again = {"status": {"containerStatuses": [{**status, "restartCount": 9}]}}
                        made.api.objects.patch(
                            PODS, "default", pod["metadata"]["name"], again, "merge", subresource="status"
                        )
            made.wait(60.0)
            assert made.reason(kind) == "UpgradeBlocked"
            assert "it crashes" in made.condition(kind, "Degraded")["message"]
            set_version(made, kind, "3.5.35")
            made.settle()
        assert (members(made), claims(made)) == before
        assert_finished(made, kind, 3, version="3.5.35")


@BOTH
def test_a_single_member_that_is_blocked_is_taken_back(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.6.16", 1)) as made:
        made.world.unpullable.add(image("3.6.99"))
        set_version(made, kind, "3.6.99")
        made.run_until(lambda: made.reason(kind) == "UpgradeBlocked")
        set_version(made, kind, "3.6.16")
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, kind, 1)


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


def test_an_ephemeral_member_lost_halfway_is_replaced_before_the_upgrade_goes_on() -> None:
    with bootstrapped(*of(COREOS, "3.5.35")) as made:
        set_version(made, COREOS, "3.6.16")
        made.run_until(lambda: versions(made).count("3.6.16") == 1 and len(made.etcd.running) == 3)
        joined: set[str] = set()
        made.delete(PODS, "c-0001")

        def finished() -> bool:
            joined.update(m.version for m in made.etcd.etcd.members if m.name == "c-0003")
            return joined == {"", "3.5.35", "3.6.16"} - {""} and made.is_settled(COREOS, "c")

        made.run_until(finished)
        assert_finished(made, COREOS, 3, (0, 2, 3), version="3.6.16")


def test_a_persistent_member_lost_halfway_is_replaced_before_the_upgrade_goes_on() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.5.35")) as made:
        set_version(made, IMPROBABLE, "3.6.16")
        made.run_until(lambda: versions(made).count("3.6.16") == 1 and len(made.etcd.running) == 3)
        made.lose_claim("c-1")
        made.settle()
        assert_finished(made, IMPROBABLE, 3, (0, 1, 2), version="3.6.16")


@BOTH
def test_a_quorum_lost_while_a_member_is_blocked_comes_back_with_the_right_version(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.6.16")) as made:
        made.world.unpullable.add(image("3.6.99"))
        set_version(made, kind, "3.6.99")
        made.run_until(lambda: made.reason(kind) == "UpgradeBlocked")
        (lost,) = (name for name in ("c-0001", "c-1") if name in made.etcd.running)
        if kind is COREOS:
            made.delete(PODS, lost)
        else:
            made.lose_claim(lost)
        made.run_until(lambda: made.condition(kind, "Available")["status"] == "False")
        set_version(made, kind, "3.6.16")
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, kind, 3, (0, 2, 3) if kind is COREOS else (0, 1, 2))


@BOTH
@pytest.mark.parametrize("wanted", ["3.6.16", "3.6.18"])
def test_a_version_that_crashes_only_later_is_replaced(kind: Kind, wanted: str) -> None:
    with bootstrapped(*of(kind, "3.6.16")) as made:
        before = members(made), claims(made)
        set_version(made, kind, "3.6.17")
        made.run_until(lambda: versions(made).count("3.6.17") == 2 and len(made.etcd.running) == 3)
        made.etcds.broken_versions.add("3.6.17")
        for running in made.world.running:
            if running.image == image("3.6.17"):
                made.etcds.stop(running)
                made.etcds.start(running)
        made.wait(60.0)
        assert versions(made).count("3.6.17") == 0
        set_version(made, kind, wanted)
        made.settle()
        assert (members(made), claims(made)) == before
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, kind, 3, version=wanted)


@BOTH
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_size_edited_while_a_member_is_blocked_is_reached(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.6.16")) as made:
        made.world.unpullable.add(image("3.6.99"))
        set_version(made, kind, "3.6.99")
        made.run_until(lambda: made.reason(kind) == "UpgradeBlocked")
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": size}})
        made.wait(30.0)
        set_version(made, kind, "3.6.16")
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        kept = sorted(int(name.rpartition("-")[2]) for name in made.etcd.running)
        assert_finished(made, kind, size, tuple(kept))


def test_an_upgrade_waits_for_the_end_of_an_alarm() -> None:
    with bootstrapped(*of(COREOS, "3.5.34")) as made:
        etcd = made.etcd.etcd
        etcd.alarms.add((etcd.members[0].id, "NOSPACE"))
        set_version(made, COREOS, "3.5.35")
        made.run_until(lambda: made.reason(COREOS) == "UpgradeWaiting")
        assert "NOSPACE" in made.condition(COREOS, "Degraded")["message"]
        made.wait(30.0)
        assert versions(made) == ["3.5.34"] * 3
        etcd.alarms.clear()
        made.settle()
        assert_finished(made, COREOS, 3, version="3.5.35")


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


@BOTH
def test_a_bootstrap_whose_image_is_missing_continues_at_another_version(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.6.16", 1)) as made:
        made.world.unpullable.add(image("3.6.99"))
        body = of(kind, "3.6.99")[1] | {"metadata": {"name": "d"}}
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind, "d") == "ErrImagePull")
        made.edit(kind, "d", {"spec": {"version": "3.5.35"}})
        made.settle()
        assert made.status(kind, "d")["currentVersion"] == "3.5.35"


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


# Crashes


CASES = [
    pytest.param(kind, DISTURBANCES[lost], id=f"{kind.group}: {lost}")
    for kind in (COREOS, IMPROBABLE)
    for lost in LOST
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "disturbance"), CASES)
def test_an_upgrade_is_made_once_whatever_happens_at_any_write(kind: Kind, disturbance: Disturbance) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bootstrapped(*of(kind, "3.5.34")) as made:
            made.kill()
            before = members(made), claims(made)
            set_version(made, kind, "3.5.35")
            with never_two_away(made):
                goes_on = survives(made, disturbance, write, lambda: None)
            assert (members(made), claims(made)) == before
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, kind, 3, version="3.5.35")
            write += 1
    assert write > 9


@pytest.mark.exhaustive
@BOTH
def test_the_log_is_padded_whatever_happens_at_any_write(kind: Kind) -> None:
    disturbance = DISTURBANCES["the reply is lost and it dies"]
    for write in (1, 2, 3, 4):
        with bootstrapped(*of(kind, "3.5.35", 1)) as made:
            set_version(made, kind, "3.6.16")
            made.settle()
            made.kill()
            set_version(made, kind, "3.7.3")
            assert survives(made, disturbance, write, lambda: None)
            assert_finished(made, kind, 1, version="3.7.3")
