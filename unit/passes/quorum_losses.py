"""Ephemeral clusters that lose most of their members."""

from collections.abc import Callable

from etcd_operator.api.recoveries import REVISION_BUMP
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS
from unit.passes.expected import assert_finished


def lose(made: Bench, *numbers: int) -> None:
    """Delete pods at once."""
    for number in numbers:
        made.delete(PODS, f"c-{number:04}")
    made.world.settle()


def lose_and_hold(made: Bench, step: str, *numbers: int, seed: str = "c-0003") -> None:
    """Lose these, and hold the pod of the seed in a step of its start."""
    made.etcds.holds_seeds = step
    lose(made, *numbers)
    made.run_until(lambda: seed in made.objects()["pods"])


def let_go(made: Bench) -> None:
    """Let the seed start."""
    made.etcds.holds_seeds = ""
    made.settle()


def assert_recovered(made: Bench, *numbers: int, generation: int = 1) -> None:
    """One new cluster of these members with all the data, and nothing of the old one."""
    etcd = made.etcd.etcd
    assert etcd.keys[b"key"] == (b"value", 2)
    assert etcd.revision >= REVISION_BUMP
    assert_finished(made, COREOS, len(numbers), numbers)
    status = made.status(COREOS)
    recovery = status["recovery"]
    assert recovery["generation"] == generation
    assert recovery["replaces"] != status["clusterID"]
    assert made.condition(COREOS, "DataLossPossible")["status"] == "True"
    assert status["bootstrap"] == {
        "members": [recovery["seed"]],
        "token": recovery["token"],
        "version": recovery["version"],
    }
    assert recovery["version"] == "3.6.16"
    labels = made.get(PODS, recovery["seed"])["metadata"]["labels"]
    assert labels["app"] == "etcd"


def is_reason(made: Bench, reason: str) -> Callable[[], bool]:
    return lambda: made.reason(COREOS) == reason
