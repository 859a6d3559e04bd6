"""Upgrades in which something fails: images, processes, members, any write."""

import pytest

from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, PEERS
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives
from unit.passes.expected import assert_finished
from unit.passes.upgrades import (
    BOTH,
    claims,
    image,
    last,
    members,
    never_two_away,
    of,
    set_version,
    versions,
    wait_in_vain,
)


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
                made.etcds.container_ended(running)
                made.etcds.container_started(running)
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


@BOTH
def test_a_member_that_hangs_after_its_restart_is_reported(kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.6.16")) as made:
        set_version(made, kind, "3.6.17")
        made.run_until(lambda: "3.6.17" in versions(made))
        made.etcd.etcd.freeze(last(kind))
        wait_in_vain(made)
        assert made.reason(kind) == "UpgradeBlocked"
        assert "it runs, but does not answer" in made.condition(kind, "Degraded")["message"]
        made.etcd.etcd.thaw(last(kind))
        made.settle()
        assert_finished(made, kind, 3, version="3.6.17")


def test_a_member_whose_node_is_cut_off_while_it_is_restarted_is_reported() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:
        (node,) = (running.node for running in made.world.running if running.pod.startswith("c-2"))
        made.world.up.discard(node)
        set_version(made, IMPROBABLE, "3.6.17")
        wait_in_vain(made)
        assert made.reason(IMPROBABLE) == "UpgradeBlocked"
        message = made.condition(IMPROBABLE, "Degraded")["message"]
        assert "its former pod has not ended" in message
        assert "set that version in the spec" not in message
        made.world.up.add(node)
        made.settle()
        assert_finished(made, IMPROBABLE, 3, version="3.6.17")


def test_an_image_that_a_policy_changes_back_is_reported() -> None:
    def pinning(kind: Kind, obj: Json) -> None:
        if kind == PODS:
            for container in obj["spec"]["containers"]:
                container["image"] = image("3.6.16")

    with bootstrapped(*of(COREOS, "3.6.16")) as made:
        made.api.objects.mutate = pinning
        set_version(made, COREOS, "3.6.17")
        wait_in_vain(made)
        assert made.reason(COREOS) == "UpgradeBlocked"
        assert "it runs 3.6.16" in made.condition(COREOS, "Degraded")["message"]
        set_version(made, COREOS, "3.6.16")
        made.settle()
        assert_finished(made, COREOS, 3)


def test_an_upgrade_that_is_interrupted_and_taken_back_leaves_no_version_on_a_claim() -> None:
    """The EtcdPeer would be made again at that version when it is deleted, which nobody desires any more."""
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:

        def refusing(request: Request) -> Answer | None:
            is_deletion = request.plural == "etcdpeers" and request.method == "DELETE"
            return Answer(code=500, reason="InternalError") if is_deletion else None

        made.world.unpullable.add(image("3.6.99"))
        made.api.before = refusing
        set_version(made, IMPROBABLE, "3.6.99")
        made.run_until(lambda: version_on_claim(made, "c-2") == "3.6.99")
        set_version(made, IMPROBABLE, "3.6.16")
        made.settle()
        made.api.before = no_fault
        assert version_on_claim(made, "c-2") == "3.6.16"
        made.delete(PEERS, "c-2")
        made.settle()
        assert_finished(made, IMPROBABLE, 3)


def version_on_claim(made: Bench, name: str) -> str:
    """The version that an EtcdPeer is made again with."""
    return str(made.get(CLAIMS, name)["metadata"]["annotations"].get("etcd.improbable.io/version", ""))


def test_a_cluster_that_is_created_again_while_an_upgrade_is_blocked_takes_the_member_back() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:
        made.world.unpullable.add(image("3.6.99"))
        set_version(made, IMPROBABLE, "3.6.99")
        made.run_until(lambda: made.reason(IMPROBABLE) == "UpgradeBlocked")
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.create(*of(IMPROBABLE, "3.6.16"))
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, IMPROBABLE, 3)


def test_a_cluster_whose_image_has_gone_resumes_at_a_later_patch() -> None:
    with bootstrapped(*of(IMPROBABLE, "3.6.16")) as made:
        made.delete(IMPROBABLE, "c")
        made.drain()
        made.world.unpullable.add(image("3.6.16"))
        made.create(*of(IMPROBABLE, "3.6.17"))
        made.settle()
        assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
        assert_finished(made, IMPROBABLE, 3, version="3.6.17")


WORST = "the reply is lost and it dies"
LOST = ("it dies after the reply", WORST, "the reply is lost and it lives on")


CASES = [
    *(pytest.param(COREOS, DISTURBANCES[lost], id=f"{COREOS.group}: {lost}") for lost in LOST),
    *(
        pytest.param(
            IMPROBABLE,
            DISTURBANCES[lost],
            id=f"{IMPROBABLE.group}: {lost}",
            marks=[] if lost == WORST else [pytest.mark.long],
        )
        for lost in LOST
    ),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "disturbance"), CASES)
def test_an_upgrade_is_made_once_whatever_happens_at_any_write(kind: Kind, disturbance: Disturbance) -> None:
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*of(kind, "3.5.34")) as made:
            made.kill()
            before = members(made), claims(made)
            set_version(made, kind, "3.5.35")
            with never_two_away(made):
                writes.goes_on = survives(made, disturbance, write, lambda: None)
            assert (members(made), claims(made)) == before
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, kind, 3, version="3.5.35")
    assert writes.runs >= 9


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
