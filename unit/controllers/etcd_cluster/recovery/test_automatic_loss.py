"""`spec.recovery: Automatic` of ephemeral clusters: silent members whose pods exist are given up, too."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.recovery.readers import PATIENCE
from unit.fakes.apiserver.faults import Answer, Request
from unit.fakes.apiserver.kinds import PODS, SERVICES
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.disturbance import run_or_die
from unit.passes.expected import assert_finished
from unit.passes.quorum_losses import assert_recovered, is_reason, lose

AFTER = 16
AUTOMATIC: dict[str, Any] = {"recovery": "Automatic", "recoveryAfterSeconds": AFTER}


def cut_off(made: Bench, *numbers: int) -> None:
    """Members fall silent with their nodes: their pods cannot be ended, and run on."""
    nodes = {running.pod: running.node for running in made.world.running}
    for number in numbers:
        name = f"c-{number:04}"
        made.etcd.etcd.freeze(name)
        made.world.up.discard(nodes[name])
    made.run_until(is_reason(made, "QuorumLost"))


def reconnect(made: Bench, *numbers: int) -> None:
    for number in numbers:
        made.etcd.etcd.thaw(f"c-{number:04}")
    made.world.up |= {running.node for running in made.world.running}


def has_begun(made: Bench) -> bool:
    return made.status(COREOS).get("recovery") is not None


def message(made: Bench) -> str:
    return str(made.condition(COREOS, "Degraded")["message"])


def selected(made: Bench) -> set[str]:
    """The pods that the Service for clients selects."""
    selector = made.get(SERVICES)["spec"]["selector"].items()
    pods = [pod["metadata"] for pod in made.api.objects.select(PODS)]
    return {pod["name"] for pod in pods if selector <= pod["labels"].items()}


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (500, "InternalError")])
def test_a_policy_that_allows_no_reader_does_not_keep_members_from_being_given_up(
    code: int, reason: str
) -> None:
    """500: its webhook does not run, perhaps because of what was lost."""
    with bootstrapped(*ephemeral(size=5, **AUTOMATIC)) as made:

        def refuse(request: Request) -> Answer | None:
            if request.subresource != "ephemeralcontainers":
                return None
            return Answer(code=code, reason=reason, message="failed calling webhook")

        made.api.before = refuse
        made.etcd.etcd.freeze("c-0003")
        lose(made, 0, 1, 2)
        made.wait(PATIENCE + 60.0 + AFTER)
        assert has_begun(made)


def test_members_on_silent_nodes_are_given_up_after_the_time_and_get_no_clients() -> None:
    with bootstrapped(*ephemeral(**AUTOMATIC)) as made:
        cut_off(made, 0, 1)
        made.wait(AFTER - 5.0)
        assert not has_begun(made)
        assert "a recovery begins by itself after 16 s" in message(made)
        made.run_until(lambda: made.status(COREOS)["clusterID"] != "c0de")
        recovery = made.status(COREOS)["recovery"]
        assert (recovery["source"]["name"], recovery["authority"]) == ("c-0002", "Automatic")
        assert not {"c-0000", "c-0001"} & selected(made)
        assert {"c-0000", "c-0001"} <= set(made.names(PODS)), "nothing ends them by force"
        made.wait(5.0)
        old = made.etcds.by_token[made.get(COREOS)["metadata"]["uid"]].etcd
        for name in ("c-0000", "c-0001"):
            old.thaw(name)
        made.wait(5.0)
        assert not {"c-0000", "c-0001"} & selected(made)
        made.world.up |= {running.node for running in made.world.running}
        made.settle()
        assert_recovered(made, 3, 4, 5)
        assert "started automatically" in made.condition(COREOS, "DataLossPossible")["message"]


def test_a_quorum_that_comes_back_before_anything_is_changed_ends_it() -> None:
    with bootstrapped(*ephemeral(**AUTOMATIC)) as made:
        made.etcds.holds_seeds = "save"
        cut_off(made, 0, 1)
        made.run_until(lambda: "c-0003" in made.names(PODS))
        reconnect(made, 0, 1)
        made.settle()
        assert made.status(COREOS)["clusterID"] == "c0de"
        assert made.event_reasons().count("QuorumReturned") == 1
        assert made.condition(COREOS, "DataLossPossible") == {}
        assert_finished(made, COREOS, 3, (0, 1, 2))


def test_a_member_that_answers_again_with_newer_data_is_not_deleted() -> None:
    """It has no quorum, but the only copy of what was acknowledged."""
    with bootstrapped(*ephemeral(size=5, **AUTOMATIC)) as made:
        etcd = made.etcd.etcd
        made.etcds.holds_seeds = "restore"
        made.etcd.put(b"newer", b"value")
        cut_off(made, 0, 1, 2, 3)
        etcd.member("c-0004").lags = 1
        made.run_until(lambda: "c-0005" in made.names(PODS))
        etcd.thaw("c-0000")
        made.wait(2.0)
        etcd.freeze("c-0000")
        made.etcds.holds_seeds = ""
        made.wait(20.0)
        assert made.status(COREOS)["clusterID"] == "c0de"
        assert "c-0000 answers at revision 3" in made.status(COREOS)["recovery"]["failure"]
        assert {"c-0000", "c-0004"} <= selected(made)
        reconnect(made, 0, 1, 2, 3)
        made.settle()
        assert etcd.keys[b"newer"] == (b"value", 3)
        assert_finished(made, COREOS, 5, (0, 1, 2, 3, 4))


def test_members_that_may_elect_a_leader_are_not_deleted_meanwhile() -> None:
    with bootstrapped(*ephemeral(**AUTOMATIC)) as made:
        etcd = made.etcd.etcd
        made.etcds.holds_seeds = "restore"
        cut_off(made, 0, 1)
        made.run_until(lambda: "c-0003" in made.names(PODS))
        etcd.elect_slowly()
        reconnect(made, 0, 1)
        made.etcds.holds_seeds = ""
        made.wait(20.0)
        assert made.status(COREOS)["clusterID"] == "c0de"
        assert "c-0000, c-0001, c-0002 answer again, and may elect a leader" in message(made)
        assert {"c-0000", "c-0001", "c-0002"} <= selected(made)
        etcd.elect_slowly(elects=True)
        made.settle()
        assert made.event_reasons().count("QuorumReturned") == 1
        assert_finished(made, COREOS, 3, (0, 1, 2))


def test_a_seed_that_is_lost_leaves_the_rest_to_a_person() -> None:
    with bootstrapped(*ephemeral(**AUTOMATIC)) as made:
        made.etcds.holds_seeds = "save"
        cut_off(made, 0, 1)
        made.run_until(lambda: "c-0003" in made.names(PODS))
        made.etcds.holds_seeds = ""
        made.delete(PODS, "c-0003", grace=0)
        made.wait(AFTER * 2.0)
        assert made.status(COREOS)["recovery"]["generation"] == 1
        assert "no recovery begins by itself, because an earlier recovery did" in message(made)
        for name in ("c-0000", "c-0001"):
            made.delete(PODS, name, grace=0)
        made.world.up |= {running.node for running in made.world.running}
        made.settle()
        assert_recovered(made, 4, 5, 6, generation=2)


def test_without_an_answer_nobody_is_given_up() -> None:
    with bootstrapped(*ephemeral(**AUTOMATIC)) as made:
        cut_off(made, 0, 1, 2)
        made.wait(AFTER * 2.0)
        assert not has_begun(made)
        made.restart()
        reconnect(made, 0, 1, 2)
        made.settle()
        assert_finished(made, COREOS, 3, (0, 1, 2))


@pytest.mark.exhaustive
@pytest.mark.parametrize("write", range(1, 15))
def test_it_is_made_once_whenever_the_operator_dies(write: int) -> None:
    with bootstrapped(*ephemeral(size=3, **AUTOMATIC), alone=True) as made:
        cut_off(made, 0, 1)
        made.kill()
        made.start(dies_at=write)
        if not run_or_die(made, lambda: until_recovered(made)):
            made.world.settle()
            made.start()
            until_recovered(made)
        made.wait(2.0)
        assert made.status(COREOS)["recovery"]["generation"] == 1
        assert len(made.etcds.by_token) == 2
        assert selected(made) & {"c-0000", "c-0001", "c-0002", "c-0003"} == {"c-0003"}


def until_recovered(made: Bench) -> None:
    made.run_until(lambda: made.status(COREOS)["clusterID"] != "c0de")
