"""Recovery after the loss of a majority: at any write, with any of its parts dying in the middle."""

import pytest

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.manifests.steps import RUN_STEPS
from unit.fakes.apiserver.faults import Answer, Request
from unit.fakes.apiserver.kinds import PODS, SERVICES
from unit.fakes.apiserver.store import copied
from unit.fakes.containers import rendered
from unit.passes.bench import bootstrapped
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, survives
from unit.passes.expected import assert_finished
from unit.passes.quorum_losses import assert_recovered, is_reason, let_go, lose, lose_and_hold
from unit.passes.tools import OWN_IMAGE

REPORTED = ("QuorumLost", "RecoveryStarted", "Recovered")
LOST = (
    "it dies after the reply",
    "the reply is lost and it dies",
    "the reply is lost and it lives on",
    "it is answered with 409",
)


@pytest.mark.parametrize(
    ("size", "gone", "left"),
    [(3, (0, 1), (3, 4, 5)), (3, (1, 2), (3, 4, 5)), (5, (0, 2, 4), (5, 6, 7, 8, 9)), (2, (1,), (2, 3))],
)
def test_a_majority_that_is_gone_is_recovered_from_who_is_left(
    size: int, gone: tuple[int, ...], left: tuple[int, ...]
) -> None:
    with bootstrapped(*ephemeral(size=size)) as made:
        lose(made, *gone)
        made.settle()
        assert_recovered(made, *left)
        kinds = {e["reason"]: e["type"] for e in made.events()}
        assert {kinds[reason] for reason in REPORTED} == {"Warning"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturbance", [DISTURBANCES[lost] for lost in LOST], ids=LOST)
def test_a_recovery_is_made_once_whatever_happens_at_any_write(disturbance: Disturbance) -> None:
    """Up to the last write of the recovery itself; what comes then is growth (test_resize.py)."""
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*ephemeral(size=3)) as made:
            made.kill()
            lose(made, 0, 1)
            made.edit(COREOS, "c", {"spec": {"size": 1}})
            writes.goes_on = survives(made, disturbance, write, lambda: None)
            assert_recovered(made, 3)
    assert writes.runs >= 12


def test_members_that_are_only_silent_are_waited_for() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        for name in ("c-0000", "c-0001"):
            made.etcd.etcd.freeze(name)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(120.0)
        assert "recovery" not in made.status(COREOS)
        assert made.objects()["pods"] == ["c-0000", "c-0001", "c-0002"]
        for name in ("c-0000", "c-0001"):
            made.etcd.etcd.thaw(name)
        made.settle()
        assert_finished(made, COREOS, 3)


def test_a_silent_voter_is_given_up_only_by_deleting_its_pod() -> None:
    with bootstrapped(*ephemeral(size=5)) as made:
        made.etcd.etcd.freeze("c-0003")
        lose(made, 0, 1, 2)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(120.0)
        assert "recovery" not in made.status(COREOS)
        assert "delete its pod" in made.condition(COREOS, "Degraded")["message"]
        lose(made, 3)
        made.settle()
        assert_recovered(made, 5, 6, 7, 8, 9)


