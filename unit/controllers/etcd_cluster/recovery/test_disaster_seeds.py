"""The seed of a recovery beside backups: how it starts, and what follows one that is lost."""

from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import CREATING
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bodies import COREOS
from unit.passes.disasters import assert_restored, backed_up, members, recovery, store
from unit.passes.quorum_losses import lose


def test_the_seed_has_two_steps_and_only_the_token_of_the_tool() -> None:
    with backed_up() as made:
        name = store(made)
        made.etcds.holds_seeds = "save"
        lose(made, 0, 1, 2)
        made.run_until(lambda: "c-0003" in members(made))
        seed = made.get(PODS, "c-0003")
        fetch, restore = seed["spec"]["initContainers"]
        assert (fetch["image"], restore["image"]) == (
            "localhost/etcd-operator:test",
            "quay.io/coreos/etcd:v3.6.16",
        )
        assert {f"--name={name}", f"--sha256={'ab' * 32}", "--tool=c-backup-tool:19999"} <= set(fetch["args"])
        assert seed["spec"]["automountServiceAccountToken"] is False
        assert "app" not in seed["metadata"]["labels"]
        made.wait(30.0)
        assert members(made) == ["c-0003"]
        started = [each for each in made.event_reasons() if each.startswith("RecoveryStarted")]
        assert started == ["RecoveryStarted"], "waiting is no Event: too many would hide later ones"


def test_a_seed_whose_volume_cannot_be_mounted_is_reported_and_left_alone() -> None:
    """A missing Secret, for example. Kubernetes goes on trying."""
    with backed_up() as made:
        name = store(made)
        made.world.unmountable.add("c-0003")
        lose(made, 0, 1, 2)
        made.run_until(lambda: "c-0003" in members(made))
        made.wait(CREATING[0] - 10.0)
        text = str(made.condition(COREOS, "Degraded")["message"])
        assert "ContainerCreating" not in text
        made.wait(20.0)
        text = str(made.condition(COREOS, "Degraded")["message"])
        assert "; the pod c-0003 has been ContainerCreating for more than 2 min: `kubectl describe" in text
        writes = len(made.writes())
        made.wait(CREATING[1] - CREATING[0] - 20.0)
        assert len(made.writes()) == writes, "its age is no reason to write in each pass"
        assert members(made) == ["c-0003"]
        made.world.unmountable.clear()
        made.settle()
        assert_restored(made, name, 3, 4, 5)


def test_a_seed_whose_survivor_is_lost_before_it_fetched_is_given_up_by_a_person() -> None:
    with backed_up() as made:
        name = store(made)
        made.etcds.holds_seeds = "save"
        lose(made, 0, 1)
        made.run_until(lambda: "c-0003" in members(made))
        lose(made, 2)
        made.run_until(
            lambda: "delete its pod to give up that data" in str(made.condition(COREOS, "Degraded"))
        )
        made.wait(60.0)
        assert "c-0004" not in members(made), "it may have fetched more, and not be seen to have done so"
        made.delete(PODS, "c-0003")
        made.run_until(lambda: "c-0004" in members(made))
        made.etcds.holds_seeds = ""
        made.settle()
        assert_restored(made, name, 4, 5, 6)


def test_a_seed_without_a_node_has_fetched_nothing_from_a_survivor_that_is_lost() -> None:
    with backed_up() as made:
        name = store(made)
        lose(made, 0, 1)
        nodes = set(made.world.up)
        made.world.up.clear()
        made.run_until(lambda: "c-0003" in members(made))
        made.api.objects.delete(PODS, "default", "c-0002", grace=0)
        made.run_until(lambda: members(made) == ["c-0004"])
        made.world.up.update(nodes)
        made.settle()
        assert_restored(made, name, 4, 5, 6)
        assert recovery(made)["generation"] == 2