@pytest.mark.parametrize(("name", "is_waited_for"), [("tenant", False), ("c-0009", True)])
def test_a_pod_that_cannot_be_read_is_waited_for_only_if_it_has_the_name_of_a_member(
    name: str, is_waited_for: bool
) -> None:
    metadata = {"name": name, "annotations": {f"note-{number}": "" for number in range(257)}}
    spec = {"containers": [{"name": "etcd", "image": "a"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    with bootstrapped(*ephemeral(size=3)) as made:
        made.run_until(lambda: made.is_settled(COREOS, "c"))
        lose(made, 0, 1)
        made.run_until(lambda: any(each["reason"] == "Recovered" for each in made.events()))
        made.create(PODS, pod)
        lose(made, *(int(each[-1]) for each in made.names(PODS) if each not in ("c-0002", name)))
        made.wait(60.0)
        assert ("c-0002" in made.names(PODS)) is is_waited_for
        assert (made.status(COREOS)["recovery"]["generation"] == 1) is is_waited_for


@pytest.mark.parametrize("size", [1, 3])
def test_when_all_is_gone_nothing_is_bootstrapped(size: int) -> None:
    with bootstrapped(*ephemeral(size=size)) as made:
        lose(made, *range(size))
        made.run_until(is_reason(made, "NoBackup"))
        assert made.condition(COREOS, "Available")["reason"] == "QuorumLost"
        made.wait(120.0)
        made.rest()
        assert made.objects()["pods"] == []
        made.restart()
        made.wait(30.0)
        assert made.objects()["pods"] == []
        made.delete(COREOS, "c")
        made.drain()
        assert made.names(SERVICES) == []


def test_a_survivor_whose_process_hangs_is_left_alone_with_its_data() -> None:
    """Nothing proves that its database is whole: only a person can get at it."""
    with bootstrapped(*ephemeral(size=3)) as made:
        made.etcd.etcd.freeze("c-0002")
        lose(made, 0, 1)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(120.0)
        assert made.objects()["pods"] == ["c-0002"]
        message = made.condition(COREOS, "Degraded")["message"]
        assert "c-0002 may still have the data" in message
        assert "the data of c-0002 cannot be read: its etcd does not run" in message


def test_an_alarm_that_a_survivor_applies_after_the_plan_keeps_its_data_from_being_the_source() -> None:
    """The alarm was committed before the loss; the survivor lagged."""
    with bootstrapped(*ephemeral(size=3)) as made:
        etcd = made.etcd.etcd

        def apply(request: Request) -> None:
            if request.method == "GET" and request.path.endswith("/pods/c-0000"):
                etcd.alarms.add((etcd.member("c-0002").id, "CORRUPT"))

        made.api.before = apply
        lose(made, 0, 1)
        made.run_until(is_reason(made, "QuorumLost"))
        made.wait(120.0)
        assert etcd.alarms, "the live reads have not begun"
        assert "recovery" not in made.status(COREOS)
        assert "alarm CORRUPT" in made.condition(COREOS, "Degraded")["message"]


def test_a_seed_that_is_lost_is_followed_by_another() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose_and_hold(made, "restore", 0, 1)
        made.wait(5.0)
        lose(made, 3)
        let_go(made)
        assert_recovered(made, 4, 5, 6, generation=2)


def test_a_survivor_that_is_lost_before_its_data_was_fetched_is_replaced_by_another() -> None:
    with bootstrapped(*ephemeral(size=5)) as made:
        lose_and_hold(made, "save", 0, 1, 2, seed="c-0005")
        made.wait(5.0)
        survivor = made.status(COREOS)["recovery"]["source"]["name"]
        lose(made, int(survivor[-1]))
        let_go(made)
        assert_recovered(made, 6, 7, 8, 9, 10, generation=2)


def test_a_survivor_that_is_lost_after_its_data_was_fetched_is_not_needed() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose_and_hold(made, "restore", 0, 1)
        made.wait(5.0)
        lose(made, 2)
        made.wait(30.0)
        assert made.objects()["pods"] == ["c-0003"]
        let_go(made)
        assert_recovered(made, 3, 4, 5)


def test_a_size_edited_in_the_middle_is_what_comes_of_it() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose_and_hold(made, "save", 0, 1)
        made.edit(COREOS, "c", {"spec": {"size": 1}})
        made.wait(5.0)
        let_go(made)
        assert_recovered(made, 3)


def test_a_pause_in_the_middle_holds_the_recovery_up() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose_and_hold(made, "save", 0, 1)
        made.edit(COREOS, "c", {"spec": {"paused": True}})
        made.wait(1.0)
        made.etcds.holds_seeds = ""
        made.wait(60.0)
        assert made.objects()["pods"] == ["c-0002", "c-0003"]
        assert made.condition(COREOS, "Available")["status"] == "False"
        made.edit(COREOS, "c", {"spec": {"paused": False}})
        made.settle()
        assert_recovered(made, 3, 4, 5)


def test_a_second_loss_is_recovered_like_the_first() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose(made, 0, 1)
        made.settle()
        lose(made, 3, 5)
        made.settle()
        assert_recovered(made, 6, 7, 8, generation=2)


def test_a_seed_that_is_lost_alone_after_it_took_over_is_followed_by_another_from_what_was_kept() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        lose(made, 0, 1)
        made.run_until(lambda: any(each["reason"] == "Recovered" for each in made.events()))
        first = made.status(COREOS)["recovery"]
        learners = [name for name in made.names(PODS) if name not in ("c-0002", "c-0003")]
        kept = made.get(PODS, "c-0002")
        assert "app" not in kept["metadata"]["labels"]
        assert kept["spec"]["containers"][0]["image"] == OWN_IMAGE, "nothing ends its connections but its end"
        lose(made, 3, *(int(name[-1]) for name in learners))  # the status advises to delete a learner
        made.settle()
        recovery = made.status(COREOS)["recovery"]
        assert (recovery["source"]["name"], recovery["replaces"]) == ("c-0002", first["replaces"])
        assert recovery["bump"] > REVISION_BUMP, "no revision is issued twice"
        assert "an earlier seed acknowledged" in made.condition(COREOS, "DataLossPossible")["message"]
        assert "c-0002" not in made.names(PODS)
        assert made.etcd.etcd.keys[b"key"] == (b"value", 2)


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (500, "InternalError")])
def test_a_survivor_whose_etcd_may_not_be_ended_runs_on_and_holds_nothing_up(code: int, reason: str) -> None:
    """500: a webhook does not run, perhaps because it depends on this etcd."""

    def refuse(request: Request) -> Answer | None:
        if request.method == "PATCH" and "containers" in str(request.body):
            return Answer(code=code, reason=reason, message="failed calling webhook")
        return None

    with bootstrapped(*ephemeral(size=3)) as made:
        made.api.before = refuse
        lose(made, 0, 1)
        made.run_until(lambda: made.status(COREOS)["clusterID"] != "c0de")
        assert "c-0002" in made.names(PODS), "the second copy"
        made.settle()
        assert_recovered(made, 3, 4, 5)


def test_clients_reach_a_seed_only_when_they_reach_nothing_of_the_old_cluster() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        seen = []

        def observe() -> bool:
            pods = {p["metadata"]["name"]: p["metadata"] for p in made.api.objects.select(PODS)}
            seed = pods.get("c-0003")
            if seed is not None:
                survivor = pods.get("c-0002", {"labels": {}})
                seen.append(("app" in seed["labels"], "app" not in survivor["labels"]))
            return made.is_settled(COREOS, "c") and seed is not None

        lose(made, 0, 1)
        made.run_until(observe)
        assert (False, False) in seen
        assert (True, False) not in seen


def test_the_steps_of_an_existing_only_seed_succeed_when_its_node_comes_back_without_the_survivor() -> None:
    with bootstrapped(*ephemeral(size=2)) as made:
        lose(made, 0)
        made.settle()
        seed = made.get(PODS, "c-0002")
        existing_only = rendered(seed, "127.0.0.1", "node-1", 0)
        seeding = copied(seed)
        seeding["metadata"]["annotations"] |= RUN_STEPS
        made.etcds.fetched.clear()

        assert made.etcds.prepare(existing_only) == (2, "")
        assert made.etcds.prepare(rendered(seeding, "127.0.0.1", "node-1", 0)) == (
            0, "c-0001 does not answer"
        )  # fmt: skip
